//! Tests of client libraries (ethers, viem, web3.py) against the development chain.

use std::path::PathBuf;

use crate::cargo::host_crates;
use crate::shell::{Cmd, Log, ask, find, root, target_dir};
use crate::steps::Outcome;
use crate::tools::{self, newer};

fn folder() -> PathBuf {
    root().join("tests/clients")
}

/// Installs the JavaScript libraries and the Solidity compiler in tests/clients/package-lock.json.
pub(crate) fn npm_packages(log: &mut Log) -> Outcome {
    let lock = folder().join("package-lock.json");
    if newer(&folder().join("node_modules/.package-lock.json"), &lock) {
        return Ok("installed already".into());
    }
    log.run(Cmd::new("npm ci --no-audit --no-fund --ignore-scripts").within("tests/clients"))?;
    Ok("installed".into())
}

/// Installs web3.py in a Python environment under target/.
pub(crate) fn python_packages(log: &mut Log) -> Outcome {
    let (wanted, stamp) = (folder().join("requirements.txt"), environment().join("installed"));
    if newer(&stamp, &wanted) {
        return Ok("installed already".into());
    }
    if find("python3").is_none() || ask("python3", &["-c", "import ensurepip"]).is_none() {
        tools::debian_packages(log, &["python3", "python3-venv"])?;
    }
    log.run(Cmd::new("python3 -m venv --clear").arg(environment()))?;
    log.run(Cmd::program(&python()).args(&["-m", "pip", "install", "--quiet", "-r"]).arg(wanted))?;
    std::fs::write(&stamp, "").map_err(|e| format!("{}: {e}", stamp.display()))?;
    Ok("installed".into())
}

fn environment() -> PathBuf {
    target_dir().join("python")
}

fn python() -> PathBuf {
    environment().join("bin/python")
}

/// Compiles the test contract and returns its path.
pub(crate) fn compile(log: &mut Log) -> Result<PathBuf, String> {
    let made = target_dir().join("clients");
    log.run(Cmd::new("node tests/clients/compile.mjs").arg(&made))?;
    Ok(made.join("Token.json"))
}

/// Builds the server and the test contract, then runs all libraries' tests.
pub(crate) fn test(log: &mut Log) -> Outcome {
    // The program is built with the tests that start it.
    log.run(host_crates("test").args(&["--no-run", "--test", "program"]))?;
    let token = compile(log)?;
    let with = |cmd: Cmd| {
        cmd.env("ROOTLIGHT", target_dir().join("debug/rootlight"))
            .env("ROOTLIGHT_TOKEN", &token)
            .limit(5 * 60)
    };
    let files = ["ethers", "openrpc", "viem"].map(|name| format!("tests/clients/{name}.test.mjs"));
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    log.run(with(Cmd::new("node --test --test-reporter=tap").args(&files)))?;
    log.run(with(Cmd::program(&python()).args(&["tests/clients/web3_test.py", "-v"])))?;
    Ok(String::new())
}
