//! Checks that the packages for crates.io are complete: their files, and the fields of their manifests.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use serde_json::Value;

use crate::shell::{Cmd, StepOutput, root, target_dir};
use crate::steps::StepResult;

/// The published crates, in the order of publication. All other crates have `publish = false`.
pub(crate) const PUBLISHED: [&str; 9] = [
    "rootlight",
    "rootlight-p2p",
    "rootlight-index",
    "rootlight-limits",
    "rootlight-upstream",
    "rootlight-server",
    "rootlight-node",
    "rootlight-cluster",
    "rootlight-cli",
];

/// Files that every package must contain.
const NEEDED: [&str; 5] = ["Cargo.lock", "Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];

/// Fields of the manifest that crates.io shows and searches.
const SHOWN_FIELDS: [&str; 6] =
    ["description", "license", "readme", "rust_version", "documentation", "keywords"];

/// Largest package, compressed, in bytes. Packages are several times smaller; the limit keeps data files out.
const MAX_BYTES: u64 = 3 * 1024 * 1024;

/// Macros that make another file part of a source file.
const INCLUDES: [&str; 4] = ["include_str!(", "include_bytes!(", "include!(", "#[path = "];

/// The argument of such a macro for a file that the package's build script writes.
const GENERATED: &str = "concat!(env!(\"OUT_DIR\")";

/// Packs the published crates without building them, and checks that each is complete.
pub(crate) fn check(log: &mut StepOutput) -> StepResult {
    let metadata = log.read(Cmd::new("cargo metadata --locked --no-deps --format-version 1"))?;
    let metadata: Value = serde_json::from_str(&metadata).map_err(|e| format!("cargo metadata: {e}"))?;
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let mut faults: Vec<String> = packages.iter().flat_map(manifest_faults).collect();
    let front = std::fs::read_to_string(root().join("src/lib.rs")).map_err(|e| format!("src/lib.rs: {e}"))?;
    faults.extend(
        packages.iter().filter(|package| package["name"] == "rootlight").flat_map(|p| undescribed(p, &front)),
    );
    log.run(packing("cargo package --locked --allow-dirty --no-verify"))?;
    let mut notes = Vec::new();
    for package in packages.iter().filter(|package| published(package)) {
        let name = package["name"].as_str().unwrap_or_default();
        let list =
            log.run(Cmd::new("cargo package --quiet --locked --allow-dirty --list --package").arg(name))?;
        let files: BTreeSet<PathBuf> = list.lines().map(PathBuf::from).collect();
        let missing = NEEDED.iter().filter(|file| !files.contains(Path::new(file)));
        faults.extend(missing.map(|file| format!("{name}: {file} is not packed")));
        let folder = Path::new(package["manifest_path"].as_str().unwrap_or_default())
            .parent()
            .unwrap_or(Path::new("."));
        faults.extend(unpacked(folder, &files).map(|fault| format!("{name}: {fault}")));
        let version = package["version"].as_str().unwrap_or_default();
        let packed = target_dir().join(format!("package/{name}-{version}.crate"));
        let bytes = packed.metadata().map_err(|e| format!("{}: {e}", packed.display()))?.len();
        if bytes > MAX_BYTES {
            faults.push(format!("{name}: the package has {bytes} bytes, more than {MAX_BYTES}"));
        }
        notes.push(format!("{name} {} KiB", bytes / 1024));
    }
    if faults.is_empty() { Ok(notes.join(", ")) } else { Err(faults.join("\n")) }
}

/// Builds the crates from their packages, like `cargo publish` before an upload. All dependencies are
/// compiled again.
pub(crate) fn dry_run(log: &mut StepOutput) -> StepResult {
    log.run(packing("cargo publish --locked --allow-dirty --dry-run")).map(|_| String::new())
}

/// A cargo command for all published crates.
fn packing(line: &str) -> Cmd {
    PUBLISHED.iter().fold(Cmd::new(line), |cmd, name| cmd.args(&["--package", name]))
}

/// Whether a package of `cargo metadata` is a published crate.
fn published(package: &Value) -> bool {
    PUBLISHED.iter().any(|name| package["name"] == *name)
}

/// Lists the faults of a crate's manifest.
fn manifest_faults(package: &Value) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    // Cargo shows `publish = false` as an empty list of registries.
    let private = package["publish"].as_array().is_some_and(Vec::is_empty);
    if !published(package) {
        let fault = format!("{name} is not in the list of published crates and has no `publish = false`");
        return if private { Vec::new() } else { vec![fault] };
    }
    let empty = |value: &Value| value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    let missing = SHOWN_FIELDS.iter().filter(|field| empty(&package[**field]));
    let mut faults: Vec<String> = missing.map(|field| format!("{name}: Cargo.toml has no {field}")).collect();
    if private {
        faults.push(format!("{name} is in the list of published crates and has `publish = false`"));
    }
    faults
}

