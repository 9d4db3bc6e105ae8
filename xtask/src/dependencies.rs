//! Checks the dependencies: their sources, their licences, and that a crate is linked in two versions only
//! for a stated reason. The rules are in `[workspace.metadata.dependencies]` of Cargo.toml.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::shell::{Cmd, Log};
use crate::steps::Outcome;

/// The only allowed source of crates.
const SOURCE: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Versions by the name of the crate.
type Versions = BTreeMap<String, BTreeSet<String>>;

/// Runs the check, and returns the number of crates as a note.
pub(crate) fn check(log: &mut Log) -> Outcome {
    let host = "cargo metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu";
    let text = log.run(Cmd::new(host))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut faults = foreign(&metadata);
    faults.extend(duplicates(&linked(&metadata), &metadata["metadata"]["dependencies"]["duplicates"]));
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    Ok(format!("{} crates", list(&metadata["packages"]).len()))
}

/// Returns the members of an array, or nothing for other values.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Finds crates with another source or licence. Crates of this workspace have no source.
fn foreign(metadata: &Value) -> Vec<String> {
    let licences: Vec<&str> =
        list(&metadata["metadata"]["dependencies"]["licences"]).iter().map(text).collect();
    let mut faults = Vec::new();
    for package in list(&metadata["packages"]).iter().filter(|package| !package["source"].is_null()) {
        let (name, source, licence) =
            (text(&package["name"]), text(&package["source"]), text(&package["license"]));
        if source != SOURCE {
            faults.push(format!("{name} comes from {source}"));
        }
        if !allowed(licence, &licences) {
            faults
                .push(format!("{name} has the licence '{licence}', which is not in the list of Cargo.toml"));
        }
    }
    faults
}

/// Whether the known licences satisfy an SPDX expression. AND binds more closely than OR; `/` is an old form of OR.
fn allowed(expression: &str, known: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let mut words = spaced.split_whitespace().peekable();
    let satisfied = any(&mut words, known);
    satisfied && words.next().is_none()
}

type Words<'a> = std::iter::Peekable<std::str::SplitWhitespace<'a>>;

fn any(words: &mut Words<'_>, known: &[&str]) -> bool {
    let mut satisfied = all(words, known);
    while words.next_if_eq(&"OR").is_some() {
        satisfied |= all(words, known);
    }
    satisfied
}

fn all(words: &mut Words<'_>, known: &[&str]) -> bool {
    let mut satisfied = one(words, known);
    while words.next_if_eq(&"AND").is_some() {
        satisfied &= one(words, known);
    }
    satisfied
}

fn one(words: &mut Words<'_>, known: &[&str]) -> bool {
    let Some(word) = words.next() else { return false };
    let mut satisfied = known.contains(&word);
    if word == "(" {
        satisfied = any(words, known) & (words.next() == Some(")"));
    }
    // An exception only permits more.
    if words.next_if_eq(&"WITH").is_some() {
        words.next();
    }
    satisfied
}

/// Collects the crates that are linked into ours, without build scripts, macros and tests.
fn linked(metadata: &Value) -> Versions {
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), node)).collect();
    let is_macro = |id: &str| {
        list(&packages[id]["targets"])
            .iter()
            .any(|target| list(&target["kind"]).iter().any(|kind| kind == "proc-macro"))
    };
    let mut waiting: Vec<&str> = list(&metadata["workspace_members"]).iter().map(text).collect();
    let (mut seen, mut versions) = (BTreeSet::new(), Versions::new());
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let package = packages[id];
        versions.entry(text(&package["name"]).into()).or_default().insert(text(&package["version"]).into());
        for dependency in list(&nodes[id]["deps"]) {
            let normal = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let target = text(&dependency["pkg"]);
            if normal && !is_macro(target) {
                waiting.push(target);
            }
        }
    }
    versions
}

/// Finds crates in two versions without a reason, and reasons that are no longer needed.
fn duplicates(linked: &Versions, reasons: &Value) -> Vec<String> {
    let twice = |name: &str| linked.get(name).is_some_and(|versions| versions.len() > 1);
    let unknown = linked.iter().filter(|(name, _)| twice(name) && text(&reasons[name.as_str()]).is_empty());
    let mut faults: Vec<String> = unknown
        .map(|(name, versions)| {
            let versions: Vec<&str> = versions.iter().map(String::as_str).collect();
            format!("{name} is linked in versions {}; Cargo.toml gives no reason", versions.join(" and "))
        })
        .collect();
    let names = reasons.as_object().into_iter().flatten().map(|(name, _)| name);
    let stale = names.filter(|name| !twice(name));
    faults.extend(stale.map(|name| format!("{name} is linked once; Cargo.toml still has a reason for two")));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn licences_are_expressions() {
        let known = ["MIT", "Apache-2.0", "ISC"];
        for expression in [
            "MIT",
            "MIT OR GPL-3.0",
            "GPL-3.0/MIT",
            "(MIT OR GPL-3.0) AND ISC",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(allowed(expression, &known), "{expression}");
        }
        for expression in [
            "",
            "GPL-3.0",
            "MIT AND GPL-3.0",
            "(MIT OR ISC) AND GPL-3.0",
            "(MIT",
            "MIT ISC",
            "GPL-3.0 OR ISC AND X",
        ] {
            assert!(!allowed(expression, &known), "{expression}");
        }
    }

    #[test]
    fn two_versions_need_a_reason_and_a_reason_two_versions() {
        let versions = |of: &[&str]| of.iter().map(|version| (*version).to_owned()).collect();
        let linked = Versions::from([("a".into(), versions(&["1", "2"])), ("b".into(), versions(&["1"]))]);
        assert!(duplicates(&linked, &json!({"a": "c needs 1"})).is_empty());
        assert_eq!(duplicates(&linked, &json!({})).len(), 1);
        assert_eq!(duplicates(&linked, &json!({"a": "c needs 1", "b": "?"})).len(), 1);
    }

    #[test]
    fn another_source_or_licence_is_a_fault() {
        let package =
            |source: &str, license: &str| json!({"name": "x", "source": source, "license": license});
        let faults = |package: Value| {
            foreign(&json!({"packages": [package], "metadata": {"dependencies": {"licences": ["MIT"]}}}))
                .len()
        };
        assert_eq!(faults(package(SOURCE, "MIT")), 0);
        assert_eq!(faults(package("git+https://example.com/x", "MIT")), 1);
        assert_eq!(faults(package(SOURCE, "GPL-3.0")), 1);
        assert_eq!(faults(json!({"name": "own", "source": null, "license": null})), 0);
    }
}
