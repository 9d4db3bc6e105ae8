//! The whole service under load with faults: a store cluster, PostgreSQL, two backends, indexers, three front ends, a
//! balancer and clients that check every answer.
#![cfg(all(feature = "cluster", target_os = "linux"))]

mod backend;
mod balancer;
mod chain;
mod check;
mod clients;
#[path = "../common/mod.rs"]
mod common;
mod conditions;
mod faults;
mod memory;
mod programs;
mod report;
// The tests of a service on many machines use more of it.
mod running_service;
#[allow(dead_code)]
#[path = "../cluster/servers.rs"]
mod servers;
mod settings;
mod tally;
mod view;

use settings::Settings;

async fn passes(settings: Settings) {
    let path = settings.report.clone();
    let Some(report) = check::run(settings).await else { return };
    report.print();
    report.write(&path);
    let faults = report.faults();
    assert!(faults.is_empty(), "{}\n{}", faults.join("\n"), report.examples.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_answers_rightly_while_some_of_its_parts_fail() {
    passes(Settings::short()).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "minutes, or as long as ROOTLIGHT_SERVICE_SECONDS says: cargo xtask test --full runs it"]
async fn a_service_answers_rightly_while_each_of_its_parts_fails() {
    passes(Settings::long()).await;
}
