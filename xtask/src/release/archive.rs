//! Packs the program and the npm package for a release.

use std::fs;
use std::path::{Path, PathBuf};

use super::files::{VERSION, commit_time, folder};
use super::program::{ReleaseTarget, TARGETS};
use crate::shell::{Cmd, StepOutput, root};
use crate::steps::StepResult;

/// Files of the repository that go with the program.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Completion scripts: the shell, and the name under which it looks for the script.
const COMPLETIONS: [(&str, &str); 3] =
    [("bash", "rootlight.bash"), ("fish", "rootlight.fish"), ("zsh", "_rootlight")];

/// Packs a program with its documents, manual pages and completion scripts.
pub(super) fn program(log: &mut StepOutput, target: &ReleaseTarget) -> StepResult {
    let name = format!("rootlight-{VERSION}-{}", target.triple);
    let stage = folder().join("stage").join(&name);
    make(&stage)?;
    copy(&target.path(), &stage.join("rootlight"))?;
    documents(&stage)?;
    manual(&stage)?;
    let archive = folder().join(format!("{name}.tar.gz"));
    log.run(
        // Without the time, the user and the order of this machine's files, so that the bytes are the same everywhere.
        Cmd::new("tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go-w,a+rX")
            .arg(format!("--mtime=@{}", commit_time()))
            .arg("--use-compress-program=gzip -n -9")
            .arg("--file")
            .arg(&archive)
            .args(&["--", &name])
            .inside(&folder().join("stage")),
    )?;
    size(&archive)
}

/// Writes manual pages and completion scripts, by a program that runs on this machine. They are the same for all targets.
fn manual(stage: &Path) -> Result<(), String> {
    let run = |args: &[&str]| {
        let runnable =
            TARGETS.iter().filter(|target| target.path().exists()).find_map(ReleaseTarget::command);
        let output = runnable.ok_or("no program was built that runs here")?.args(args).output();
        let output = output.map_err(|e| format!("{args:?}: {e}"))?;
        if output.status.success() { Ok(output.stdout) } else { Err(format!("{args:?}: {}", output.status)) }
    };
    let pages = stage.join("man");
    run(&["man", "--out-dir", &pages.to_string_lossy()])?;
    let scripts = stage.join("completions");
    make(&scripts)?;
    for (shell, name) in COMPLETIONS {
        let path = scripts.join(name);
        fs::write(&path, run(&["completions", shell])?).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// The archive of the npm package.
pub(super) fn npm_file() -> PathBuf {
    folder().join(format!("rootlight-{VERSION}.tgz"))
}

/// Packs the npm package. `files` in pkg/package.json lists its files; the script `prepack` there adds the documents and
/// the checksums of the modules.
pub(super) fn npm(log: &mut StepOutput) -> StepResult {
    let manifest =
        fs::read_to_string(root().join("pkg/package.json")).map_err(|e| format!("pkg/package.json: {e}"))?;
    if !manifest.contains(&format!("\"version\": \"{VERSION}\"")) {
        return Err(format!("pkg/package.json has another version than {VERSION}"));
    }
    log.run(Cmd::new("npm pack --pack-destination").arg(folder()).within("pkg"))?;
    log.run(Cmd::new("node pkg/scripts/check.mjs").arg(npm_file()))?;
    size(&npm_file())
}

/// Copies [`DOCUMENTS`].
fn documents(stage: &Path) -> Result<(), String> {
    DOCUMENTS.iter().try_for_each(|name| copy(&root().join(name), &stage.join(name)))
}

/// Makes a folder.
fn make(path: &Path) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    fs::copy(from, to).map(|_| ()).map_err(|e| format!("{}: {e}", from.display()))
}

/// The size of a file, as the note of a step.
fn size(path: &Path) -> StepResult {
    let bytes = path.metadata().map_err(|e| format!("{}: {e}", path.display()))?.len();
    Ok(format!("{bytes} bytes"))
}
