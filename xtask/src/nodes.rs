//! `cargo xtask bench nodes` and `light`: compare the development chain with other nodes, and measure the light
//! client, over loopback.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::clients;
use crate::shell::{Cmd, Log, root, target_dir};
use crate::steps::{Outcome, Run};

/// The release of foundry's programs: anvil to compare with, and cast.
pub(crate) const FOUNDRY: &str = "1.7.1";

/// Builds and installs the nodes, then runs the scripts of bench/compare. The reference node takes part if
/// `REFERENCE` and `REFERENCE_EXECUTE` say how to start it.
pub(crate) fn run() -> ExitCode {
    let run = Run::new(false);
    let ready = run.step("setup: packages from npm", clients::npm_packages)
        && run.step("setup: anvil", anvil)
        && run.step("build", build);
    let outcome =
        ready.then(|| scripts(&["reads", "transfers"])).map_or(Ok(()), |done| done.and_then(|()| import()));
    run.finish_with(outcome)
}

/// `cargo xtask bench rpc`: the processor time of requests, beside anvil and HTTP alone.
pub(crate) fn rpc(workloads: &[&str]) -> ExitCode {
    let run = Run::new(false);
    let ready = run.step("setup: packages from npm", clients::npm_packages)
        && run.step("setup: anvil", anvil)
        && run.step("build", build)
        && run.step("build: HTTP alone, and a client", |log: &mut Log| {
            let build = "cargo build --locked --release --package rootlight-native --example http_floor --example paced_client";
            log.run(Cmd::new(build)).map(|_| String::new())
        });
    let examples = target_dir().join("release/examples");
    let (floor, paced) = (examples.join("http_floor"), examples.join("paced_client"));
    let measure = || script("rpc").args(workloads).env("FLOOR", floor).env("PACED", paced).run_attached();
    let outcome = if ready { measure() } else { Ok(()) };
    run.finish_with(outcome)
}

/// `cargo xtask bench logs`: searches for logs in a million blocks. Needs 8 GB of memory for them.
pub(crate) fn logs() -> ExitCode {
    let run = Run::new(false);
    let built = run.step("build", |log: &mut Log| {
        let build = "cargo build --locked --release --package rootlight-native --bin rootlight --example http_floor --example log_index";
        log.run(Cmd::new(build)).map(|_| String::new())
    });
    let examples = target_dir().join("release/examples");
    let search = || Cmd::program(&examples.join("log_index")).run_attached();
    let serve = || script("logs").env("FLOOR", examples.join("http_floor")).run_attached();
    let outcome = if built { search().and_then(|()| serve()) } else { Ok(()) };
    run.finish_with(outcome)
}

/// `cargo xtask bench light`: the light client over loopback. Includes real headers if the recordings are found.
pub(crate) fn light() -> ExitCode {
    let run = Run::new(false);
    let ready = run.step("setup: packages from npm", clients::npm_packages) && run.step("build", build);
    let outcome = if ready { scripts(&["light"]) } else { Ok(()) };
    run.finish_with(outcome)
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

pub(crate) fn anvil(log: &mut Log) -> Outcome {
    let package = format!("{}@{FOUNDRY}", foundry_package("anvil"));
    let install = Cmd::new("npm install --no-audit --no-fund --no-save --ignore-scripts --prefix");
    log.run(install.arg(target_dir().join("anvil")).arg(package))?;
    Ok(FOUNDRY.into())
}

pub(crate) fn build(log: &mut Log) -> Outcome {
    log.run(Cmd::new("cargo build --locked --release --package rootlight-native"))?;
    log.run(Cmd::new("node tests/clients/compile.mjs").arg(target_dir().join("clients")))?;
    Ok(String::new())
}

/// The file of 1,200 main network headers, in the folder that `ROOTLIGHT_SHARED` names (default `../shared`); `None`
/// if it is missing.
pub(crate) fn headers() -> Option<PathBuf> {
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let file = shared.join("realdata/headers/mainnet_4479841_iris_run1200.json");
    file.is_file().then_some(file)
}

/// The command for a script of bench/compare, with the paths that it needs in environment variables.
pub(crate) fn script(name: &str) -> Cmd {
    Cmd::new("node")
        .arg(root().join("bench/compare").join(format!("{name}.mjs")))
        .env("ROOTLIGHT", target_dir().join("release/rootlight"))
        .env("ROOTLIGHT_TOKEN", target_dir().join("clients/Token.json"))
        .env(
            "ANVIL",
            target_dir().join("anvil/node_modules").join(foundry_package("anvil")).join("bin/anvil"),
        )
        .env("ROOTLIGHT_HEADERS", headers().unwrap_or_default())
}

fn scripts(names: &[&str]) -> Result<(), String> {
    names.iter().try_for_each(|name| script(name).run_attached())
}

/// Runs the import comparison if the reference node is available.
fn import() -> Result<(), String> {
    if std::env::var_os("REFERENCE").is_none() || std::env::var_os("REFERENCE_EXECUTE").is_none() {
        println!("import skipped: REFERENCE and REFERENCE_EXECUTE are not set (bench/compare/import.mjs)");
        return Ok(());
    }
    scripts(&["import"])
}
