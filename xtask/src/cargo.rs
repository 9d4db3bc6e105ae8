//! Cargo commands that several steps use.

use std::sync::OnceLock;

use crate::shell::{Cmd, Log};
use crate::steps::Outcome;
use crate::tools;

/// Set once this run has built the program.
static PROGRAM: OnceLock<()> = OnceLock::new();

/// A cargo command over the crates that have tests on this machine. Commands for fewer of them would choose other
/// features of some dependencies, and so compile these once more. The crate of benchmarks has no tests; `lint`
/// compiles it.
pub(crate) fn host_crates(command: &str) -> Cmd {
    with_rocksdb(Cmd::new("cargo").arg(command).args(&[
        "--locked",
        "--workspace",
        "--exclude",
        "rootlight-wasm",
        "--exclude",
        "rootlight-bench",
    ]))
}

/// Tests the core, the native host and the tasks with one cargo invocation, so that dependencies are built once, the
/// program among them. Examples are left out: the step `examples` runs those of the core, and `lint` compiles all.
pub(crate) fn host_tests(log: &mut Log) -> Outcome {
    // On a slow machine, building all tests takes longer than running them.
    let tests = host_crates("test").args(&["--no-fail-fast", "--lib", "--bins", "--tests"]);
    log.run(tests.limit(60 * 60))?;
    let _ = PROGRAM.set(());
    Ok(String::new())
}

/// Builds the program with the tests that start it, unless [`host_tests`] has built it in this run: cargo would only wait
/// for its lock, which a check that runs at the same time holds.
pub(crate) fn program(log: &mut Log) -> Result<(), String> {
    if PROGRAM.get().is_some() {
        return Ok(());
    }
    log.run(host_crates("test").args(&["--no-run", "--test", "program"])).map(|_| ())
}

/// A cargo command over the workspace with the feature that reads a node's store, linked to the system's RocksDB: compiling
/// the one that the crate brings takes a quarter of an hour.
pub(crate) fn with_rocksdb(cmd: Cmd) -> Cmd {
    let cmd = cmd
        .args(&["--features", "rootlight-native/rskj-store"])
        .env("ROCKSDB_INCLUDE_DIR", tools::ROCKSDB_INCLUDE);
    match tools::rocksdb() {
        Some(folder) => cmd.env("ROCKSDB_LIB_DIR", folder),
        None => cmd,
    }
}
