//! `cargo xtask bench`, `abuse`, `soak` and `checkpoint`: build the program as it is released, install the other programs that a measurement
//! compares it with, and run the measurement in the terminal.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::shell::{Cmd, StepOutput, find, root, target_dir};
use crate::steps::{NamedStep, StepResult, SuiteRun, exit_code};
use crate::tools::{self, WASM};
use crate::{clients, page, wasm};

/// The release of foundry's programs: anvil to compare with, and cast.
const FOUNDRY: &str = "1.7.1";

/// Steps before measurements.
const SYSTEM: NamedStep = ("setup: system packages", tools::system_packages);
const CLIENTS: NamedStep = ("setup: client libraries", clients::npm_packages);
const ANVIL: NamedStep = ("setup: anvil", anvil);
const PROGRAM: NamedStep = ("build", |log| build(log, &[]));
const TOKEN: NamedStep = ("test contract", |log| clients::compile(log).map(|_| String::new()));
const OTHERS: NamedStep = ("setup: other modules", |log| packages(log, "modules"));
/// The steps that build the browser package.
const MODULES: [NamedStep; 3] = [
    ("setup: rust targets", tools::rust_targets),
    ("setup: npm packages", tools::npm_packages),
    ("setup: bindgen", tools::bindgen),
];
const LIGHT: NamedStep = ("wasm: light client", |log| wasm::build(log, &wasm::ARTEFACTS[1]));
const DEV: NamedStep = ("wasm: development chain", |log| wasm::build(log, &wasm::ARTEFACTS[2]));
const NETWORKS: NamedStep = ("wasm: any network", |log| wasm::build(log, &wasm::ARTEFACTS[3]));

/// `cargo xtask bench ..`
pub(crate) fn bench(args: &[&str]) -> ExitCode {
    /// The steps before measurements of the package in browsers.
    const PAGES: [&[NamedStep]; 3] = [&[SYSTEM], &MODULES, &[CLIENTS, OTHERS, LIGHT, DEV]];
    match args {
        ["peers"] => {
            let others: NamedStep = ("setup: other light clients", |log| packages(log, "peers"));
            measure(&[&MODULES, &[CLIENTS, PROGRAM, LIGHT, ANVIL, others]], &[("peers", &[])])
        }
        ["engines"] if headers().is_none() => {
            println!("skipped: the recorded headers are missing");
            ExitCode::SUCCESS
        }
        ["engines"] => measure(&[&[SYSTEM], &MODULES, &[CLIENTS, PROGRAM, LIGHT]], &[("engines", &[])]),
        ["calls", folders @ ..] => measure(&[&PAGES.concat(), &[TOKEN]], &[("calls", folders)]),
        ["modules"] => measure(&PAGES, &[("modules", &[])]),
        ["page"] => {
            let names: [(&str, &[&str]); 3] = [("gaps", &[]), ("first-screen", &[]), ("restart", &[])];
            measure(&[&PAGES.concat(), &[NETWORKS, ("page", page::for_tests)]], &names)
        }
        ["nodes"] => measure(&[&[CLIENTS, ANVIL, PROGRAM]], &nodes()),
        ["traces", parts @ ..] => measure(&[&MODULES, &[CLIENTS, ANVIL, PROGRAM, DEV]], &[("traces", parts)]),
        ["fork"] => measure(&[&[CLIENTS, ANVIL, PROGRAM]], &[("fork", &[])]),
        ["rpc", workloads @ ..] => {
            let floor: NamedStep = ("build", |log| build(log, &["http_floor", "paced_client"]));
            let load: NamedStep = ("setup: wrk", tools::wrk);
            measure(&[&[CLIENTS, ANVIL, load, floor]], &[("rpc", workloads)])
        }
        ["keys"] => {
            let load: NamedStep = ("setup: wrk", tools::wrk);
            measure(&[&[SYSTEM, CLIENTS, load, PROGRAM]], &[("keys", &[])])
        }
        ["light"] => measure(&[&[CLIENTS, PROGRAM]], &[("light", &[])]),
        ["cold", "page", headers @ ..] => {
            let upstream: NamedStep = ("build", |log| build(log, &["cold_start"]));
            measure(&[&[SYSTEM], &MODULES, &[upstream, NETWORKS]], &[("cold", headers)])
        }
        ["cold", rest @ ..] => exit_code(example("cold_start", program(), rest)),
        ["newcomer", rest @ ..] => exit_code(example("newcomer", program(), rest)),
        _ => ratios(args.strip_prefix(&["--"]).unwrap_or(args)),
    }
}

