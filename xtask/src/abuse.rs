//! `cargo xtask abuse`: the server under abuse over loopback, with figures.

use std::process::{Command, ExitCode};

/// Builds the program and what abuses it, then runs the abuses named, or all.
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
    // `ABUSED` is another program to abuse, such as an older one.
    let binary = std::env::var("ABUSED").unwrap_or_else(|_| "target/release/rootlight".to_owned());
    let run = Command::new("target/release/examples/abuse").arg(binary).args(names).status();
    if run.is_ok_and(|status| status.success()) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
