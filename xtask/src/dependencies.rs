//! Checks the dependencies: their sources, their licences, and that a crate is compiled in two versions only for a
//! stated reason. The rules are in `deny.toml`, which cargo-deny reads too ([`deny`], with `--full`). This check needs
//! no other tool: building cargo-deny takes 85 s of processor time.

use std::collections::{BTreeMap, BTreeSet};

use semver::{Version, VersionReq};
use serde_json::Value;
use spdx::{Expression, Licensee, ParseMode};

use crate::shell::{Cmd, Log, root};
use crate::steps::Outcome;
use crate::tools;

/// The registry as `cargo metadata` writes it before its address.
const REGISTRY: &str = "registry+";

/// Versions by the name of the crate.
type Versions = BTreeMap<String, BTreeSet<Version>>;

/// Runs the check, and returns the number of crates as a note.
pub(crate) fn check(log: &mut Log) -> Outcome {
    let text = std::fs::read_to_string(root().join("deny.toml")).map_err(|e| format!("deny.toml: {e}"))?;
    let rules = Rules::read(&text)?;
    let host = "cargo metadata --locked --format-version 1 --filter-platform x86_64-unknown-linux-gnu";
    let text = log.read(Cmd::new(host))?;
    let metadata: Value = serde_json::from_str(&text).map_err(|error| format!("cargo metadata: {error}"))?;
    let mut faults = foreign(&metadata, &rules);
    faults.extend(duplicates(&built(&metadata)?, &rules.skipped));
    if !faults.is_empty() {
        return Err(faults.join("\n"));
    }
    Ok(format!("{} crates", list(&metadata["packages"]).len()))
}

/// Runs cargo-deny with the same rules. It also reads the texts of licences, and every feature of the dependencies.
pub(crate) fn deny(log: &mut Log) -> Outcome {
    tools::cargo_deny(log)?;
    // cargo metadata, which the check above reads, also names optional crates that nothing builds; cargo-deny does not. That
    // an entry of `skip` has become useless is found there.
    let check = "cargo deny --workspace check -D warnings -A unmatched-skip bans licenses sources";
    log.run(Cmd::new(check)).map(|_| String::new())
}

/// What `deny.toml` permits.
struct Rules {
    licences: Vec<Licensee>,
    registries: Vec<String>,
    /// Versions that may be beside another version of the same crate.
    skipped: Vec<(String, VersionReq)>,
}

impl Rules {
    fn read(text: &str) -> Result<Self, String> {
        let file: toml::Table = text.parse().map_err(|error| format!("deny.toml: {error}"))?;
        let entries = |section: &str, name: &str| {
            let entries = file.get(section).and_then(|section| section.get(name)).and_then(|v| v.as_array());
            entries.ok_or_else(|| format!("deny.toml has no list `{name}` in `{section}`"))
        };
        let texts = |section: &str, name: &str| -> Result<Vec<String>, String> {
            Ok(entries(section, name)?.iter().filter_map(|v| Some(v.as_str()?.to_owned())).collect())
        };
        let licences = texts("licenses", "allow")?;
        let licences = licences.iter().map(|name| Licensee::parse(name).map_err(|error| error.to_string()));
        Ok(Self {
            licences: licences.collect::<Result<_, _>>()?,
            registries: texts("sources", "allow-registry")?,
            skipped: entries("bans", "skip")?.iter().map(skip).collect::<Result<_, _>>()?,
        })
    }
}

/// Reads `{ crate = "NAME:REQUIREMENT", reason = "..." }`.
fn skip(entry: &toml::Value) -> Result<(String, VersionReq), String> {
    let text = |key: &str| entry.get(key).and_then(toml::Value::as_str).unwrap_or_default();
    let fault = || {
        format!(
            "deny.toml: `skip` entries are {{ crate = \"NAME:REQUIREMENT\", reason = \"...\" }}, not {entry:?}"
        )
    };
    let (name, requirement) = text("crate").split_once(':').ok_or_else(fault)?;
    let requirement = requirement.parse().map_err(|_| fault())?;
    if text("reason").is_empty() { Err(fault()) } else { Ok((name.to_owned(), requirement)) }
}

/// Returns the members of an array, or nothing for other values.
fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// Finds crates with another source or licence. Crates of this workspace have no source.
fn foreign(metadata: &Value, rules: &Rules) -> Vec<String> {
    let mut faults = Vec::new();
    for package in list(&metadata["packages"]).iter().filter(|package| !package["source"].is_null()) {
        let (name, source, licence) =
            (text(&package["name"]), text(&package["source"]), text(&package["license"]));
        let address = source.strip_prefix(REGISTRY);
        if !address.is_some_and(|address| rules.registries.iter().any(|known| known == address)) {
            faults.push(format!("{name} comes from {source}"));
        }
        if !allowed(licence, &rules.licences) {
            faults.push(format!("{name} has the licence '{licence}', which is not in the list of deny.toml"));
        }
    }
    faults
}

/// Whether the permitted licences satisfy an SPDX expression.
fn allowed(expression: &str, licences: &[Licensee]) -> bool {
    // Old crates separate alternatives with `/`.
    let parsed = Expression::parse_mode(expression, ParseMode::LAX);
    parsed.is_ok_and(|parsed| parsed.evaluate(|wanted| licences.iter().any(|known| known.satisfies(wanted))))
}

