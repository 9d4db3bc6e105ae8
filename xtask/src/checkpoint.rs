//! `cargo xtask checkpoint`: a new checkpoint to build in.

use std::process::ExitCode;

use crate::shell::Cmd;

/// Runs the example of the native host that has the upstream driver and the light client.
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
