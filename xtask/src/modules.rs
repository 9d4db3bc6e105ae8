//! `cargo xtask bench calls` and `modules`: the browser package beside other modules in Node.js and Chromium.

use std::process::ExitCode;

use crate::shell::{Cmd, Log};
use crate::steps::{NamedStep, Outcome, Run};
use crate::{clients, nodes, page, tools, wasm};

const READY: [NamedStep; 8] = [
    ("setup: system packages", tools::system_packages),
    ("setup: rust targets", tools::rust_targets),
    ("setup: npm packages", tools::npm_packages),
    ("setup: bindgen", tools::bindgen),
    ("setup: client libraries", clients::npm_packages),
    ("setup: other modules", packages),
    ("wasm: light client", |log| wasm::build(log, &wasm::ARTEFACTS[1])),
    ("wasm: development chain", |log| wasm::build(log, &wasm::ARTEFACTS[2])),
];

/// Compares `eth_call` through the package's provider with `@ethereumjs/evm`, and with the packages in other folders.
pub(crate) fn calls(folders: &[&str]) -> ExitCode {
    script("calls", &[("test contract", token)], folders)
}

/// Compares bytes, and times to compile and instantiate, with Helios, smoldot and Colibri.
pub(crate) fn modules() -> ExitCode {
    script("modules", &[], &[])
}

/// Measures the gaps of a page's thread while a client synchronizes and answers, those of the page of the program, and the
/// first proven answer of a warm start.
pub(crate) fn page() -> ExitCode {
    script("gaps", &[("page", page::for_tests)], &[])
}

fn token(log: &mut Log) -> Outcome {
    clients::compile(log).map(|_| String::new())
}

fn packages(log: &mut Log) -> Outcome {
    let install = "npm install --no-audit --no-fund --ignore-scripts --no-package-lock";
    log.run(Cmd::new(install).within("bench/compare/modules")).map(|_| String::new())
}

fn script(name: &str, more: &[NamedStep], args: &[&str]) -> ExitCode {
    let run = Run::new(false);
    let ready = READY.iter().chain(more).all(|(name, work)| run.step(name, work));
    let mut cmd = nodes::script(name).args(args).env("PAGE_DIST", page::tested());
    if let Some(browser) = tools::browser() {
        cmd = cmd.env("CHROMIUM", browser);
    }
    run.finish_with(if ready { cmd.run_attached() } else { Ok(()) })
}
