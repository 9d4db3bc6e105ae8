//! `cargo xtask fuzz`: runs fuzz targets for some minutes each.

use std::process::ExitCode;

use crate::shell::{Cmd, ask};
use crate::steps::SuiteRun;
use crate::tools;

/// The option for the longest input, 64 KiB. Every header, transaction and proof of the recordings is shorter.
const MAX_INPUT: &str = "-max_len=65536";

/// Targets that need the native host; the others are built with the core only.
const HOST: [&str; 2] = ["index_row", "replay_line"];

/// Runs `cargo xtask fuzz --minutes N [TARGET..]`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let (minutes, named) = match args {
        ["--minutes", n, rest @ ..] => (n.parse::<u64>().ok(), rest),
        _ => (None, args),
    };
    let Some(minutes) = minutes else {
        eprintln!("usage: cargo xtask fuzz --minutes N [TARGET..]");
        return ExitCode::from(2);
    };
    let run = SuiteRun::new(false);
    if !run.step("setup: cargo-fuzz", tools::cargo_fuzz) {
        return run.finish();
    }
    // Adds recorded headers, proofs and requests as seeds; existing corpus files stay.
    if !run
        .step("seeds", |log| log.run(Cmd::new("cargo run --quiet --example seeds").within("fuzz")).map(lines))
    {
        return run.finish();
    }
    let listed = ask("cargo", &["fuzz", "list"]).unwrap_or_default();
    let targets: Vec<&str> = if named.is_empty() { listed.lines().collect() } else { named.to_vec() };
    if targets.is_empty() {
        eprintln!("no fuzz target found (fuzz/fuzz_targets)");
        return ExitCode::FAILURE;
    }
    for target in targets {
        run.step(&format!("fuzz {target}"), |log| {
            let output = log.run(fuzz_command(target, minutes))?;
            let last = output.lines().rev().find(|l| l.starts_with("Done ")).unwrap_or("no closing line");
            Ok(last.to_owned())
        });
    }
    run.finish()
}

/// Joins the seed counts of the targets into one line.
fn lines(output: String) -> String {
    output.lines().filter(|line| !line.starts_with("skipped")).collect::<Vec<_>>().join(", ")
}

/// The command that runs one target. Coverage instrumentation is unstable in rustc; `RUSTC_BOOTSTRAP` allows it on
/// the stable toolchain, so that no nightly toolchain is needed.
fn fuzz_command(target: &str, minutes: u64) -> Cmd {
    let seconds = minutes * 60;
    let run = if HOST.contains(&target) { "cargo fuzz run --features host" } else { "cargo fuzz run" };
    Cmd::new(run)
        .args(&[
            "--sanitizer",
            "none",
            target,
            "--",
            &format!("-max_total_time={seconds}"),
            MAX_INPUT,
            "-timeout=10",
            "-rss_limit_mb=2048",
        ])
        .env("RUSTC_BOOTSTRAP", "1")
        // Twenty minutes more for the build.
        .limit(seconds + 20 * 60)
}
