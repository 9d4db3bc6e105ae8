//! Cargo commands that several steps use.

use crate::shell::Cmd;
use crate::tools;

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
