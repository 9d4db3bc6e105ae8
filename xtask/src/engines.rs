//! Runs the tests of the browser package in Node.js and in browsers, and tests of the core that are compiled to WebAssembly.

use std::path::PathBuf;

use crate::shell::{Cmd, StepOutput, find, root, tools_dir};
use crate::steps::StepResult;
use crate::{clients, tools};

/// The package's tests, in Node.js and Chromium.
pub(crate) fn package(log: &mut StepOutput) -> StepResult {
    let tests = running(log, files()?)?;
    log.run(tests).map(|_| String::new())
}

/// The package's tests in Firefox, except those that need an extension or the DevTools protocol of Chromium.
pub(crate) fn package_in_firefox(log: &mut StepOutput) -> StepResult {
    tools::firefox(log)?;
    let files = files()?.into_iter().filter(|file| !file.ends_with("extension.test.mjs"));
    let tests = running(log, files.collect())?;
    log.run(tests.env("BROWSER", "firefox")).map(|_| String::new())
}

/// The tests in `pkg/wasm/tests`, of the core and its message dispatcher, compiled to WebAssembly, in Node.js, Chromium and Firefox.
pub(crate) fn core(log: &mut StepOutput) -> StepResult {
    tools::wasm_test_runner(log)?;
    tools::wasm_pack(log)?;
    tools::firefox(log)?;
    tools::geckodriver(log)?;
    let chromedriver = find("chromedriver").ok_or("chromedriver is missing: run cargo xtask setup")?;
    let test = || Cmd::new("wasm-pack test --mode no-install");
    let of = |command: Cmd, file: &str| {
        command
            .args(&["pkg/wasm", "--locked", "--features", "dev", "--test", file])
            .env("WASM_BINDGEN_TEST_TIMEOUT", "120")
    };
    log.run(of(test().arg("--node"), "node"))?;
    log.run(of(test().args(&["--headless", "--chrome", "--chromedriver"]).arg(chromedriver), "browser"))?;
    log.run(of(test().args(&["--headless", "--firefox", "--geckodriver"]).arg(geckodriver()), "browser"))?;
    Ok(String::new())
}

/// The program that drives Firefox.
fn geckodriver() -> PathBuf {
    tools_dir().join("bin/geckodriver")
}

/// The files of the package's tests, by name.
fn files() -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(root().join("pkg/test")).map_err(|e| format!("pkg/test: {e}"))?;
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        files.filter(|file| file.to_string_lossy().ends_with(".test.mjs")).collect();
    files.sort();
    Ok(files)
}

/// The command that runs these files of the package's tests, in Chromium where they need a browser.
fn running(log: &mut StepOutput, files: Vec<PathBuf>) -> Result<Cmd, String> {
    let tests = Cmd::new("node --test --test-reporter=tap").env("ROOTLIGHT_TOKEN", clients::compile(log)?);
    let tests = files.into_iter().fold(tests.limit(60 * 60), Cmd::arg);
    Ok(match tools::browser() {
        Some(browser) => tests.env("CHROMIUM", browser),
        None => tests,
    })
}
