//! Builds the browser package. Each module is compiled, gets its JavaScript side, is optimised for size, validated and measured.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::shell::{Cmd, StepOutput, root, target_dir};
use crate::steps::StepResult;
use crate::tools::{WASM, bindgen_program};

/// One WebAssembly module of the package.
pub(crate) struct Artefact {
    /// Name of the files in pkg/dist.
    pub(crate) name: &'static str,
    /// The Cargo features of `rootlight-wasm` for this module.
    features: &'static str,
    /// Settings of [`PROFILE`] that differ for this module, in the form of cargo's `--config`. Crates without
    /// such settings are compiled once for all modules.
    settings: &'static [&'static str],
    /// The largest allowed brotli-compressed size of a module of the npm package, in bytes. `None` for a module that is
    /// not published.
    size_limit: Option<u64>,
}

impl Artefact {
    /// Whether the npm package has this module.
    pub(crate) const fn published(&self) -> bool {
        self.size_limit.is_some()
    }
}

/// The Cargo profile of all modules, also the name of its output folder.
const PROFILE: &str = "wasm";

/// Every module, the smallest first. Sizes and their history: docs/wasm.md.
pub(crate) const ARTEFACTS: [Artefact; 4] = [
    // verify.js checks one document per call, so the speed of SHA-2 does not matter. serde_json at `s` takes 70 bytes more,
    // and less time for each member of a list.
    Artefact {
        name: "rootlight_verify",
        features: "verify,module",
        settings: &[
            "profile.wasm.package.sha2.opt-level=\"z\"",
            "profile.wasm.package.serde_json.opt-level=\"s\"",
        ],
        size_limit: Some(80_000),
    },
    // Wallets and pages use this module for calls: the crates around the interpreter are built at `s`, which is faster than the profile's `z`
    // (docs/wasm.md).
    Artefact {
        name: "rootlight",
        features: "light,module",
        settings: &[
            "profile.wasm.package.rootlight.opt-level=\"s\"",
            "profile.wasm.package.revm-bytecode.opt-level=\"s\"",
            "profile.wasm.package.revm-context.opt-level=\"s\"",
            "profile.wasm.package.revm-context-interface.opt-level=\"s\"",
            "profile.wasm.package.revm-database-interface.opt-level=\"s\"",
            "profile.wasm.package.revm-handler.opt-level=\"s\"",
            "profile.wasm.package.revm-primitives.opt-level=\"s\"",
            "profile.wasm.package.revm-state.opt-level=\"s\"",
        ],
        // The parts of the limit: 400,000 for the light client, 20,000 for the judgement by Bitcoin's chain and the start by window, and 40,000
        // for simulations and tracers. The module is smaller than their sum.
        size_limit: Some(453_500),
    },
    // The development chain runs in tests and demonstration pages, so its interpreter, its SHA-2 and its codecs are
    // built at `s`, which is smaller than the profile's 3. The package's program runs this module too; the rights of its
    // callers take 2,000 bytes. A chain that begins on a block of another network takes 44,000.
    Artefact {
        name: "rootlight_dev",
        features: "dev,module",
        settings: &[
            "profile.wasm.package.revm-interpreter.opt-level=\"s\"",
            "profile.wasm.package.sha2.opt-level=\"s\"",
            "profile.wasm.package.alloy-rlp.opt-level=\"s\"",
        ],
        size_limit: Some(685_500),
    },
    // The light client with networks that the caller describes, for tests. No user loads it.
    Artefact {
        name: "rootlight_networks",
        features: "light,networks,module",
        settings: &[],
        size_limit: None,
    },
];

/// Passes of binaryen's `wasm-opt`, for size. `--one-caller-inline-max-function-size=0`: inlining a function with one caller makes it
/// share its caller's numbering of locals, in which brotli finds fewer repetitions (7 % of the light client's size).
/// `--low-memory-unused`: the stack grows down towards address 0 and never uses the last kilobyte, so no pointer is below
/// 1,024, and constant offsets may move into loads and stores. `--skip-pass=local-cse`: a value that is computed again is a
/// repetition, which brotli writes shorter than a local that keeps it. The passes run twice (`-Oz`),
/// which saves 470 bytes of the light client and 1,500 of the development chain.
/// `--strip-target-features`: no tool reads that section.
const PASSES: [&str; 7] = [
    "--low-memory-unused",
    "-Oz",
    "--one-caller-inline-max-function-size=0",
    "--always-inline-max-function-size=8",
    "--skip-pass=local-cse",
    "-Oz",
    "--strip-target-features",
];

