//! Cargo commands that several steps use.

use std::sync::OnceLock;

use serde_json::Value;

use crate::shell::{Cmd, Log};
use crate::steps::Outcome;
use crate::tools;

/// Set once this run has built the program.
static PROGRAM: OnceLock<()> = OnceLock::new();

/// Crates without tests for this machine; `lint` compiles them.
const WITHOUT: [&str; 2] = ["rootlight-wasm", "rootlight-bench"];

/// A cargo command over the crates that have tests on this machine. Commands for fewer of them would choose other
/// features of some dependencies, and so compile these once more.
pub(crate) fn host_crates(command: &str) -> Cmd {
    let cmd = Cmd::new("cargo").arg(command).args(&["--locked", "--workspace"]);
    with_rocksdb(WITHOUT.iter().fold(cmd, |cmd, name| cmd.args(&["--exclude", name])))
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

/// Test programs that take longest: those of a whole service, which start servers of PostgreSQL and Redis.
const LONGEST: [&str; 2] = ["cluster", "service"];

/// Runs what [`host_tests`] runs, without the [`LONGEST`] test programs.
pub(crate) fn quick_tests(log: &mut Log) -> Outcome {
    let metadata = log.read(Cmd::new("cargo metadata --locked --no-deps --format-version 1"))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let tests = host_crates("test").args(&["--no-fail-fast", "--lib", "--bins"]);
    let programs = test_programs(&metadata).filter(|name| !LONGEST.contains(name));
    log.run(programs.fold(tests, |cmd, name| cmd.args(&["--test", name]))).map(|_| String::new())
}

/// The names of the test programs of the crates that [`host_crates`] names.
fn test_programs(metadata: &Value) -> impl Iterator<Item = &str> {
    let crates = metadata["packages"].as_array().into_iter().flatten();
    let crates =
        crates.filter(|package| !package["name"].as_str().is_some_and(|name| WITHOUT.contains(&name)));
    let targets = crates.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    tests.filter_map(|target| target["name"].as_str())
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn test_programs_are_those_of_crates_with_tests() {
        let target = |kind: &str, name: &str| json!({"kind": [kind], "name": name});
        let metadata = json!({"packages": [
            {"name": "rootlight-native", "targets": [target("lib", "a"), target("test", "server")]},
            {"name": "rootlight-bench", "targets": [target("test", "node")]},
            {"name": "rootlight", "targets": [target("example", "b"), target("test", "rpc")]},
        ]});
        assert_eq!(test_programs(&metadata).collect::<Vec<_>>(), ["server", "rpc"]);
    }
}