/// Lists the features of the core that its front page, the documentation of `src/lib.rs`, does not describe.
fn undescribed(package: &Value, front: &str) -> Vec<String> {
    let names = package["features"].as_object().into_iter().flatten().map(|(name, _)| name);
    let missing = names.filter(|name| *name != "default" && !front.contains(&format!("//! | `{name}` |")));
    missing.map(|name| format!("src/lib.rs does not describe the feature {name}")).collect()
}

/// Lists the files that packed sources include and that are not packed.
fn unpacked<'a>(folder: &'a Path, files: &'a BTreeSet<PathBuf>) -> impl Iterator<Item = String> + 'a {
    let sources = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "rs"));
    sources.flat_map(move |source| {
        let text = std::fs::read_to_string(folder.join(source)).unwrap_or_default();
        let missing = included(source, &text).into_iter().filter(|file| !files.contains(file));
        let missing: Vec<String> = missing
            .map(|file| format!("{} includes {}, which is not packed", source.display(), file.display()))
            .collect();
        missing
    })
}

/// Returns the files that a source file includes, relative to the package. A path that is not a literal is
/// returned as it is written, so that it is reported.
fn included(source: &Path, text: &str) -> Vec<PathBuf> {
    let base = source.parent().unwrap_or(Path::new(""));
    let starts = INCLUDES.iter().flat_map(|word| text.match_indices(word).map(|(at, word)| at + word.len()));
    // Files that the build script writes are not packed: they are made wherever the package is built.
    let arguments = starts.filter_map(|at| text.get(at..)).filter(|rest| !rest.starts_with(GENERATED));
    arguments
        .map(|rest| match rest.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
            Some((path, _)) => plain(&base.join(path)),
            None => PathBuf::from(rest.lines().next().unwrap_or_default()),
        })
        .collect()
}

/// Removes `.` and `..` from a path.
fn plain(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if result.file_name().is_some() => {
                result.pop();
            }
            part => result.push(part),
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn included_files_are_relative_to_the_package() {
        let text = format!("let a = {}\"../../tests/a.json\"); {}\"b.bin\")", INCLUDES[0], INCLUDES[1]);
        let files = included(Path::new("src/x/y.rs"), &text);
        assert_eq!(files, [Path::new("tests/a.json"), Path::new("src/x/b.bin")]);
        let computed = included(Path::new("src/y.rs"), &format!("{}concat!(a))", INCLUDES[0]));
        assert_eq!(computed, [Path::new("concat!(a))")]);
        assert_eq!(plain(Path::new("src/../../../x")), Path::new("../../x"));
    }

    #[test]
    fn an_included_file_outside_the_package_is_reported() {
        let folder = root();
        let source = PathBuf::from("src/exec/remasc_test.rs");
        let alone = BTreeSet::from([source.clone()]);
        assert_eq!(unpacked(&folder, &alone).count(), 1);
        let both = BTreeSet::from([source, "tests/vectors/remasc.json".into()]);
        assert_eq!(unpacked(&folder, &both).count(), 0);
    }

    #[test]
    fn every_feature_is_described() {
        let package = json!({"features": {"default": ["a"], "a": [], "b": []}});
        assert_eq!(undescribed(&package, "//! | `a` | adds a |").len(), 1);
        assert!(undescribed(&package, "//! | `a` | adds a |\n//! | `b` | adds b |").is_empty());
    }

    #[test]
    fn a_crate_is_published_with_all_fields_or_is_private() {
        let full = json!({"name": "rootlight", "publish": null, "description": "d", "license": "l", "readme": "r",
            "rust_version": "1", "documentation": "u", "keywords": ["k"]});
        assert!(manifest_faults(&full).is_empty());
        assert_eq!(
            manifest_faults(&json!({"name": "rootlight", "publish": []})).len(),
            SHOWN_FIELDS.len() + 1
        );
        assert_eq!(manifest_faults(&json!({"name": "other", "publish": null})).len(), 1);
        assert!(manifest_faults(&json!({"name": "other", "publish": []})).is_empty());
    }
}
