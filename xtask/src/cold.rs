//! `cargo xtask bench cold`: a cold start over as many headers as a released checkpoint is behind the head.

use std::process::ExitCode;

use crate::shell::{Cmd, target_dir};
use crate::steps::{NamedStep, Run};
use crate::{nodes, tools, wasm};

const BUILD: &str =
    "cargo build --locked --release --package rootlight-native --bin rootlight --example cold_start";

/// Builds the program and the example `cold_start`, then measures: `[HEADERS [FLAGS OF rootlight light..]]`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let release = target_dir().join("release");
    let done = Cmd::new(BUILD).run_attached().and_then(|()| {
        let measure = release.join("examples/cold_start");
        Cmd::new(&measure.to_string_lossy()).arg(release.join("rootlight")).args(args).run_attached()
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the browser package and the upstream, then measures the package in headless Chromium: `[HEADERS]`.
pub(crate) fn page(args: &[&str]) -> ExitCode {
    const READY: [NamedStep; 6] = [
        ("setup: system packages", tools::system_packages),
        ("setup: rust targets", tools::rust_targets),
        ("setup: npm packages", tools::npm_packages),
        ("setup: bindgen", tools::bindgen),
        ("build", |log| log.run(Cmd::new(BUILD)).map(|_| String::new())),
        ("wasm: any network", |log| wasm::build(log, &wasm::ARTEFACTS[3])),
    ];
    let run = Run::new(false);
    let ready = READY.iter().all(|(name, work)| run.step(name, work));
    let upstream = target_dir().join("release/examples/cold_start");
    let mut cmd = nodes::script("cold").env("COLD_START", upstream).args(args);
    if let Some(browser) = tools::browser() {
        cmd = cmd.env("CHROMIUM", browser);
    }
    run.finish_with(if ready { cmd.run_attached() } else { Ok(()) })
}
