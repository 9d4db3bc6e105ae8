//! `cargo xtask abuse`: measures the server under abuse over loopback.

use std::process::{Command, ExitCode};

/// Builds the program and the example `abuse`, then runs the named abuses, or all.
pub(crate) fn run(names: &[&str]) -> ExitCode {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let build = |arguments: &[&str]| {
        let built = Command::new(&cargo)
            .args(["build", "--release", "-p", "rootlight-native"])
            .args(arguments)
            .status();
        built.is_ok_and(|status| status.success())
    };
    if !build(&["--bin", "rootlight"]) || !build(&["--example", "abuse"]) {
        return ExitCode::FAILURE;
    }
    // `ABUSED` names another server program, for instance of an older version.
    let binary = std::env::var("ABUSED").unwrap_or_else(|_| "target/release/rootlight".to_owned());
    let run = Command::new("target/release/examples/abuse").arg(binary).args(names).status();
    if run.is_ok_and(|status| status.success()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
