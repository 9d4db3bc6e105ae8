//! `cargo xtask bench`: ratios of times within one run, natively and in WebAssembly.

use std::process::ExitCode;

use crate::shell::{Cmd, find};
use crate::steps::Run;
use crate::tools::{self, WASM};

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

/// Measures the ratio for headers in a WebAssembly engine, with the package's build profile: in Node.js or in headless
/// Chromium, as the test target says. The test runner prints the result, and reads the browser's options in
/// `bench/webdriver.json`.
fn wasm(test: &str) -> Result<(), String> {
    let driver = find("chromedriver").ok_or("chromedriver is missing: run cargo xtask setup")?;
    Cmd::new("cargo test --locked --package rootlight-bench --profile wasm --target")
        .args(&[WASM, "--test", test, "--", "--nocapture"])
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", "wasm-bindgen-test-runner")
        .env("CHROMEDRIVER", driver)
        .env("WASM_BINDGEN_TEST_TIMEOUT", "300")
        .run_attached()
}
