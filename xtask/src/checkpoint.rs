//! `cargo xtask checkpoint`: proposes a new built-in checkpoint.

use std::process::ExitCode;

use crate::shell::Cmd;

/// Runs the native host's example, which uses its upstreams and its light client.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let line = "cargo run --quiet --release --package rootlight-native --example propose_checkpoint --";
    match Cmd::new(line).args(args).run_attached() {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
