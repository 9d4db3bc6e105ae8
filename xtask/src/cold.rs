//! `cargo xtask bench cold`: a cold start over as many headers as a released checkpoint is behind the head.

use std::process::ExitCode;

use crate::shell::{Cmd, target_dir};

/// Builds the program and what measures it, then runs the measurement: `[HEADERS [FLAGS OF rootlight light..]]`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let build =
        "cargo build --locked --release --package rootlight-native --bin rootlight --example cold_start";
    let release = target_dir().join("release");
    let done = Cmd::new(build).run_attached().and_then(|()| {
        let measure = release.join("examples/cold_start");
        Cmd::new(&measure.to_string_lossy()).arg(release.join("rootlight")).args(args).run_attached()
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}
