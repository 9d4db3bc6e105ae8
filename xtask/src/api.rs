//! `cargo xtask api`: compares the public API of the published crates with the lists in `api/`, so that every
//! change is noticed.
//!
//! rustdoc writes the items as JSON in a format that changes with the compiler; the crate `public-api`
//! converts them to lines. [`FORMAT`] must be the format of the version of `public-api` in
//! `xtask/Cargo.toml`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use crate::packages::PUBLISHED;
use crate::shell::{Cmd, StepOutput, root, target_dir};
use crate::steps::{StepResult, SuiteRun};

/// The version of rustdoc's JSON that the version of `public-api` in `xtask/Cargo.toml` reads.
const FORMAT: u64 = 57;

/// Most changed lines that are printed for a crate.
const MOST_SHOWN: usize = 40;

/// Runs `cargo xtask api [--write]`.
pub(crate) fn run(args: &[&str]) -> ExitCode {
    let run = SuiteRun::new(false);
    match args {
        [] => run.step("public api", check),
        ["--write"] => run.step("public api: write", write),
        _ => {
            eprintln!("usage: cargo xtask api [--write]");
            return ExitCode::from(2);
        }
    };
    run.finish()
}

/// Compares the API of each published crate with its list.
pub(crate) fn check(log: &mut StepOutput) -> StepResult {
    document(log)?;
    let (mut faults, mut total) = (Vec::new(), 0);
    for name in PUBLISHED {
        let found = items(name)?;
        let file = list(name);
        let known = std::fs::read_to_string(&file).map_err(|e| format!("{}: {e}", file.display()))?;
        total += found.lines().count();
        let changes = difference(&known, &found);
        if !changes.is_empty() {
            faults
                .push(format!("the public API of {name} is not that of api/{name}.txt:\n{}", show(&changes)));
        }
    }
    if faults.is_empty() {
        return Ok(format!("{total} items"));
    }
    faults.push(
        "If the change is meant: cargo xtask api --write, and a line in CHANGELOG.md if it breaks callers."
            .into(),
    );
    Err(faults.join("\n"))
}

/// Writes the lists.
fn write(log: &mut StepOutput) -> StepResult {
    document(log)?;
    let mut total = 0;
    for name in PUBLISHED {
        let found = items(name)?;
        total += found.lines().count();
        let file = list(name);
        let written = std::fs::create_dir_all(root().join("api")).and_then(|()| std::fs::write(&file, found));
        written.map_err(|e| format!("{}: {e}", file.display()))?;
    }
    Ok(format!("{total} items"))
}

/// The file with the items of a crate.
fn list(name: &str) -> PathBuf {
    root().join("api").join(format!("{name}.txt"))
}

/// Writes the JSON of all libraries. Packages, targets and features are those of the step "api
/// documentation", so the dependencies are already compiled.
fn document(log: &mut StepOutput) -> Result<(), String> {
    let docs = Cmd::new("cargo doc --locked --workspace --no-deps --features rootlight-wasm/dev --lib");
    let docs = docs.env("RUSTDOC", root().join("xtask/rustdoc.sh"));
    log.run(docs.env("RUSTDOCFLAGS", "-Z unstable-options --output-format json")).map(|_| ())
}

/// The public items of a crate, one on each line.
fn items(name: &str) -> Result<String, String> {
    let path = target_dir().join("doc").join(format!("{}.json", name.replace('-', "_")));
    same_format(&path)?;
    let builder = public_api::Builder::from_rustdoc_json(&path);
    // These implementations follow from others and would only lengthen the lists.
    let builder = builder.omit_blanket_impls(true).omit_auto_trait_impls(true);
    let api = builder.build().map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(api.items().map(|item| format!("{item}\n")).collect())
}

/// Fails with advice if the compiler writes a format that `public-api` does not read.
fn same_format(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))?;
    match json["format_version"].as_u64() {
        Some(FORMAT) => Ok(()),
        found => Err(format!(
            "this compiler's rustdoc writes JSON of format {found:?}, and `public-api` in xtask/Cargo.toml reads {FORMAT}: \
             change it to the version for this compiler (its README has a table), and FORMAT in xtask/src/api.rs"
        )),
    }
}

/// Lists the lines that only one of the texts contains: `-` marks missing lines, `+` new ones.
fn difference(known: &str, found: &str) -> Vec<String> {
    let (old, new): (BTreeSet<&str>, BTreeSet<&str>) = (known.lines().collect(), found.lines().collect());
    let gone = old.difference(&new).map(|line| format!("- {line}"));
    gone.chain(new.difference(&old).map(|line| format!("+ {line}"))).collect()
}

/// The changed lines as text, at most [`MOST_SHOWN`] of them.
fn show(changes: &[String]) -> String {
    let mut text: Vec<String> = changes.iter().take(MOST_SHOWN).map(|line| format!("    {line}")).collect();
    if let Some(more) = changes.len().checked_sub(MOST_SHOWN).filter(|more| *more > 0) {
        text.push(format!("    and {more} more"));
    }
    text.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_items_are_shown_once_each_way() {
        assert!(difference("a\nb\n", "b\na\n").is_empty());
        assert_eq!(difference("a\nb\n", "a\nc\n"), ["- b", "+ c"]);
    }

    #[test]
    fn another_format_says_what_to_do() {
        let path = target_dir().join(format!("xtask-format-{}.json", std::process::id()));
        std::fs::write(&path, r#"{"format_version":1}"#).expect("the target folder can be written");
        let refused = same_format(&path).expect_err("another format");
        std::fs::remove_file(&path).expect("the file can be removed");
        assert!(refused.contains("xtask/Cargo.toml"), "{refused}");
    }
}
