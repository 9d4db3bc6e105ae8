//! `cargo xtask test`, `setup`, `wasm` and `build`: the lists of steps, and the order in which they run. Checks of the host's code run at the same
//! time as those of the browser package; checks that compile run at the same time as the tests of both.

use std::process::ExitCode;

use crate::cargo::{host_crates, host_tests, quick_tests, with_rocksdb};
use crate::shell::{Cmd, StepOutput};
use crate::steps::{StepResult, SuiteRun};
use crate::{
    api, clients, dependencies, engines, features, instructions, links, packages, page, projects, release,
    spec, tools, units, wasm,
};

/// One installation step or check.
struct SuiteStep {
    /// The name, which the user may give to run the step alone.
    name: &'static str,
    work: fn(&mut StepOutput) -> StepResult,
}

/// Makes a step.
const fn part(name: &'static str, work: fn(&mut StepOutput) -> StepResult) -> SuiteStep {
    SuiteStep { name, work }
}

/// Installation steps that all checks need.
const TOOLCHAIN: [SuiteStep; 2] = [
    part("setup: rust targets", tools::rust_targets),
    part("setup: system packages", tools::system_packages),
];

/// Installation steps that only [`BROWSER`] and [`LAST`] need.
const PACKAGES: [SuiteStep; 4] = [
    part("setup: npm packages", tools::npm_packages),
    part("setup: bindgen", tools::bindgen),
    part("setup: client libraries", clients::npm_packages),
    part("setup: web3.py", clients::python_packages),
];

/// Checks of the host's code. They run at the same time as [`BROWSER`]: each list leaves one of two cores idle at times, for example while it links
/// a module or waits for a server, and the two build into different output folders of cargo.
const HOST: [SuiteStep; 7] = [
    part("format", format),
    part("documents", links::check),
    part("units and balancer", units::check),
    part("specification", spec::check),
    part("dependencies", dependencies::check),
    part("packages", packages::check),
    part("tests: core and native", host_tests),
];

/// Checks that mostly compile. They run after [`BROWSER`], at the same time as the tests of [`HOST`], which mostly wait for servers, and as
/// [`LAST`]; at a lower priority, so that they do not delay the tests. The first of these checks waits for cargo's lock until [`HOST`] has built its
/// tests.
const COMPILED: [SuiteStep; 7] = [
    part("instructions", instructions::check),
    part("tests: documentation", doc_tests),
    part("examples", examples),
    part("lint", lint),
    part("api documentation", api_docs),
    part("public api", api::check),
    part("bare metal builds", bare),
];

/// Checks of the browser package, after [`PACKAGES`].
const BROWSER: [SuiteStep; 4] = [
    part("wasm: verify-only", |log| wasm::build(log, &wasm::ARTEFACTS[0])),
    part("wasm: light client", |log| wasm::build(log, &wasm::ARTEFACTS[1])),
    part("wasm: development chain", |log| wasm::build(log, &wasm::ARTEFACTS[2])),
    part("wasm: any network", |log| wasm::build(log, &wasm::ARTEFACTS[3])),
];

/// Checks that need the results of [`HOST`] and [`BROWSER`].
const LAST: [SuiteStep; 4] = [
    part("tests: client libraries", clients::test),
    part("tests: built package", engines::package),
    part("tests: page", page::test),
    part("tests: package and page in Firefox", page::test_in_firefox),
];

/// Checks that only `--full` runs: longer forms of tests that are part of every run, tests with large packages of the
/// registries, and builds that compile all dependencies again.
const FULL: [SuiteStep; 17] = [
    part("tests: long runs", long_runs),
    part("tests: whole service", whole_service),
    part("wasm: reproducible", wasm::reproducible),
    part("tests: core in WebAssembly", engines::core),
    part("tests: whole package in Firefox", engines::package_in_firefox),
    part("tests: client libraries, service", clients::service),
    part("tests: web3.js, cast and forge", projects::keyed),
    part("tests: hardhat projects", projects::hardhat),
    part("tests: indexer, bundler and contracts", projects::on_top),
    part("tests: example projects", projects::examples),
    part("tests: page in the program", page::test_embedded),
    part("tests: admin page", page::test_admin),
    part("documentation: features", features::documentation),
    part("oldest compiler", oldest_compiler),
    part("other systems", other_systems),
    part("packages: dry run", packages::dry_run),
    part("release", release::check),
];

