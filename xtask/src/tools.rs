//! Installs missing tools at fixed versions, or says what to install if that needs an administrator.

use std::path::{Path, PathBuf};

use crate::shell::{Cmd, StepOutput, ask, find, root, target_dir, tools_dir};
use crate::steps::StepResult;

/// The Rust target of the browser package.
pub(crate) const WASM: &str = "wasm32-unknown-unknown";
/// Rust targets without an operating system. Building the core for them shows that it needs none.
pub(crate) const BARE: [&str; 2] = ["riscv32imac-unknown-none-elf", "thumbv7em-none-eabihf"];
/// Rust targets of macOS and Windows, for which the crates without C code are checked.
pub(crate) const SYSTEMS: [&str; 2] = ["aarch64-apple-darwin", "x86_64-pc-windows-gnu"];

/// The version of the crate `wasm-bindgen` in Cargo.lock, and of the programs that read the data which that crate writes into modules.
const WASM_BINDGEN: &str = "0.2.130";
/// Versions of tools that are built from crates.io.
const CARGO_FUZZ: &str = "0.13.2";
const CARGO_DENY: &str = "0.20.2";
const WASM_PACK: &str = "0.15.1";
const GECKODRIVER: &str = "0.37.1";
/// The version of the `gungraun` crate in bench/Cargo.toml.
const GUNGRAUN: &str = "0.20.0";

/// Names under which Chromium is found on PATH.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Installs the Rust targets with rustup.
pub(crate) fn rust_targets(log: &mut StepOutput) -> StepResult {
    let have = ask("rustup", &["target", "list", "--installed"])
        .ok_or("rustup is missing: install Rust through https://rustup.rs")?;
    let missing: Vec<&str> =
        [WASM].into_iter().chain(BARE).filter(|t| !have.lines().any(|l| l.trim() == *t)).collect();
    if missing.is_empty() {
        return Ok("installed already".into());
    }
    log.run(Cmd::new("rustup target add").args(&missing))?;
    Ok(format!("added {}", missing.join(", ")))
}

/// Installs a C compiler (for linking, and for the C library secp256k1), RocksDB, PostgreSQL, Redis, libfaketime,
/// HAProxy, Valgrind, Chromium and its driver; checks that Node.js is installed.
pub(crate) fn system_packages(log: &mut StepOutput) -> StepResult {
    let mut missing = Vec::new();
    if find("cc").is_none() {
        missing.extend(["gcc", "libc6-dev"]);
    }
    if browser().is_none() {
        missing.push("chromium");
    }
    if find("chromedriver").is_none() {
        missing.push("chromium-driver");
    }
    if rocksdb().is_none() || !Path::new(ROCKSDB_INCLUDE).join("rocksdb/c.h").exists() {
        missing.push("librocksdb-dev");
    }
    if !libclang() {
        missing.push("libclang-dev");
    }
    if !postgresql() {
        missing.push("postgresql");
    }
    // `redis-tools` contains the server program under the name `redis-check-rdb`. Debian's package `redis-server` would also start a server for
    // the whole system.
    if ["redis-server", "redis-check-rdb", "valkey-server"].into_iter().all(|name| find(name).is_none()) {
        missing.push("redis-tools");
    }
    if !libraries().any(|folder| folder.join("faketime/libfaketime.so.1").exists()) {
        missing.push("libfaketime");
    }
    // Debian installs HAProxy in a folder that is not on the PATH of users.
    if find("haproxy").is_none() && !Path::new("/usr/sbin/haproxy").exists() {
        missing.push("haproxy");
    }
    // The step `instructions` needs it.
    if find("valgrind").is_none() {
        missing.push("valgrind");
    }
    if find("node").is_none() || find("npm").is_none() {
        return Err("Node.js 20 or newer with npm is missing: install it, then run this again".into());
    }
    debian_packages(log, &missing)
}

/// The folder of the headers of the system's RocksDB.
pub(crate) const ROCKSDB_INCLUDE: &str = "/usr/include";

/// The folder of the system's RocksDB.
pub(crate) fn rocksdb() -> Option<PathBuf> {
    libraries().find(|folder| folder.join("librocksdb.so").exists())
}

