//! The browser package: compile, bind, optimise, validate, weigh.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{root, target_dir, Cmd, Log};
use crate::steps::Outcome;
use crate::tools::WASM;

/// One WebAssembly module of the package.
pub(crate) struct Artefact {
    /// Name of the files in pkg/dist.
    pub(crate) name: &'static str,
    /// Cargo features of `rootlight-wasm` that make it.
    features: &'static str,
    /// Cargo profile, also the name of its output folder.
    profile: &'static str,
    /// The most its brotli-compressed size may be, in bytes.
    gate: u64,
}

/// Every module, the smallest first. Sizes and their history: docs/wasm.md.
pub(crate) const ARTEFACTS: [Artefact; 3] = [
    Artefact { name: "rootlight_verify", features: "verify", profile: "wasm-small", gate: 100_000 },
    Artefact { name: "rootlight", features: "light", profile: "wasm", gate: 350_000 },
    Artefact { name: "rootlight_dev", features: "dev", profile: "wasm-dev", gate: 500_000 },
];

/// For size. A function with one caller stays a function: inlined, it takes part in its caller's numbering of locals, and
/// brotli finds less to share (a fifteenth of the light client's size). Functions of one name, which differ in a type
/// parameter, lie side by side for the same reason (a sixtieth). The lowest kilobyte of memory is the far end of the stack:
/// no value has an address there, so constant offsets may move into loads and stores.
const PASSES: [&str; 5] = [
    "--low-memory-unused",
    "-Oz",
    "--converge",
    "--one-caller-inline-max-function-size=0",
    "--reorder-functions-by-name",
];

/// What rustc's wasm32 target emits. Never `--all-features`: it turns on proposals that engines reject.
const FEATURES: [&str; 6] = [
    "--enable-bulk-memory",
    "--enable-mutable-globals",
    "--enable-sign-ext",
    "--enable-nontrapping-float-to-int",
    "--enable-reference-types",
    "--enable-multivalue",
];

/// Builds one module into pkg/dist and checks it; says what it weighs.
pub(crate) fn build(log: &mut Log, artefact: &Artefact) -> Outcome {
    let dist = root().join("pkg/dist");
    fs::create_dir_all(&dist).map_err(|e| format!("pkg/dist: {e}"))?;
    log.run(
        Cmd::new("cargo build --locked --package rootlight-wasm --lib --no-default-features --profile")
            .args(&[artefact.profile, "--target", WASM, "--features", artefact.features])
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags()),
    )?;
    let built = target_dir().join(WASM).join(artefact.profile).join("rootlight_wasm.wasm");
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

/// Panic messages carry source paths; they are cut to what is the same on every machine.
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

/// The module's size and its brotli-compressed size, after the engine has accepted it.
fn weigh(log: &mut Log, module: &Path) -> Result<(u64, u64), String> {
    let output = log.run(Cmd::new("node pkg/scripts/weigh.mjs").arg(module))?;
    let mut numbers = output.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(raw)), Some(Ok(brotli))) => Ok((raw, brotli)),
        _ => Err(format!("pkg/scripts/weigh.mjs printed '{output}'")),
    }
}
