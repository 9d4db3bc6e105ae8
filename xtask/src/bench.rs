//! `cargo xtask bench`: ratios of times within one run, natively and in WebAssembly.

use std::process::ExitCode;

use crate::shell::Cmd;
use crate::steps::Run;
use crate::tools;

/// Without arguments, prints the ratios of docs/benchmarks.md. Otherwise passes the arguments to criterion, natively
/// only.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let args = args.strip_prefix(&["--"]).unwrap_or(args);
    let native = Cmd::new("cargo bench --locked --package rootlight-bench --");
    if !args.is_empty() {
        return outcome(native.args(args).run_attached());
    }
    let run = Run::new(false);
    if !run.step("setup: wasm test runner", tools::wasm_test_runner) {
        return run.finish();
    }
    let done =
        native.arg("--ratios").run_attached().and_then(|()| wasm("node")).and_then(|()| wasm("browser"));
    outcome(done)
}

fn outcome(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the ratio for headers in a WebAssembly engine, with the package's build profile. The test runner
/// prints the result.
fn wasm(test: &str) -> Result<(), String> {
    crate::wasm::tests("rootlight-bench", &[test])?
        .args(&["--profile", "wasm", "--", "--nocapture"])
        .env("WASM_BINDGEN_TEST_TIMEOUT", "300")
        .run_attached()
}