/// `cargo xtask abuse [NAME..]`. `ABUSED` names another server program, for instance of an older version. Its path is relative
/// to the caller's folder, but commands run in the workspace's.
pub(crate) fn abuse(names: &[&str]) -> ExitCode {
    let named = std::env::var_os("ABUSED").map(|named| std::path::absolute(&named).unwrap_or(named.into()));
    exit_code(example("abuse", named.unwrap_or_else(program), names))
}

/// `cargo xtask soak [MINUTES]`
pub(crate) fn soak(minutes: &[&str]) -> ExitCode {
    measure(&[&[CLIENTS, PROGRAM]], &[("soak", minutes)])
}

/// `cargo xtask checkpoint ..`: runs the native host's example, which uses its upstreams and its light client.
pub(crate) fn checkpoint(args: &[&str]) -> ExitCode {
    let line = "cargo run --quiet --release --package rootlight-cli --example propose_checkpoint --";
    let proposed = Cmd::new(line).args(args).run_attached();
    let written = args.contains(&"--write");
    exit_code(proposed.and_then(|()| {
        if written { Cmd::new("cargo fmt --package rootlight").run_attached() } else { Ok(()) }
    }))
}

/// Runs the steps, and if all succeed the scripts of bench/compare with their arguments.
fn measure(steps: &[&[NamedStep]], scripts: &[(&str, &[&str])]) -> ExitCode {
    let run = SuiteRun::new(false);
    let ready = steps.iter().copied().flatten().all(|(name, work)| run.step(name, work));
    let mut done = Ok(());
    if ready {
        done = scripts.iter().try_for_each(|(name, args)| script(name).args(args).run_attached());
    }
    run.finish_with(done)
}