/// Limits of the functions that link-time optimisation inlines. A unit of LLVM's cost model counts 80 times as much as by default, so that
/// a function with one caller, which has a fixed bonus, is inlined only if it is short. The reason is the same as for
/// `--one-caller-inline-max-function-size` above.
const INLINING: [&str; 6] = [
    "-C",
    "llvm-args=-inline-instr-cost=400",
    "-C",
    "llvm-args=-inline-call-penalty=2000",
    "-C",
    "llvm-args=-inline-threshold=2000",
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
pub(crate) fn build(log: &mut StepOutput, artefact: &Artefact) -> StepResult {
    let dist = root().join("pkg/dist");
    fs::create_dir_all(&dist).map_err(|e| format!("pkg/dist: {e}"))?;
    // Only the crate type `cdylib`: together with `rlib`, which the package has for its tests, cargo would do no link-time optimisation.
    let build = Cmd::new(
        "cargo rustc --locked --package rootlight-wasm --lib --crate-type cdylib --no-default-features",
    )
    .args(&["--profile", PROFILE, "--target", WASM, "--features", artefact.features])
    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", flags())
    .env("RUSTC_WORKSPACE_WRAPPER", std::env::current_exe().map_err(|e| format!("this program: {e}"))?)
    .env(STANDS_IN, "1");
    let build = artefact.settings.iter().fold(build, |cmd, setting| cmd.args(&["--config", setting]));
    log.run(build.args(&["--"]).args(&INLINING))?;
    let folder = target_dir().join(WASM).join(PROFILE);
    let (built, linked) =
        (folder.join("rootlight_wasm.wasm"), folder.join(format!("{}.wasm", artefact.name)));
    fs::copy(&built, &linked).map_err(|e| format!("{}: {e}", built.display()))?;
    log.run(Cmd::program(&bindgen_program()).arg(&linked).arg(artefact.name).arg(&dist))?;
    log.run(Cmd::new("node pkg/scripts/factory.mjs").arg(dist.join(format!("{}.js", artefact.name))))?;
    let module = dist.join(format!("{}_bg.wasm", artefact.name));
    optimise(log, &module)?;
    let (raw, brotli, hash) = weigh(log, &module)?;
    let Some(limit) = artefact.size_limit else { return Ok(format!("{brotli} bytes brotli, {raw} raw")) };
    let note = format!("{brotli} bytes brotli (gate {limit}), {raw} raw, SHA-256 {hash}");
    if brotli > limit {
        return Err(format!("{} is too large: {note}", artefact.name));
    }
    Ok(note)
}

/// The environment variable that is set while cargo runs this program in place of rustc: see [`rustc`].
pub(crate) const STANDS_IN: &str = "ROOTLIGHT_XTASK_RUSTC";

/// Runs rustc, whose path is the first of these arguments, for a crate of the workspace. Cargo derives the option `-C metadata` of such crates from
/// their folders, and rustc derives from that option the names of their functions, and so their order in the module. This function replaces the
/// option's value by the name of the crate, so that a module does not depend on the folder in which it was built.
pub(crate) fn rustc(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let mut arguments: Vec<OsString> = arguments.collect();
    let name = arguments.iter().position(|argument| argument == "--crate-name");
    let name = name.and_then(|at| arguments.get(at + 1)).cloned();
    let metadata = arguments.iter_mut().find(|argument| argument.to_string_lossy().starts_with("metadata="));
    if let (Some(name), Some(metadata)) = (name, metadata) {
        *metadata = "metadata=".into();
        metadata.push(name);
    }
    let Some((rustc, rest)) = arguments.split_first() else { return ExitCode::from(2) };
    match std::process::Command::new(rustc).args(rest).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{}: {error}", rustc.display());
            ExitCode::FAILURE
        }
    }
}

/// Builds the published modules once more, in another folder, and compares every byte.
pub(crate) fn reproducible(log: &mut StepOutput) -> StepResult {
    let copy = target_dir().join("reproduce");
    let _ = fs::remove_dir_all(&copy);
    let mut prefix = copy.clone().into_os_string();
    prefix.push("/");
    log.run(Cmd::new("git checkout-index --all --prefix").arg(prefix))?;
    log.run(Cmd::new("cargo xtask wasm").inside(&copy))?;
    for Artefact { name, .. } in ARTEFACTS.iter().filter(|artefact| artefact.published()) {
        let file = format!("pkg/dist/{name}_bg.wasm");
        let read = |folder: &Path| fs::read(folder.join(&file)).map_err(|e| format!("{file}: {e}"));
        if read(&root())? != read(&copy)? {
            return Err(format!(
                "{file} differs from that in {}: it depends on the folder, or is older than the sources (cargo xtask wasm)",
                copy.display()
            ));
        }
    }
    fs::remove_dir_all(&copy).map_err(|e| format!("{}: {e}", copy.display()))?;
    Ok("the same bytes in two folders".into())
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

/// Optimises a module with [`PASSES`], in place.
fn optimise(log: &mut StepOutput, module: &Path) -> Result<(), String> {
    let small = module.with_extension("opt");
    let tool = Cmd::new("node pkg/node_modules/binaryen/bin/wasm-opt").args(&FEATURES).args(&PASSES);
    log.run(tool.arg(module).arg("-o").arg(&small))?;
    fs::rename(&small, module).map_err(|e| format!("{}: {e}", module.display()))
}

/// Returns the module's size, its brotli-compressed size and its SHA-256. Fails if the engine rejects the module.
fn weigh(log: &mut StepOutput, module: &Path) -> Result<(u64, u64, String), String> {
    let output = log.read(Cmd::new("node pkg/scripts/weigh.mjs").arg(module))?;
    let mut words = output.split_whitespace();
    let mut number = || words.next()?.parse().ok();
    match (number(), number(), words.next()) {
        (Some(raw), Some(brotli), Some(hash)) => Ok((raw, brotli, hash.to_owned())),
        _ => Err(format!("pkg/scripts/weigh.mjs printed '{output}'")),
    }
}
