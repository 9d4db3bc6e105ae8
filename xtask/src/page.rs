//! Builds the page that the program serves (`www`), and runs its tests.

use std::path::{Path, PathBuf};

use crate::cargo::{host_crates, program};
use crate::shell::{Cmd, StepOutput, root, target_dir};
use crate::steps::StepResult;
use crate::tools;

/// Builds the page into the folder from which the program's build embeds it.
pub(crate) fn for_program(log: &mut StepOutput) -> StepResult {
    build(log, &root().join("www/dist"))
}

/// Installs the packages in www/package-lock.json. The browser is the system's: nothing is downloaded for Playwright.
pub(crate) fn npm_packages(log: &mut StepOutput) -> StepResult {
    tools::npm_ci(log, "www")
}

/// Checks the types and builds the page into `out`, with the package's modules in it.
fn build(log: &mut StepOutput, out: &Path) -> StepResult {
    for module in ["rootlight_bg.wasm", "rootlight_dev_bg.wasm"] {
        if !root().join("pkg/dist").join(module).is_file() {
            return Err(format!("pkg/dist/{module} is missing: run `cargo xtask wasm` first"));
        }
    }
    log.run(Cmd::new("npm run --silent build").within("www").env("PAGE_DIST", out))?;
    Ok(String::new())
}

/// The folder of the page for tests. It is not www/dist, because cargo builds the program again after a change there.
pub(crate) fn tested() -> PathBuf {
    target_dir().join("page")
}

/// The command that runs the page's tests.
fn tests() -> Cmd {
    let tests = Cmd::new("npm run --silent test").within("www").env("PAGE_DIST", tested()).limit(10 * 60);
    let tests = tests.env("ROOTLIGHT", target_dir().join("debug/rootlight"));
    match tools::browser() {
        Some(browser) => tests.env("CHROMIUM", browser),
        None => tests,
    }
}

/// Builds the page into the folder from which tests and measurements serve it.
pub(crate) fn for_tests(log: &mut StepOutput) -> StepResult {
    npm_packages(log)?;
    build(log, &tested())
}

/// Builds the page and tests it in Chromium. The tests serve the page from its folder, with the program's security policy, and start the
/// program too.
pub(crate) fn test(log: &mut StepOutput) -> StepResult {
    for_tests(log)?;
    program(log)?;
    log.run(tests()).map(|_| String::new())
}

/// Tests the main flow of the package and the first screen of the page in Firefox. A machine that has no Firefox, and cannot install
/// it, skips them.
pub(crate) fn test_in_firefox(log: &mut StepOutput) -> StepResult {
    if let Err(reason) = tools::firefox(log) {
        return Ok(format!("skipped: no Firefox: {reason}"));
    }
    for_tests(log)?;
    program(log)?;
    let tests = Cmd::new("node --test --test-timeout=300000 test/firefox/first.test.mjs").within("www");
    let tests = tests.env("PAGE_DIST", tested()).env("ROOTLIGHT", target_dir().join("debug/rootlight"));
    log.run(tests.env("BROWSER", "firefox").limit(10 * 60)).map(|_| String::new())
}

/// Builds the program with the page in it, and tests the page that it serves.
pub(crate) fn test_embedded(log: &mut StepOutput) -> StepResult {
    npm_packages(log)?;
    build(log, &tested())?;
    let program = Cmd::new("cargo build --locked --package rootlight-cli --bin rootlight");
    log.run(program.env("ROOTLIGHT_PAGE", tested()))?;
    log.run(tests().env("PAGE_EMBEDDED", "1")).map(|_| String::new())
}

/// Tests the admin page of a front end in Chromium. A test of the program starts the servers that it needs.
pub(crate) fn test_admin(log: &mut StepOutput) -> StepResult {
    npm_packages(log)?;
    let test =
        host_crates("test").args(&["--test", "cluster", "--", "--ignored", "the_page_works_in_a_browser"]);
    let test = match tools::browser() {
        Some(browser) => test.env("CHROMIUM", browser),
        None => test,
    };
    log.run(test.limit(10 * 60)).map(|_| String::new())
}
