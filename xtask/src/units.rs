//! Checks of the files for operators: units of systemd, and the configuration of HAProxy.

use std::path::{Path, PathBuf};

use crate::shell::{Cmd, Log, find, root, target_dir};
use crate::steps::Outcome;

/// Programs that units start and that a machine that checks them may lack.
const PROGRAMS: [&str; 2] = ["/usr/local/bin/rootlight", "/usr/bin/redis-server"];

/// Verifies the files with the programs that read them.
pub(crate) fn check(log: &mut Log) -> Outcome {
    log.run(Cmd::program(&haproxy()).args(&["-c", "-f"]).arg(root().join("docs/compose/haproxy.cfg")))?;
    if find("systemd-analyze").is_none() {
        return Ok("units are not checked: systemd-analyze is missing".into());
    }
    let copies = target_dir().join("units");
    let units = copy(&copies).map_err(|e| format!("{}: {e}", copies.display()))?;
    let verify = Cmd::new("systemd-analyze verify --man=no");
    let said = log.run(units.iter().fold(verify, |cmd, unit| cmd.arg(unit)))?;
    // It reports keys that it does not know and succeeds.
    if said.contains("ignoring") {
        return Err(said);
    }
    Ok(format!("{} units", units.len()))
}

/// HAProxy, which Debian keeps off the PATH of users.
fn haproxy() -> PathBuf {
    find("haproxy").unwrap_or_else(|| "/usr/sbin/haproxy".into())
}

/// Copies the units, with a program that exists on every machine.
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
