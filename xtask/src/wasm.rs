//! Builds the browser package: compiles, binds, optimises, validates and measures each module.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Cmd, Log, find, root, target_dir};
use crate::steps::Outcome;
use crate::tools::WASM;

/// One WebAssembly module of the package.
pub(crate) struct Artefact {
    /// Name of the files in pkg/dist.
    pub(crate) name: &'static str,
    /// The Cargo features of `rootlight-wasm` for this module.
    features: &'static str,
    /// Settings of [`PROFILE`] that differ for this module, in the form of cargo's `--config`. Crates without
    /// such settings are compiled once for all modules.
    settings: &'static [&'static str],
    /// The largest allowed brotli-compressed size, in bytes.
    gate: u64,
    /// Whether the npm package has this module.
    pub(crate) published: bool,
}

/// The Cargo profile of all modules, also the name of its output folder.
const PROFILE: &str = "wasm";

/// Every module, the smallest first. Sizes and their history: docs/wasm.md.
pub(crate) const ARTEFACTS: [Artefact; 4] = [
    Artefact { name: "rootlight_verify", features: "verify", settings: &[], gate: 100_000, published: true },
    Artefact {
        name: "rootlight",
        features: "light,work-start",
        settings: &[],
        gate: 350_000,
        published: true,
    },
    // The development chain runs in tests and demonstration pages, so its interpreter and its SHA-2 are
    // optimised for size.
    Artefact {
        name: "rootlight_dev",
        features: "dev",
        settings: &[
            "profile.wasm.package.revm-interpreter.opt-level=\"s\"",
            "profile.wasm.package.sha2.opt-level=\"s\"",
        ],
        gate: 500_000,
        published: true,
    },
    // The light client with networks that the caller describes, for tests.
    Artefact {
        name: "rootlight_networks",
        features: "light,work-start,networks",
        settings: &[],
        gate: 365_000,
        published: false,
    },
];

/// Optimisation for size. `--one-caller-inline-max-function-size=0`: inlining a function with one caller makes it
/// share its caller's numbering of locals, in which brotli finds fewer repetitions (7 % of the light client's size).
/// `--reorder-functions-by-name`: functions that differ in a type parameter only are adjacent, which compresses
/// better (2 %). `--low-memory-unused`: the lowest kilobyte of memory is the far end of the stack, where no value has
/// its address, so constant offsets may move into loads and stores.
const PASSES: [&str; 5] = [
    "--low-memory-unused",
    "-Oz",
    "--converge",
    "--one-caller-inline-max-function-size=0",
    "--reorder-functions-by-name",
];

/// The features that rustc's wasm32 target emits. `--all-features` would enable proposals that engines reject.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
];

/// Builds one module into pkg/dist and checks its size. Returns a note with the sizes.
pub(crate) fn build(log: &mut Log, artefact: &Artefact) -> Outcome {
    let dist = root().join("pkg/dist");
    fs::create_dir_all(&dist).map_err(|e| format!("pkg/dist: {e}"))?;
    let build = Cmd::new("cargo build --locked --package rootlight-wasm --lib --no-default-features")
        .args(&["--profile", PROFILE, "--target", WASM, "--features", artefact.features])
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags());
    log.run(artefact.settings.iter().fold(build, |cmd, setting| cmd.args(&["--config", setting])))?;
    let built = target_dir().join(WASM).join(PROFILE).join("rootlight_wasm.wasm");
    log.run(
        Cmd::new("wasm-bindgen --target web --no-typescript --remove-producers-section --out-name")
            .args(&[artefact.name, "--out-dir"])
            .arg(&dist)
            .arg(&built),
    )?;
    log.run(Cmd::new("node pkg/scripts/factory.mjs").arg(dist.join(format!("{}.js", artefact.name))))?;
    let module = dist.join(format!("{}_bg.wasm", artefact.name));
    optimise(log, &module)?;
    let (raw, brotli) = weigh(log, &module)?;
    let note = format!("{brotli} bytes brotli (gate {}), {raw} raw", artefact.gate);
    if brotli > artefact.gate {
        return Err(format!("{} is too large: {note}", artefact.name));
    }
    Ok(note)
}

/// A command that runs a package's test targets in WebAssembly: in Node.js, or in headless Chromium, as each target
/// says. The runner reads the browser's options in the package's `webdriver.json`.
pub(crate) fn tests(package: &str, tests: &[&str]) -> Result<Cmd, String> {
    let driver = find("chromedriver").ok_or("chromedriver is missing: run cargo xtask setup")?;
    let cmd = Cmd::new("cargo test --locked --target")
        .args(&[WASM, "--package", package])
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUNNER", "wasm-bindgen-test-runner")
        .env("CHROMEDRIVER", driver);
    Ok(tests.iter().fold(cmd, |cmd, test| cmd.args(&["--test", test])))
}

/// Flags that make the source paths in panic messages the same on every machine.
pub(crate) fn flags() -> String {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(|h| Path::new(&h).join(".cargo")));
    let mut flags = format!("--remap-path-prefix={}=.", root().display());
    if let Some(home) = home {
        flags.push_str(&format!(" --remap-path-prefix={}=cargo", home.display()));
    }
    flags
}

fn optimise(log: &mut Log, module: &Path) -> Result<(), String> {
    log.run(Cmd::new("node pkg/scripts/trap.mjs").arg(module))?;
    let small = module.with_extension("opt");
    log.run(
        Cmd::new("node pkg/node_modules/binaryen/bin/wasm-opt")
            .args(&PASSES)
            .args(&FEATURES)
            .arg(module)
            .arg("-o")
            .arg(&small),
    )?;
    fs::rename(&small, module).map_err(|e| format!("{}: {e}", module.display()))
}

/// Returns the module's size and its brotli-compressed size. Fails if the engine rejects the module.
fn weigh(log: &mut Log, module: &Path) -> Result<(u64, u64), String> {
    let output = log.read(Cmd::new("node pkg/scripts/weigh.mjs").arg(module))?;
    let mut numbers = output.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(raw)), Some(Ok(brotli))) => Ok((raw, brotli)),
        _ => Err(format!("pkg/scripts/weigh.mjs printed '{output}'")),
    }
}