/// Checks that every commit passes: those of [`HOST`] that take seconds, and the tests of the core and of the native
/// host but the longest.
const QUICK: [SuiteStep; 5] = [
    part("format", format),
    part("documents", links::check),
    part("specification", spec::check),
    part("dependencies", dependencies::check),
    part("tests: quick", quick_tests),
];

/// Checks that run beside [`QUICK`].
const QUICK_COMPILED: [SuiteStep; 2] =
    [part("instructions", instructions::check), part("lint: workspace", lint_workspace)];

/// The arguments of a task.
struct Options<'a> {
    quick: bool,
    full: bool,
    /// Whether steps run one at a time and their output is printed.
    verbose: bool,
    /// Words of which one must be in the name of a step; all steps if there are none.
    parts: Vec<&'a str>,
}

impl Options<'_> {
    /// Whether a step is to run.
    fn wants(&self, part: &SuiteStep) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|word| part.name.contains(word))
    }
}

/// Reads the arguments of a task.
fn options<'a>(args: &[&'a str]) -> Options<'a> {
    let flag = |names: &[&str]| args.iter().any(|a| names.contains(a));
    Options {
        quick: flag(&["--quick"]),
        full: flag(&["--full"]),
        verbose: flag(&["-v", "--verbose"]),
        parts: args.iter().copied().filter(|a| !a.starts_with('-')).collect(),
    }
}

/// Installs missing tools, then runs every check, or those whose names contain one of the given words.
pub(crate) fn test(args: &[&str]) -> ExitCode {
    if args.contains(&"--list") {
        let names = HOST.iter().chain(&COMPILED).chain(&BROWSER).chain(&LAST);
        names.for_each(|part| println!("{}", part.name));
        QUICK.iter().chain(&QUICK_COMPILED).for_each(|part| println!("{} (--quick)", part.name));
        FULL.iter().for_each(|part| println!("{} (--full)", part.name));
        return ExitCode::SUCCESS;
    }
    let options = options(args);
    let run = SuiteRun::new(options.verbose);
    if !install(&run, &TOOLCHAIN) {
        return run.finish();
    }
    if options.quick {
        quick(&run, &options);
        return run.finish();
    }
    let compiled = || check(&run, &options, &COMPILED);
    let browser = || {
        let installed = install(&run, &PACKAGES);
        if installed {
            check(&run, &options, &BROWSER);
        }
        installed
    };
    // If the commands' output is shown, the steps run one at a time.
    if options.verbose {
        check(&run, &options, &HOST);
        compiled();
        if browser() {
            check(&run, &options, &LAST);
        }
    } else {
        std::thread::scope(|scope| {
            let host = scope.spawn(|| check(&run, &options, &HOST));
            let installed = browser();
            scope.spawn(|| {
                lower_priority();
                compiled();
            });
            if host.join().is_ok() && installed {
                check(&run, &options, &LAST);
            }
        });
    }
    if options.full {
        check(&run, &options, &FULL);
    }
    run.finish()
}

/// Runs the checks that every commit passes.
fn quick(run: &SuiteRun, options: &Options) {
    std::thread::scope(|scope| {
        if options.verbose {
            check(run, options, &QUICK);
        } else {
            scope.spawn(|| check(run, options, &QUICK));
        }
        check(run, options, &QUICK_COMPILED);
    });
}

/// Installs missing tools.
pub(crate) fn setup(args: &[&str]) -> ExitCode {
    let run = SuiteRun::new(options(args).verbose);
    prepare(&run);
    run.finish()
}

/// Builds the browser package.
pub(crate) fn wasm(args: &[&str]) -> ExitCode {
    let run = SuiteRun::new(options(args).verbose);
    modules(&run);
    run.finish()
}

