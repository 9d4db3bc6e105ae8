//! Tests that only `cargo xtask test --full` runs, with large packages of the registries: web3.js and foundry's cast with API keys; on the
//! development chain a script of foundry's forge, projects of Hardhat, an indexer, a bundler and contracts; and the example projects of
//! the npm package.

use std::path::PathBuf;

use crate::clients::Built;
use crate::measure::{foundry, foundry_package};
use crate::shell::{Cmd, StepOutput, ask, target_dir};
use crate::steps::StepResult;
use crate::tools;

/// The release of Node.js for Hardhat 3, which needs 22.13 or newer.
const NODE: &str = "22.23.3";

/// Tests web3.js and foundry's cast with an API key in the path of the URL, web3.js over the npm package's providers, and a script of foundry's
/// forge.
pub(crate) fn keyed(log: &mut StepOutput) -> StepResult {
    foundry(log, "cast")?;
    packages(log, "web3js", None)?;
    let program = target_dir().join("cast/node_modules").join(foundry_package("cast")).join("bin/cast");
    let tests = Cmd::new("node --test --test-reporter=tap --test-timeout=120000");
    let files = ["tests/clients/cast.test.mjs", "tests/clients/web3js/web3.test.mjs"];
    let built = Built::new(log)?;
    log.run(built.with(tests.args(&files)).env("CAST", &program))?;
    log.run(built.in_service(&files).env("CAST", &program))?;
    let provider = Cmd::new("node --test --test-reporter=tap --test-timeout=120000");
    log.run(built.with(provider.arg("tests/clients/web3js/provider.test.mjs")))?;
    foundry(log, "forge")?;
    let program = target_dir().join("forge/node_modules").join(foundry_package("forge")).join("bin/forge");
    let script =
        Cmd::new("node --test --test-reporter=tap --test-timeout=120000 tests/clients/forge.test.mjs");
    log.run(built.with(script).env("FORGE", &program))?;
    Ok(String::new())
}

/// Runs OpenZeppelin's test helpers on the development chain, and the tests of a project of Hardhat 2 and of one of
/// Hardhat 3, on Hardhat's own network and on the development chain.
pub(crate) fn hardhat(log: &mut StepOutput) -> StepResult {
    let (built, newer_node) = (Built::new(log)?, node(log)?);
    packages(log, "openzeppelin", None)?;
    let helpers = Cmd::new("node --test --test-reporter=tap --test-timeout=120000");
    log.run(built.with(helpers.arg("tests/clients/openzeppelin/time.test.mjs")))?;
    for (project, path) in [("hardhat2", None), ("hardhat3", newer_node)] {
        packages(log, project, path.as_ref())?;
        let run = Cmd::new("node tests/clients/hardhat.mjs").arg(project);
        let run = built.with(run).env("HARDHAT_DISABLE_TELEMETRY_PROMPT", "true");
        log.run(with_path(run, path.as_ref()))?;
    }
    // The program of the npm package is a node for Hardhat too.
    let run = built.with_package(Cmd::new("node tests/clients/hardhat.mjs hardhat2 package"));
    log.run(run.env("HARDHAT_DISABLE_TELEMETRY_PROMPT", "true"))?;
    Ok(String::new())
}

/// Runs the indexer Ponder and the bundler Alto as programs of their own on development chains, and tests of the contracts
/// that the packages of Safe and OpenZeppelin bring.
pub(crate) fn on_top(log: &mut StepOutput) -> StepResult {
    let built = Built::new(log)?;
    for (folder, file) in [("contracts", "contracts"), ("bundler", "alto"), ("ponder", "ponder")] {
        packages(log, folder, None)?;
        let tests = Cmd::new("node --test --test-reporter=tap --test-timeout=1200000");
        // Ponder takes minutes for 2,000 blocks. Its test fails by itself if Ponder makes no progress.
        log.run(built.with(tests.arg(format!("tests/clients/{folder}/{file}.test.mjs"))).limit(20 * 60))?;
    }
    Ok(String::new())
}

/// Runs the projects in `examples/` with the package's tarball and packages of the registry, in Node.js and in a browser.
pub(crate) fn examples(log: &mut StepOutput) -> StepResult {
    let built = Built::new(log)?;
    let in_browser = |run: Cmd| match tools::browser() {
        Some(browser) => built.with(run).env("CHROMIUM", browser),
        None => built.with(run),
    };
    log.run(in_browser(Cmd::new("node --test --test-reporter=tap tests/clients/vite.test.mjs")))?;
    let run = in_browser(Cmd::new("node tests/clients/examples.mjs"));
    // The examples install several hundred packages and build with five bundlers.
    log.run(run.env("CARGO_TARGET_DIR", target_dir()).limit(20 * 60))?;
    Ok(String::new())
}

/// Installs the packages of a folder's lock file. `path` is the folder of another Node.js.
fn packages(log: &mut StepOutput, folder: &str, path: Option<&PathBuf>) -> StepResult {
    // Not `npm ci`: it refuses a lock file without the packages of other systems, which npm leaves out at times.
    let install = Cmd::new("npm install --no-save --no-audit --no-fund --ignore-scripts");
    log.run(with_path(install.within(&format!("tests/clients/{folder}")), path))
}

/// Installs a Node.js that is new enough for Hardhat 3, and returns its folder; `None` if the one on PATH is new enough.
fn node(log: &mut StepOutput) -> Result<Option<PathBuf>, String> {
    let version = ask("node", &["--version"]).unwrap_or_default();
    let mut numbers = version.trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
    if (numbers.next(), numbers.next()) >= (Some(22), Some(13)) {
        return Ok(None);
    }
    let processor = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "x64" };
    let system = if std::env::consts::OS == "macos" { "darwin" } else { "linux" };
    let package = format!("node-{system}-{processor}");
    let folder = target_dir().join("node");
    let install =
        Cmd::new("npm install --no-audit --no-fund --no-save --ignore-scripts --prefix").arg(&folder);
    log.run(install.arg(format!("{package}@{NODE}")))?;
    Ok(Some(folder.join("node_modules").join(package).join("bin")))
}

/// Puts a folder in front of PATH.
fn with_path(cmd: Cmd, folder: Option<&PathBuf>) -> Cmd {
    let Some(folder) = folder else { return cmd };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let all = std::iter::once(folder.clone()).chain(std::env::split_paths(&path));
    match std::env::join_paths(all) {
        Ok(joined) => cmd.env("PATH", joined),
        Err(_) => cmd,
    }
}
