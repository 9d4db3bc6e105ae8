//! `cargo xtask spec`: notices changes of the specification of the JSON-RPC service, a page outside this repository (`specification.md`).
//!
//! `tests/specification.json` is a table, written by hand, of the facts of that page: methods, parameters, fields, limits and error codes.
//! `tests/specification.sha256` has the checksums of the page and of the table, so that neither changes unless both are compared again.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::shell::{StepOutput, ask, root};
use crate::steps::{StepResult, exit_code};

/// The table, and the file with the checksums of the page and of the table.
const TABLE: &str = "tests/specification.json";
const SUMS: &str = "tests/specification.sha256";

/// Writes the checksums, or with `--check` compares them.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    exit_code(if args.contains(&"--check") { compare() } else { write() }.map(|note| println!("{note}")))
}

/// The step of `cargo xtask test`.
pub(crate) fn check(_log: &mut StepOutput) -> StepResult {
    compare()
}

/// The page, in the folder that `ROOTLIGHT_SHARED` names; `None` if it is missing.
fn page() -> Option<PathBuf> {
    let shared = std::env::var_os("ROOTLIGHT_SHARED").map_or_else(|| root().join("../shared"), PathBuf::from);
    Some(shared.join("specification.md")).filter(|page| page.is_file())
}

/// A line with the checksum and the name of each file, as `sha256sum` prints it.
fn sums(page: PathBuf) -> Result<String, String> {
    let mut lines = String::new();
    for file in [page, root().join(TABLE)] {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let printed = ask("sha256sum", &[&file.to_string_lossy()]);
        let printed = printed.ok_or_else(|| format!("sha256sum {}", file.display()))?;
        let sum = printed.split_whitespace().next().unwrap_or_default();
        lines.push_str(&format!("{sum}  {name}\n"));
    }
    Ok(lines)
}

/// Writes the checksums.
fn write() -> StepResult {
    let sums = sums(page().ok_or("the specification is missing; set ROOTLIGHT_SHARED")?)?;
    std::fs::write(root().join(SUMS), sums).map_err(|e| format!("{SUMS}: {e}"))?;
    Ok(format!("{SUMS} written"))
}

/// Compares the checksums.
fn compare() -> StepResult {
    let Some(page) = page() else { return Ok("skipped: the specification is missing".into()) };
    let written = std::fs::read_to_string(root().join(SUMS)).map_err(|e| format!("{SUMS}: {e}"))?;
    if written == sums(page)? {
        return Ok("the page and the table are those that were compared".into());
    }
    Err(format!("the specification or {TABLE} has changed: compare them, then run `cargo xtask spec`"))
}
