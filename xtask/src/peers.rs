//! `cargo xtask bench peers` and `engines`: compare the light client with others, and with itself in other engines.

use std::process::ExitCode;

use crate::shell::{Cmd, Log};
use crate::steps::{NamedStep, Outcome, Run};
use crate::{clients, nodes, tools, wasm};

/// The steps that every script needs: they build the native program, the test contract and the browser package.
const READY: [NamedStep; 6] = [
    ("setup: rust targets", tools::rust_targets),
    ("setup: npm packages", tools::npm_packages),
    ("setup: bindgen", tools::bindgen),
    ("setup: client libraries", clients::npm_packages),
    ("build", nodes::build),
    ("wasm: light client", |log| wasm::build(log, &wasm::ARTEFACTS[1])),
];

/// Compares proven calls with Lodestar's prover and Patronum, whose npm packages are in
/// bench/compare/peers/package.json.
pub(crate) fn run() -> ExitCode {
    script("peers", &[("setup: anvil", nodes::anvil), ("setup: other light clients", packages)])
}

/// Compares header synchronization natively, in Node.js and in Chromium. Skipped if the recorded headers are missing.
pub(crate) fn engines() -> ExitCode {
    if nodes::headers().is_none() {
        println!("skipped: the recorded headers are missing");
        return ExitCode::SUCCESS;
    }
    script("engines", &[("setup: system packages", tools::system_packages)])
}

fn packages(log: &mut Log) -> Outcome {
    let install = "npm install --no-audit --no-fund --ignore-scripts --no-package-lock";
    log.run(Cmd::new(install).within("bench/compare/peers")).map(|_| String::new())
}

fn script(name: &str, more: &[NamedStep]) -> ExitCode {
    let run = Run::new(false);
    let ready = READY.iter().chain(more).all(|(name, work)| run.step(name, work));
    let mut cmd = nodes::script(name);
    if let Some(browser) = tools::browser() {
        cmd = cmd.env("CHROMIUM", browser);
    }
    run.finish_with(if ready { cmd.run_attached() } else { Ok(()) })
}