/// Whether libclang is installed, which reads C headers for the bindings to RocksDB.
fn libclang() -> bool {
    let mut below = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    std::env::var_os("LIBCLANG_PATH").is_some()
        || below.any(|entry| {
            entry.file_name().to_string_lossy().starts_with("llvm")
                && entry.path().join("lib/libclang.so").exists()
        })
}

/// Whether the PostgreSQL server is installed, for the tests of the index. Debian installs it in a folder that is not on PATH.
fn postgresql() -> bool {
    let mut debian = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    find("initdb").is_some() || debian.any(|version| version.path().join("bin/initdb").exists())
}

/// Folders of shared libraries on Debian and on other systems.
fn libraries() -> impl Iterator<Item = PathBuf> {
    ["x86_64-linux-gnu", "aarch64-linux-gnu", ""].into_iter().map(|folder| Path::new("/usr/lib").join(folder))
}

/// Installs packages with apt-get, or says how if that needs an administrator.
pub(crate) fn debian_packages(log: &mut StepOutput, missing: &[&str]) -> StepResult {
    if missing.is_empty() {
        return Ok("installed already".into());
    }
    let packages = missing.join(" ");
    let root_user = ask("id", &["-u"]).as_deref() == Some("0");
    if !root_user || find("apt-get").is_none() {
        return Err(format!(
            "missing: {packages}. Install with: sudo apt-get update && sudo apt-get install -y {packages}"
        ));
    }
    let quiet = |line: &str| Cmd::new(line).env("DEBIAN_FRONTEND", "noninteractive");
    log.run(quiet("apt-get update -q"))?;
    log.run(quiet("apt-get install -q -y --no-install-recommends").args(missing))?;
    Ok(format!("installed {packages}"))
}

/// Returns Chromium's path: `$CHROMIUM`, or the first known name on PATH.
pub(crate) fn browser() -> Option<PathBuf> {
    let named = std::env::var_os("CHROMIUM").map(PathBuf::from);
    named.or_else(|| BROWSERS.iter().find_map(|b| find(b)))
}

/// Builds the program that generates the JavaScript side of modules, `xtask/bindgen`.
pub(crate) fn bindgen(log: &mut StepOutput) -> StepResult {
    for lock in ["Cargo.lock", "xtask/bindgen/Cargo.lock"] {
        let text = std::fs::read_to_string(root().join(lock)).map_err(|e| format!("{lock}: {e}"))?;
        let name = if lock == "Cargo.lock" { "wasm-bindgen" } else { "wasm-bindgen-cli-support" };
        if !text.contains(&format!("name = \"{name}\"\nversion = \"{WASM_BINDGEN}\"")) {
            return Err(format!(
                "{lock} has no {name} {WASM_BINDGEN}: the three versions in xtask and both lock files are one"
            ));
        }
    }
    let build = Cmd::new("cargo build --locked --manifest-path xtask/bindgen/Cargo.toml");
    log.run(build.env("CARGO_TARGET_DIR", bindgen_folder()))?;
    Ok(String::new())
}

/// The output folder of cargo for that program. Its dependencies are not those of the workspace.
fn bindgen_folder() -> PathBuf {
    target_dir().join("bindgen")
}

/// The program that [`bindgen`] builds.
pub(crate) fn bindgen_program() -> PathBuf {
    bindgen_folder().join("debug/rootlight-bindgen")
}

/// Installs wasm-bindgen's test runner, for `cargo xtask bench`.
pub(crate) fn wasm_test_runner(log: &mut StepOutput) -> StepResult {
    install(log, "wasm-bindgen-test-runner", "wasm-bindgen-cli", WASM_BINDGEN)
}

/// Installs the program that runs benchmarks under Valgrind, and returns its path.
pub(crate) fn gungraun_runner(log: &mut StepOutput) -> Result<PathBuf, String> {
    let name = "gungraun-runner";
    install(log, name, name, GUNGRAUN)?;
    find(name).ok_or_else(|| format!("{name} is not on PATH"))
}

/// Installs wasm-pack, for `cargo xtask test --full`.
pub(crate) fn wasm_pack(log: &mut StepOutput) -> StepResult {
    install(log, "wasm-pack", "wasm-pack", WASM_PACK)
}

/// Installs Firefox's driver, for `cargo xtask test --full`.
pub(crate) fn geckodriver(log: &mut StepOutput) -> StepResult {
    install(log, "geckodriver", "geckodriver", GECKODRIVER)
}

