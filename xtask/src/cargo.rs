//! Cargo commands that several steps use.

use crate::shell::Cmd;

/// A cargo command over the crates that have tests on this machine. Commands for fewer of them would choose other
/// features of some dependencies, and so compile these once more. The crate of benchmarks has no tests; `lint`
/// compiles it.
pub(crate) fn host_crates(command: &str) -> Cmd {
    Cmd::new("cargo").arg(command).args(&[
        "--locked",
        "--workspace",
        "--exclude",
        "rootlight-wasm",
        "--exclude",
        "rootlight-bench",
    ])
}