/// Builds the browser package, from it the page, and the program with the page in it.
pub(crate) fn build(args: &[&str]) -> ExitCode {
    let run = SuiteRun::new(options(args).verbose);
    let _ = modules(&run)
        && run.step("setup: packages of the page", page::npm_packages)
        && run.step("page", page::for_program)
        && run.step("program", |log| {
            run_command(
                log,
                Cmd::new("cargo build --locked --release --package rootlight-cli --bin rootlight"),
            )
        });
    run.finish()
}

/// Builds the browser package's modules. Returns whether all succeeded.
fn modules(run: &SuiteRun) -> bool {
    prepare(run)
        && wasm::ARTEFACTS.iter().all(|artefact| run.step(artefact.name, |log| wasm::build(log, artefact)))
}

/// Installs all tools and packages. Returns whether that succeeded.
fn prepare(run: &SuiteRun) -> bool {
    install(run, &TOOLCHAIN) && install(run, &PACKAGES)
}

/// Runs installation steps up to the first that fails. Returns whether all succeeded.
fn install(run: &SuiteRun, parts: &[SuiteStep]) -> bool {
    parts.iter().all(|part| run.step(part.name, part.work))
}

/// Lowers the priority of this thread and of the commands that it starts. If that fails, they run at the usual priority.
fn lower_priority() {
    let thread = std::fs::read_link("/proc/thread-self").ok();
    let thread = thread.as_deref().and_then(|path| path.file_name()?.to_str().map(str::to_owned));
    let _ = thread.and_then(|thread| crate::shell::ask("renice", &["-n", "10", "-p", &thread]));
}

/// Runs the steps that the user wants.
fn check(run: &SuiteRun, options: &Options, parts: &[SuiteStep]) {
    for part in parts.iter().filter(|part| options.wants(part)) {
        run.step(part.name, part.work);
    }
}

/// Runs a command; the step succeeds if the command does.
fn run_command(log: &mut StepOutput, cmd: Cmd) -> StepResult {
    log.run(cmd).map(|_| String::new())
}

/// Checks the format of the Rust code.
fn format(log: &mut StepOutput) -> StepResult {
    run_command(log, Cmd::new("cargo fmt --all --check"))
}

/// Runs the examples in the documentation of the crates that [`host_tests`] tests.
fn doc_tests(log: &mut StepOutput) -> StepResult {
    run_command(log, host_crates("test").arg("--doc"))
}