/// The scripts that compare with other nodes. The import takes part if the reference node is available.
fn nodes() -> Vec<(&'static str, &'static [&'static str])> {
    let mut scripts: Vec<(&str, &[&str])> = vec![("reads", &[]), ("transfers", &[])];
    if ["REFERENCE", "REFERENCE_EXECUTE"].into_iter().all(|name| std::env::var_os(name).is_some()) {
        scripts.push(("import", &[]));
    } else {
        println!("import skipped: REFERENCE and REFERENCE_EXECUTE are not set (bench/compare/import.mjs)");
    }
    scripts
}

/// The command for a script of bench/compare. Environment variables have the paths of the programs and files that scripts use.
fn script(name: &str) -> Cmd {
    let (target, dist) = (target_dir(), target_dir().join("dist"));
    let cmd = Cmd::new("node")
        .arg(root().join("bench/compare").join(format!("{name}.mjs")))
        .env("ROOTLIGHT", program())
        .env("ROOTLIGHT_TOKEN", target.join("clients/Token.json"))
        .env("ROOTLIGHT_HEADERS", headers().unwrap_or_default())
        .env("ANVIL", target.join("anvil/node_modules").join(foundry_package("anvil")).join("bin/anvil"))
        .env("FLOOR", dist.join("examples/http_floor"))
        .env("PACED", dist.join("examples/paced_client"))
        .env("COLD_START", dist.join("examples/cold_start"))
        .env("PAGE_DIST", page::tested());
    match tools::browser() {
        Some(browser) => cmd.env("CHROMIUM", browser),
        None => cmd,
    }
}

/// The program as it is released, which [`dist`] builds.
fn program() -> PathBuf {
    target_dir().join("dist/rootlight")
}

/// The command that builds the program as it is released (cargo's profile `dist`), and these examples of the native crate.
fn dist(examples: &[&str]) -> Cmd {
    let build = Cmd::new("cargo build --locked --profile dist --package rootlight-cli --bin rootlight");
    examples.iter().fold(build, |cmd, name| cmd.args(&["--example", name]))
}

/// Builds the program, these examples and the test contract.
fn build(log: &mut StepOutput, examples: &[&str]) -> StepResult {
    log.run(dist(examples))?;
    clients::compile(log).map(|_| String::new())
}

/// Builds the program and an example, then runs the example on a program.
fn example(name: &str, program: PathBuf, args: &[&str]) -> Result<(), String> {
    dist(&[name]).run_attached()?;
    let example = target_dir().join("dist/examples").join(name);
    Cmd::program(&example).arg(program).args(args).run_attached()
}

/// Prints the ratios of docs/benchmarks.md, natively and in WebAssembly; with arguments, criterion's statistics, natively only.
fn ratios(args: &[&str]) -> ExitCode {
    let native = Cmd::new("cargo bench --locked --profile dist --package rootlight-bench --");
    if !args.is_empty() {
        return exit_code(native.args(args).run_attached());
    }
    let run = SuiteRun::new(false);
    if !run.step("setup: wasm test runner", tools::wasm_test_runner) {
        return run.finish();
    }
    let done = native.arg("--ratios").run_attached();
    exit_code(done.and_then(|()| in_engine("node")).and_then(|()| in_engine("browser")))
}

/// Measures the ratio for headers in a WebAssembly engine, with the package's build profile: in Node.js or in headless
/// Chromium, as the test target says. The test runner prints the result, and reads the browser's options in
/// `bench/webdriver.json`.
fn in_engine(test: &str) -> Result<(), String> {
    let driver = find("chromedriver").ok_or("chromedriver is missing: run cargo xtask setup")?;
    Cmd::new("cargo test --locked --package rootlight-bench --profile wasm --target")
        .args(&[WASM, "--test", test, "--", "--nocapture"])
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", "wasm-bindgen-test-runner")
        .env("CHROMEDRIVER", driver)
        .env("WASM_BINDGEN_TEST_TIMEOUT", "300")
        .run_attached()
}

/// The npm package with the binary of one of foundry's programs for this system.
pub(crate) fn foundry_package(program: &str) -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let processor = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    format!("@foundry-rs/{program}-{system}-{processor}")
}

/// Installs a program of foundry in a folder below target/.
pub(crate) fn foundry(log: &mut StepOutput, program: &str) -> StepResult {
    let install = Cmd::new("npm install --no-audit --no-fund --no-save --ignore-scripts --prefix");
    log.run(install.arg(target_dir().join(program)).arg(format!("{}@{FOUNDRY}", foundry_package(program))))?;
    Ok(FOUNDRY.into())
}

/// Installs anvil.
fn anvil(log: &mut StepOutput) -> StepResult {
    foundry(log, "anvil")
}

/// Installs the npm packages of a folder of bench/compare, with which its scripts compare the package.
fn packages(log: &mut StepOutput, folder: &str) -> StepResult {
    let install = "npm install --no-audit --no-fund --ignore-scripts --no-package-lock";
    log.run(Cmd::new(install).within(&format!("bench/compare/{folder}"))).map(|_| String::new())
}

/// The file of 1,200 main network headers, in the folder that `ROOTLIGHT_SHARED` names (default `../shared`); `None`
/// if it is missing.
fn headers() -> Option<PathBuf> {
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let file = shared.join("realdata/headers/mainnet_4479841_iris_run1200.json");
    file.is_file().then_some(file)
}
