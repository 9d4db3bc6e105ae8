//! `cargo xtask abuse`: measures the server under abuse over loopback.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::shell::{Cmd, target_dir};

const BUILD: &str =
    "cargo build --locked --release --package rootlight-native --bin rootlight --example abuse";

/// Builds the program and the example `abuse`, then runs the named abuses, or all.
pub(crate) fn run(names: &[&str]) -> ExitCode {
    let release = target_dir().join("release");
    // `ABUSED` names another server program, for instance of an older version. Its path is relative to the caller's folder,
    // but commands run in the workspace's.
    let named = std::env::var_os("ABUSED").map(|named| std::path::absolute(&named).unwrap_or(named.into()));
    let program: PathBuf = named.unwrap_or_else(|| release.join("rootlight"));
    let done = Cmd::new(BUILD)
        .run_attached()
        .and_then(|()| Cmd::program(&release.join("examples/abuse")).arg(program).args(names).run_attached());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