/// Installs the client that measures requests, for `cargo xtask bench rpc`.
pub(crate) fn wrk(log: &mut StepOutput) -> StepResult {
    let missing: &[&str] = if find("wrk").is_none() { &["wrk"] } else { &[] };
    debian_packages(log, missing)
}

/// Installs Firefox, for `cargo xtask test --full`.
pub(crate) fn firefox(log: &mut StepOutput) -> StepResult {
    let missing: &[&str] = if find("firefox-esr").is_none() { &["firefox-esr"] } else { &[] };
    debian_packages(log, missing)
}

/// Installs cargo-fuzz, for `cargo xtask fuzz`.
pub(crate) fn cargo_fuzz(log: &mut StepOutput) -> StepResult {
    install(log, "cargo-fuzz", "cargo-fuzz", CARGO_FUZZ)
}

/// Installs cargo-deny, for the step `dependencies`.
pub(crate) fn cargo_deny(log: &mut StepOutput) -> StepResult {
    install(log, "cargo-deny", "cargo-deny", CARGO_DENY)
}

/// Builds a tool from crates.io unless the right version is installed.
///
/// Tools are built without optimisation: they run for seconds, and an optimised build takes eight times as long
/// (wasm-bindgen-cli on two cores: 40 s against 5 min 12 s).
fn install(log: &mut StepOutput, program: &str, package: &str, version: &str) -> StepResult {
    let found = |text: &str| text.split_whitespace().any(|w| w == version);
    if ask(program, &["--version"]).is_some_and(|t| found(&t)) {
        return Ok("installed already".into());
    }
    log.run(
        Cmd::new("cargo install --force --root")
            .arg(tools_dir())
            .args(&[package, "--version", version])
            .env("CARGO_TARGET_DIR", target_dir().join("tools-build"))
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_STRIP", "true"),
    )?;
    match ask(program, &["--version"]) {
        Some(t) if found(&t) => Ok("installed".into()),
        other => {
            Err(format!("{program} {version} was built, but PATH holds {other:?} before target/tools/bin"))
        }
    }
}

/// Installs the Python packages of a list (`requirements.txt`) in an environment under target/, unless they were installed from the same list
/// before. Returns the folder of its programs.
pub(crate) fn python_packages(
    log: &mut StepOutput,
    environment: &str,
    list: &str,
) -> Result<PathBuf, String> {
    let folder = target_dir().join(environment);
    let (programs, installed) = (folder.join("bin"), folder.join("requirements.txt"));
    if std::fs::read_to_string(&installed).is_ok_and(|text| text == list) {
        return Ok(programs);
    }
    if find("python3").is_none() || ask("python3", &["-c", "import ensurepip"]).is_none() {
        debian_packages(log, &["python3", "python3-venv"])?;
    }
    log.run(Cmd::new("python3 -m venv --clear").arg(&folder))?;
    let wanted = folder.join("wanted.txt");
    let written = |e: std::io::Error| format!("{}: {e}", wanted.display());
    std::fs::write(&wanted, list).map_err(written)?;
    let install = Cmd::program(&programs.join("python")).args(&["-m", "pip", "install", "--quiet", "-r"]);
    log.run(install.arg(&wanted))?;
    // Last, so that the list is there only if its packages are.
    std::fs::rename(&wanted, &installed).map_err(written)?;
    Ok(programs)
}

/// Whether `made` exists and was not written before `from`.
fn is_current(made: &Path, from: &Path) -> bool {
    let age = |path: &Path| std::fs::metadata(path).and_then(|m| m.modified()).ok();
    age(made).is_some() && age(made) >= age(from)
}

/// Installs the development dependencies in pkg/package-lock.json. The published package has no dependencies.
pub(crate) fn npm_packages(log: &mut StepOutput) -> StepResult {
    npm_ci(log, "pkg")
}

/// Installs the packages of a folder's package-lock.json, unless that was done since the file changed.
pub(crate) fn npm_ci(log: &mut StepOutput, folder: &str) -> StepResult {
    let path = root().join(folder);
    if is_current(&path.join("node_modules/.package-lock.json"), &path.join("package-lock.json")) {
        return Ok("installed already".into());
    }
    log.run(Cmd::new("npm ci --no-audit --no-fund --ignore-scripts").inside(&path))?;
    Ok("installed".into())
}
