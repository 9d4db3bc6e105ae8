//! `cargo xtask release`: builds all files of a release in `target/release-artifacts`. Nothing is uploaded.
//!
//! - `rootlight-VERSION-TARGET.tar.gz`: the static program with its licences, manual pages and completion scripts;
//! - `rootlight-VERSION.tgz`: the npm package;
//! - `container/`: the folder that `Containerfile` is built from;
//! - `SHA256SUMS`: checksums of the archives.
//!
//! The same commit, compiler and system packages give the same bytes: paths are remapped, and archives hold the time of
//! the commit and no user.

mod archive;
mod files;
mod program;
mod trial;

use std::fs;
use std::process::ExitCode;

use crate::shell::{Cmd, StepOutput};
use crate::steps::{StepResult, SuiteRun};
use crate::{page, tools, wasm};

use files::folder;
use program::{ReleaseTarget, TARGETS};

/// Runs `cargo xtask release [TARGET..]`; without a name, for all targets.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let known = |name: &&&str| TARGETS.iter().any(|target| target.triple == **name);
    if let Some(unknown) = args.iter().find(|name| !known(name)) {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.triple).collect();
        eprintln!("no target is called {unknown}; there are: {}", names.join(", "));
        return ExitCode::from(2);
    }
    let run = SuiteRun::new(false);
    if run.step("empty the folder", empty) {
        // The programs embed the page, which contains the package's modules.
        packages(&run);
        let _ = run.step("setup: packages of the page", page::npm_packages)
            && run.step("page", page::for_program);
        for target in TARGETS.iter().filter(|target| args.is_empty() || args.contains(&target.triple)) {
            programs(&run, target);
        }
        run.step("checksums", checksums);
        println!("\nmade in {}", folder().display());
    }
    run.finish()
}

/// The step of `cargo xtask test --full`: builds the program for this machine's processor and tries it.
pub(crate) fn check(log: &mut StepOutput) -> StepResult {
    empty(log)?;
    let Some(target) = TARGETS.iter().find(|target| target.native()) else {
        return Ok("no release is made for this machine's processor".into());
    };
    program::tools(log, target)?;
    program::build(log, target)?;
    let note = trial::run(log, target)?;
    archive::program(log, target)?;
    checksums(log)?;
    Ok(note)
}

/// Builds, tries and packs the program of a target.
fn programs(run: &SuiteRun, target: &'static ReleaseTarget) {
    let name = target.triple;
    let _ = run.step(&format!("{name}: tools"), |log| program::tools(log, target))
        && run.step(&format!("{name}: build"), |log| program::build(log, target))
        && run.step(&format!("{name}: trial"), |log| trial::run(log, target))
        && run.step(&format!("{name}: archive"), |log| archive::program(log, target));
}

/// Builds the modules, and packs and tries the npm package.
fn packages(run: &SuiteRun) {
    let ready = run.step("setup: npm packages", tools::npm_packages)
        && run.step("setup: rust targets", tools::rust_targets)
        && run.step("setup: bindgen", tools::bindgen);
    let published = wasm::ARTEFACTS.iter().filter(|artefact| artefact.published());
    // Nothing runs after the first step that fails.
    let mut built = ready;
    for artefact in published {
        built = built && run.step(artefact.name, |log| wasm::build(log, artefact));
    }
    let _ = built && run.step("npm package", archive::npm) && run.step("npm package: trial", trial::npm);
}

/// Empties the folder of the release.
fn empty(_: &mut StepOutput) -> StepResult {
    let folder = folder();
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    // The container's image gets this empty folder as its data folder; see `Containerfile`.
    let data = folder.join("container/data");
    fs::create_dir_all(&data).map_err(|e| format!("{}: {e}", data.display()))?;
    Ok(String::new())
}

/// Writes SHA256SUMS, which `sha256sum --check` reads.
fn checksums(log: &mut StepOutput) -> StepResult {
    let entries = fs::read_dir(folder()).map_err(|e| format!("{}: {e}", folder().display()))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut files: Vec<String> = names.filter(|name| name.ends_with("gz")).collect();
    files.sort();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let sums = log.read(Cmd::new("sha256sum --").args(&files).inside(&folder()))?;
    fs::write(folder().join("SHA256SUMS"), sums).map_err(|e| format!("SHA256SUMS: {e}"))?;
    Ok(format!("{} files", files.len()))
}
