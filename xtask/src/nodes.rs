//! `cargo xtask bench nodes` and `light`: the development chain beside other nodes, and the light client, over loopback.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::clients;
use crate::shell::{root, target_dir, Cmd, Log};
use crate::steps::{Outcome, Run};

/// The release of anvil that rates are compared with.
const ANVIL: &str = "1.7.1";

/// Builds and installs what is compared, then runs bench/compare. The reference node takes part where `REFERENCE` and
/// `REFERENCE_EXECUTE` say how to start it.
pub(crate) fn run() -> ExitCode {
    let mut run = Run::new(false);
    let ready = run.step("setup: packages from npm", clients::npm_packages)
        && run.step("setup: anvil", anvil)
        && run.step("build", build);
    let outcome =
        ready.then(|| scripts(&["reads", "transfers"])).map_or(Ok(()), |done| done.and_then(|()| import()));
    run.finish_with(outcome)
}

/// `cargo xtask bench light`: the light client over loopback. The real headers take part where the recordings are.
pub(crate) fn light() -> ExitCode {
    let mut run = Run::new(false);
    let ready = run.step("setup: packages from npm", clients::npm_packages) && run.step("build", build);
    let outcome = if ready { scripts(&["light"]) } else { Ok(()) };
    run.finish_with(outcome)
}

/// anvil's package for this system; its binary stands in it as it is.
fn anvil_package() -> String {
    let system = match std::env::consts::OS {
        "macos" => "darwin",
        "windows" => "win32",
        other => other,
    };
    let processor = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    format!("@foundry-rs/anvil-{system}-{processor}")
}

pub(crate) fn anvil(log: &mut Log) -> Outcome {
    let package = format!("{}@{ANVIL}", anvil_package());
    let install = Cmd::new("npm install --no-audit --no-fund --no-save --ignore-scripts --prefix");
    log.run(install.arg(target_dir().join("anvil")).arg(package))?;
    Ok(ANVIL.into())
}

pub(crate) fn build(log: &mut Log) -> Outcome {
    log.run(Cmd::new("cargo build --locked --release --package rootlight-native"))?;
    log.run(Cmd::new("node tests/clients/compile.mjs").arg(target_dir().join("clients")))?;
    Ok(String::new())
}

/// The 1,200 main network headers, beside the repository or where `ROOTLIGHT_SHARED` says.
pub(crate) fn headers() -> Option<PathBuf> {
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    let file = shared.join("realdata/headers/mainnet_4479841_iris_run1200.json");
    file.is_file().then_some(file)
}

/// A script of bench/compare, told where everything is that it may need.
pub(crate) fn script(name: &str) -> Cmd {
    Cmd::new("node")
        .arg(root().join("bench/compare").join(format!("{name}.mjs")))
        .env("ROOTLIGHT", target_dir().join("release/rootlight"))
        .env("ROOTLIGHT_TOKEN", target_dir().join("clients/Token.json"))
        .env("ANVIL", target_dir().join("anvil/node_modules").join(anvil_package()).join("bin/anvil"))
        .env("ROOTLIGHT_HEADERS", headers().unwrap_or_default())
}

fn scripts(names: &[&str]) -> Result<(), String> {
    names.iter().try_for_each(|name| script(name).run_attached())
}

/// Only with the reference node.
fn import() -> Result<(), String> {
    if std::env::var_os("REFERENCE").is_none() || std::env::var_os("REFERENCE_EXECUTE").is_none() {
        println!("without the reference node: REFERENCE and REFERENCE_EXECUTE are not set (bench/compare/import.mjs)");
        return Ok(());
    }
    scripts(&["import"])
}