/// All crates that are compiled for our crates: what is linked, build scripts and macros, but nothing for tests only.
fn built(metadata: &Value) -> Result<Versions, String> {
    let packages: BTreeMap<&str, &Value> =
        list(&metadata["packages"]).iter().map(|package| (text(&package["id"]), package)).collect();
    let nodes: BTreeMap<&str, &Value> =
        list(&metadata["resolve"]["nodes"]).iter().map(|node| (text(&node["id"]), node)).collect();
    let mut waiting: Vec<&str> = list(&metadata["workspace_members"]).iter().map(text).collect();
    let (mut seen, mut versions) = (BTreeSet::new(), Versions::new());
    while let Some(id) = waiting.pop() {
        if !seen.insert(id) {
            continue;
        }
        let (name, version) = (text(&packages[id]["name"]), text(&packages[id]["version"]));
        let version = version.parse().map_err(|error| format!("{name} {version}: {error}"))?;
        versions.entry(name.into()).or_default().insert(version);
        let wanted = |kind: &Value| kind["kind"] != "dev";
        let dependencies = list(&nodes[id]["deps"]).iter();
        let needed = dependencies.filter(|dependency| list(&dependency["dep_kinds"]).iter().any(wanted));
        waiting.extend(needed.map(|dependency| text(&dependency["pkg"])));
    }
    Ok(versions)
}

/// Finds crates in two versions without a reason, and reasons that are no longer needed.
fn duplicates(built: &Versions, skipped: &[(String, VersionReq)]) -> Vec<String> {
    let skips = |name: &str, version: &Version| {
        skipped.iter().any(|(skipped, requirement)| skipped == name && requirement.matches(version))
    };
    let mut faults = Vec::new();
    for (name, versions) in built {
        if versions.iter().filter(|version| !skips(name, version)).count() > 1 {
            let versions: Vec<String> = versions.iter().map(Version::to_string).collect();
            faults.push(format!(
                "{name} has the versions {}; deny.toml gives no reason",
                versions.join(" and ")
            ));
        }
    }
    for (name, requirement) in skipped {
        let used = |versions: &BTreeSet<Version>| {
            versions.len() > 1 && versions.iter().any(|v| requirement.matches(v))
        };
        if !built.get(name).is_some_and(used) {
            faults.push(format!("deny.toml skips {name} {requirement}, which is beside no other version"));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn rules() -> Rules {
        let text = r#"
            [licenses]
            allow = ["MIT", "Apache-2.0", "ISC"]
            [sources]
            allow-registry = ["https://example.com/index"]
            [bans]
            skip = [{ crate = "a:^1", reason = "c needs it" }]
        "#;
        Rules::read(text).unwrap()
    }

    #[test]
    fn licences_are_expressions() {
        let known = rules().licences;
        for expression in
            ["MIT", "MIT OR GPL-3.0", "GPL-3.0/MIT", "(MIT OR GPL-3.0) AND ISC", "Apache-2.0 OR X-unknown"]
        {
            let unknown = expression.contains("unknown");
            assert_eq!(allowed(expression, &known), !unknown, "{expression}");
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
        let versions =
            |of: &[&str]| of.iter().map(|version| version.parse().unwrap()).collect::<BTreeSet<Version>>();
        let one = versions(&["1.2.3"]);
        let built = Versions::from([("a".into(), versions(&["1.0.5", "2.0.0"])), ("b".into(), one.clone())]);
        assert!(duplicates(&built, &rules().skipped).is_empty());
        assert_eq!(duplicates(&built, &[]).len(), 1);
        assert_eq!(duplicates(&Versions::from([("a".into(), one)]), &rules().skipped).len(), 1);
        let three = Versions::from([("a".into(), versions(&["1.0.5", "2.0.0", "3.0.0"]))]);
        assert_eq!(duplicates(&three, &rules().skipped).len(), 1);
    }

    #[test]
    fn another_source_or_licence_is_a_fault() {
        let package =
            |source: &str, license: &str| json!({"name": "x", "source": source, "license": license});
        let faults = |package: Value| foreign(&json!({ "packages": [package] }), &rules()).len();
        assert_eq!(faults(package("registry+https://example.com/index", "MIT")), 0);
        assert_eq!(faults(package("registry+https://example.com/other", "MIT")), 1);
        assert_eq!(faults(package("git+https://example.com/index", "MIT")), 1);
        assert_eq!(faults(package("registry+https://example.com/index", "GPL-3.0")), 1);
        assert_eq!(faults(json!({"name": "own", "source": null, "license": null})), 0);
    }

    #[test]
    fn skips_without_a_version_or_a_reason_are_refused() {
        let read = |skip: &str| {
            let lists = "[licenses]\nallow = []\n[sources]\nallow-registry = []\n[bans]\n";
            Rules::read(&format!("{lists}skip = [{skip}]")).is_ok()
        };
        assert!(read(r#"{ crate = "a:^1", reason = "why" }"#));
        for wrong in [
            r#"{ crate = "a", reason = "why" }"#,
            r#"{ crate = "a:^1" }"#,
            r#"{ crate = "a:one", reason = "why" }"#,
            "\"a\"",
        ] {
            assert!(!read(wrong), "{wrong}");
        }
    }
}
