//! `cargo xtask test`: all checks. The quick ones that fail most often come first.

use std::process::ExitCode;

use crate::shell::{Cmd, Log};
use crate::steps::{Outcome, Run};
use crate::{clients, links, tools, wasm};

/// One check: its name, whether only `--full` runs it, and its function.
type Part = (&'static str, bool, fn(&mut Log) -> Outcome);

/// The installation steps, which run first. A failure ends the run, because the checks would fail for the same reason.
const SETUP: [Part; 6] = [
    ("setup: rust targets", false, tools::rust_targets),
    ("setup: system packages", false, tools::system_packages),
    ("setup: npm packages", false, tools::npm_packages),
    ("setup: wasm tools", false, tools::wasm_tools),
    ("setup: client libraries", false, clients::npm_packages),
    ("setup: web3.py", false, clients::python_packages),
];

const PARTS: [Part; 13] = [
    ("format", false, format),
    ("documents", false, links::check),
    ("tests: core and native", false, native_tests),
    ("tests: client libraries", false, clients::test),
    ("lint", false, lint),
    ("api documentation", false, api_docs),
    ("bare metal builds", false, bare),
    ("wasm: verify-only", false, |log| wasm::build(log, &wasm::ARTEFACTS[0])),
    ("wasm: light client", false, |log| wasm::build(log, &wasm::ARTEFACTS[1])),
    ("wasm: development chain", false, |log| wasm::build(log, &wasm::ARTEFACTS[2])),
    ("tests: wasm in node", false, wasm_node),
    ("tests: wasm in chromium", false, wasm_browser),
    ("tests: built package", false, package),
];

struct Options<'a> {
    full: bool,
    verbose: bool,
    parts: Vec<&'a str>,
}

fn options<'a>(args: &[&'a str]) -> Options<'a> {
    let flag = |names: &[&str]| args.iter().any(|a| names.contains(a));
    Options {
        full: flag(&["--full"]),
        verbose: flag(&["-v", "--verbose"]),
        parts: args.iter().copied().filter(|a| !a.starts_with('-')).collect(),
    }
}

/// Installs missing tools, then runs every check, or those whose names contain one of the given words.
pub(crate) fn test(args: &[&str]) -> ExitCode {
    if args.contains(&"--list") {
        PARTS.iter().for_each(|(name, full, _)| println!("{name}{}", if *full { " (--full)" } else { "" }));
        return ExitCode::SUCCESS;
    }
    let options = options(args);
    let mut run = Run::new(options.verbose);
    if !prepare(&mut run) {
        return run.finish();
    }
    for (name, full, work) in PARTS {
        let wanted = options.parts.is_empty() || options.parts.iter().any(|p| name.contains(p));
        if wanted && (options.full || !full) {
            run.step(name, work);
        }
    }
    run.finish()
}

/// Installs missing tools.
pub(crate) fn setup(args: &[&str]) -> ExitCode {
    let mut run = Run::new(options(args).verbose);
    prepare(&mut run);
    run.finish()
}

/// Builds the browser package.
pub(crate) fn wasm(args: &[&str]) -> ExitCode {
    let mut run = Run::new(options(args).verbose);
    if prepare(&mut run) {
        for artefact in &wasm::ARTEFACTS {
            run.step(artefact.name, |log| wasm::build(log, artefact));
        }
    }
    run.finish()
}

fn prepare(run: &mut Run) -> bool {
    SETUP.iter().all(|(name, _, work)| run.step(name, work))
}

/// Runs a command; the step succeeds if the command does.
fn plain(log: &mut Log, cmd: Cmd) -> Outcome {
    log.run(cmd).map(|_| String::new())
}

fn format(log: &mut Log) -> Outcome {
    plain(log, Cmd::new("cargo fmt --all --check"))
}

/// Tests the core, the native host and the tasks with one cargo invocation, so that dependencies are built once.
fn native_tests(log: &mut Log) -> Outcome {
    plain(log, Cmd::new("cargo test --locked --no-fail-fast --workspace --exclude rootlight-wasm"))
}

fn lint(log: &mut Log) -> Outcome {
    let clippy = Cmd::new("cargo clippy --locked --workspace --all-targets --features rootlight-wasm/dev");
    plain(log, clippy.args(&["--", "-D", "warnings"]))
}

fn api_docs(log: &mut Log) -> Outcome {
    plain(log, Cmd::new("cargo doc --locked --workspace --no-deps").env("RUSTDOCFLAGS", "-D warnings"))
}

/// Builds the core for targets without an operating system or a standard library.
fn bare(log: &mut Log) -> Outcome {
    let mut cmd = Cmd::new("cargo build --locked --package rootlight --lib --profile bare");
    for target in tools::BARE {
        cmd = cmd.args(&["--target", target]);
    }
    plain(log, cmd)
}

fn wasm_pack(log: &mut Log, args: &[&str]) -> Outcome {
    plain(log, Cmd::new("wasm-pack test --mode no-install").args(args).within("pkg/wasm").limit(15 * 60))
}

fn wasm_node(log: &mut Log) -> Outcome {
    wasm_pack(log, &["--node", "--", "--locked", "--test", "node"])
}

fn wasm_browser(log: &mut Log) -> Outcome {
    let driver = crate::shell::find("chromedriver").ok_or("chromedriver is missing")?;
    let driver = driver.to_string_lossy();
    wasm_pack(
        log,
        &[
            "--headless",
            "--chrome",
            "--chromedriver",
            &driver,
            "--",
            "--locked",
            "--test",
            "browser",
            "--test",
            "worker",
        ],
    )
}

/// Tests the package as it is published, in Node.js and in a web page.
fn package(log: &mut Log) -> Outcome {
    let folder = crate::shell::root().join("pkg/test");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("pkg/test: {e}"))?;
    let names = entries.flatten().map(|e| e.path().display().to_string());
    let mut files: Vec<String> = names.filter(|n| n.ends_with(".test.mjs")).collect();
    files.sort();
    let token = clients::compile(log)?;
    let mut cmd = Cmd::new("node --test --test-reporter=tap").env("ROOTLIGHT_TOKEN", token).limit(15 * 60);
    for file in files {
        cmd = cmd.arg(file);
    }
    if let Some(browser) = tools::browser() {
        cmd = cmd.env("CHROMIUM", browser);
    }
    plain(log, cmd)
}
