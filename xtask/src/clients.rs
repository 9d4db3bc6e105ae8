//! Tests of client libraries (ethers, viem, web3.py) against the development chain, with and without API keys: as one
//! process, and as a service of several front ends behind a balancer.

use std::path::PathBuf;

use crate::cargo::program;
use crate::shell::{Cmd, StepOutput, root, target_dir};
use crate::steps::StepResult;
use crate::tools;

/// The folder of these tests.
fn folder() -> PathBuf {
    root().join("tests/clients")
}

/// Installs the JavaScript libraries and the Solidity compiler in tests/clients/package-lock.json.
pub(crate) fn npm_packages(log: &mut StepOutput) -> StepResult {
    tools::npm_ci(log, "tests/clients")
}

/// Installs web3.py in a Python environment under target/.
pub(crate) fn python_packages(log: &mut StepOutput) -> StepResult {
    let wanted = folder().join("requirements.txt");
    let text = std::fs::read_to_string(&wanted).map_err(|e| format!("{}: {e}", wanted.display()))?;
    tools::python_packages(log, ENVIRONMENT, &text).map(|_| String::new())
}

/// The folder of the Python environment below target/.
const ENVIRONMENT: &str = "python";

/// The Python program of the environment.
fn python() -> PathBuf {
    target_dir().join(ENVIRONMENT).join("bin/python")
}

/// Tests in JavaScript that need only a URL, so that they run against one process and against a service.
const SHARED: [&str; 6] = [
    "tests/clients/ethers.test.mjs",
    "tests/clients/ethers.keys.test.mjs",
    "tests/clients/events.test.mjs",
    "tests/clients/openrpc.test.mjs",
    "tests/clients/viem.test.mjs",
    "tests/clients/viem.keys.test.mjs",
];

/// Tests in JavaScript that run against one process only: of forks, of indexers' requests, of viem's test actions, of the npm package with the
/// libraries and its types beside theirs, of errors and limits of both, and of the commands in documents.
const ONE_PROCESS: [&str; 8] = [
    "tests/clients/fork.test.mjs",
    "tests/clients/indexers.test.mjs",
    "tests/clients/limits.test.mjs",
    "tests/clients/provider.test.mjs",
    "tests/clients/types.test.mjs",
    "tests/clients/viem.actions.test.mjs",
    "tests/clients/errors.test.mjs",
    "tests/clients/documents.test.mjs",
];

/// The tests that also run against the program of the npm package, which has no API keys and no `rpc.discover`.
pub(crate) const OF_PACKAGE: [&str; 4] = [
    "tests/clients/ethers.test.mjs",
    "tests/clients/events.test.mjs",
    "tests/clients/viem.test.mjs",
    "tests/clients/viem.actions.test.mjs",
];

/// Tests as in [`SHARED`], in Python.
const PYTHON: [&str; 2] = ["tests/clients/web3_test.py", "tests/clients/web3_keys_test.py"];

/// Compiles the test contract and returns its path.
pub(crate) fn compile(log: &mut StepOutput) -> Result<PathBuf, String> {
    let made = target_dir().join("clients");
    log.run(Cmd::new("node tests/clients/compile.mjs").arg(&made))?;
    Ok(made.join("Token.json"))
}

/// The server and the test contract, built.
pub(crate) struct Built {
    token: PathBuf,
}

impl Built {
    /// Builds both.
    pub(crate) fn new(log: &mut StepOutput) -> Result<Self, String> {
        program(log)?;
        Ok(Self { token: compile(log)? })
    }

    /// Sets the environment variables that name both for a command.
    pub(crate) fn with(&self, cmd: Cmd) -> Cmd {
        cmd.env("ROOTLIGHT", target_dir().join("debug/rootlight"))
            .env("ROOTLIGHT_TOKEN", &self.token)
            .limit(5 * 60)
    }

    /// As [`Self::with`], with the program of the npm package.
    pub(crate) fn with_package(&self, cmd: Cmd) -> Cmd {
        self.with(cmd).env("ROOTLIGHT", root().join("pkg/bin/rootlight.js"))
    }

    /// A command that runs test files against a service: two backends, three front ends without keys and three with them.
    pub(crate) fn in_service(&self, files: &[&str]) -> Cmd {
        self.with(Cmd::new("node tests/clients/service.mjs").args(files)).env("PYTHON", python())
    }
}

/// Runs the tests of the libraries that are small enough for every run: against one process, and against the npm package's program.
pub(crate) fn test(log: &mut StepOutput) -> StepResult {
    let built = Built::new(log)?;
    let node = Cmd::new("node --test --test-reporter=tap --test-timeout=120000");
    log.run(built.with(node.args(&SHARED).args(&ONE_PROCESS)))?;
    let node = Cmd::new("node --test --test-reporter=tap --test-timeout=120000");
    log.run(built.with_package(node.args(&OF_PACKAGE)))?;
    for file in PYTHON {
        log.run(built.with(Cmd::program(&python()).args(&[file, "-v"])))?;
    }
    // One file shows that a service starts and that clients can use it; [`service`] runs all files.
    log.run(built.in_service(&["tests/clients/ethers.keys.test.mjs"]))?;
    Ok(String::new())
}

/// Runs the tests of [`SHARED`] and [`PYTHON`] against a service: three front ends behind a balancer.
pub(crate) fn service(log: &mut StepOutput) -> StepResult {
    let built = Built::new(log)?;
    log.run(built.in_service(&[&SHARED[..], &PYTHON].concat()))?;
    Ok(String::new())
}