/// Runs every example of the core, and their tests.
fn examples(log: &mut StepOutput) -> StepResult {
    let folder = crate::shell::root().join("examples");
    let entries = std::fs::read_dir(&folder).map_err(|e| format!("examples: {e}"))?;
    let files = entries.flatten().map(|entry| entry.path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let mut names: Vec<String> =
        sources.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
    names.sort();
    let named = |cmd: Cmd| names.iter().fold(cmd, |cmd, name| cmd.args(&["--example", name]));
    log.run(named(host_crates("test")))?;
    log.run(named(host_crates("build")))?;
    for name in &names {
        log.run(Cmd::program(&crate::shell::target_dir().join("debug/examples").join(name)))?;
    }
    Ok(format!("{} examples", names.len()))
}

/// Lints the workspace, then the program as it is built by default, and the core without features and with each feature that
/// leaves code out, alone.
fn lint(log: &mut StepOutput) -> StepResult {
    lint_workspace(log)?;
    let default = Cmd::new("cargo clippy --locked --package rootlight-node --package rootlight-cli");
    log.run(default.args(&DENY))?;
    for features in features::ALONE {
        let core = Cmd::new("cargo clippy --locked --package rootlight --lib --no-default-features");
        log.run(core.args(&["--features", features]).args(&DENY))?;
    }
    Ok(format!("{} feature sets of the core alone", features::ALONE.len()))
}

/// Makes warnings of clippy errors.
const DENY: [&str; 3] = ["--", "-D", "warnings"];

/// Lints the workspace with all its targets.
fn lint_workspace(log: &mut StepOutput) -> StepResult {
    let clippy = Cmd::new("cargo clippy --locked --workspace --all-targets");
    let clippy = clippy.args(&["--features", "rootlight-wasm/dev,rootlight-bench/instructions"]);
    run_command(log, with_rocksdb(clippy).args(&DENY))
}

/// Documents the libraries and programs. With an example among them and the features of [`lint`], cargo chooses the
/// same features of dependencies as there, and checks none of them once more.
fn api_docs(log: &mut StepOutput) -> StepResult {
    let docs = Cmd::new("cargo doc --locked --workspace --no-deps --features rootlight-wasm/dev");
    let targets = docs.args(&["--lib", "--bins", "--example", "dev_chain"]);
    run_command(log, with_rocksdb(targets).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Compiles the published crates with the oldest supported compiler, `rust-version` in Cargo.toml.
fn oldest_compiler(log: &mut StepOutput) -> StepResult {
    let manifest = std::fs::read_to_string(crate::shell::root().join("Cargo.toml"));
    let manifest = manifest.map_err(|e| format!("Cargo.toml: {e}"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap_or_default();
    let version = version.trim_matches('"');
    log.run(Cmd::new("rustup toolchain install --no-self-update --profile minimal").arg(version))?;
    let check = Cmd::new("rustup run").args(&[version, "cargo", "check", "--locked"]);
    let check = packages::PUBLISHED.iter().fold(check, |cmd, name| cmd.args(&["--package", name]));
    // A folder of its own: artefacts of another compiler are not reused.
    let folder = crate::shell::target_dir().join("oldest");
    run_command(log, check.env("CARGO_TARGET_DIR", folder)).map(|_| format!("Rust {version}"))
}

/// Compiles the crates that use no standard library for two targets without an operating system: builds them for one target, and only checks them
/// for the other, which still finds every use of an item that the target lacks. Both use the macros that the tests were built with.
fn bare(log: &mut StepOutput) -> StepResult {
    let [built, checked] = tools::BARE;
    log.run(for_target("build", built))?;
    log.run(for_target("check", checked))?;
    Ok(String::new())
}

/// Checks the crates without C code for macOS and Windows. The other crates depend on the crate `ring`, which needs a C compiler for the target.
fn other_systems(log: &mut StepOutput) -> StepResult {
    for target in tools::SYSTEMS {
        log.run(Cmd::new("rustup target add").arg(target))?;
        log.run(for_target("check", target).args(&["--package", "rootlight-limits"]))?;
    }
    Ok(tools::SYSTEMS.join(", "))
}

/// A cargo command for the crates that use no standard library. They are compiled without optimisation, because the result is not run.
fn for_target(command: &str, target: &str) -> Cmd {
    let cmd = Cmd::new("cargo").args(&[command, "--locked", "--lib", "--target", target]);
    cmd.args(&["--package", "rootlight", "--package", "rootlight-p2p"])
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0")
}

/// Runs longer forms of tests with random data. Environment variables set the number of scenarios, rounds and accounts; a normal run has fewer.
fn long_runs(log: &mut StepOutput) -> StepResult {
    let tests = [
        "random_scenarios",
        "mixtures_of_",
        "statements_of_miners_add_no_work",
        "a_killed_process",
        "recorded_requests_are_answered_or_refused",
        "balance_of_on_a_large_state",
    ];
    let cmd = host_crates("test").args(&["--no-fail-fast", "--"]).args(&tests);
    let cmd = cmd.env("ROOTLIGHT_SCENARIOS", "2000").env("ROOTLIGHT_STORE_ROUNDS", "200");
    log.run(cmd.env("ROOTLIGHT_ACCOUNTS", "1000000"))?;
    // Tests of Bitcoin's chain against a simple model, and of the parts of it that servers send to clients.
    let bitcoin = ["--lib", "--", "bitcoin::model_test", "bitcoin::served_test"];
    run_command(log, host_crates("test").args(&bitcoin).env("PROPTEST_CASES", "4000"))
}

/// Runs the tests in which each fault happens once to a whole service; other runs ignore them.
fn whole_service(log: &mut StepOutput) -> StepResult {
    run_command(log, host_crates("test").args(&["--test", "service", "--", "--ignored", "--nocapture"]))
}
