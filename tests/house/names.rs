//! Names that users rely on and that no compiler compares: methods, metrics, tables of stores, exit codes and exports of the
//! npm package. The file `api/names.txt` lists these names. `api/commands.txt` lists commands and flags
//! (`native/cli/tests/program/names.rs`).

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::layering::root;
use crate::modules::rust_files;

/// The folders of the crates below `native`.
const NATIVE: [&str; 6] = ["limits", "upstream", "server", "node", "cluster", "cli"];

/// The sources of a folder without the tests at their ends.
fn sources(folder: &str) -> Vec<String> {
    let read = |path: PathBuf| {
        let source = fs::read_to_string(path).expect("the source is readable");
        source.split("#[cfg(test)]\nmod ").next().unwrap_or_default().to_owned()
    };
    rust_files(&root().join(folder)).into_iter().map(read).collect()
}

/// The sources of the crates below `native`.
fn native() -> Vec<String> {
    NATIVE.iter().flat_map(|name| sources(&format!("native/{name}/src"))).collect()
}

/// The texts between each `before` and the next `end`.
fn between<'a>(source: &'a str, before: &'a str, end: char) -> impl Iterator<Item = &'a str> {
    source.split(before).skip(1).filter_map(move |rest| rest.split(end).next())
}

/// The methods and their other names, in the first column of docs/methods.md. That page is written from the table
/// (`native/server/tests/methods/docs.rs`).
fn methods() -> BTreeSet<String> {
    let page = fs::read_to_string(root().join("docs/methods.md")).expect("the page is readable");
    let cells =
        page.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once("` |")?.0.to_owned()));
    cells
        .flat_map(|cell| cell.split("`, `").map(|name| format!("method {name}")).collect::<Vec<_>>())
        .collect()
}

/// A metric is registered by its name and a sentence of help.
fn metrics() -> BTreeSet<String> {
    let is_name =
        |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b"_".contains(&b));
    let mut names = BTreeSet::new();
    for source in native().iter().filter(|source| source.contains("egist")) {
        let texts: Vec<&str> = source.split('"').collect();
        for window in texts.windows(3) {
            let [name, between, help] = window else { continue };
            let is_help = help.starts_with(char::is_uppercase) || between.contains("help");
            if is_name(name) && is_help && between.trim_start_matches([',', ' ', '\n']).len() < 6 {
                names.insert(format!("metric {name}"));
            }
        }
        names.extend(
            between(source, "register(\"", '"')
                .filter(|name| is_name(name))
                .map(|name| format!("metric {name}")),
        );
        names.extend(between(source, "with_prefix(\"", '"').map(|name| format!("metric prefix {name}")));
    }
    names
}

fn tables() -> BTreeSet<String> {
    let sources = native();
    let names = sources.iter().flat_map(|source| between(source, "TableDefinition::new(\"", '"'));
    names.map(|name| format!("table {name}")).collect()
}

fn exit_codes() -> BTreeSet<String> {
    let sources = sources("native/cli/src");
    let codes = sources.iter().flat_map(|source| between(source, "ExitCode::from(", ')'));
    codes.filter(|code| code.parse::<u8>().is_ok()).map(|code| format!("exit code {code}")).collect()
}

/// The entry points of the npm package, and the names that their type declarations export.
fn exports() -> BTreeSet<String> {
    let folder = root().join("pkg");
    let package: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("package.json")).unwrap()).unwrap();
    let mut names = BTreeSet::new();
    for (entry, target) in package["exports"].as_object().unwrap() {
        names.insert(format!("npm {entry}"));
        let Some(types) = target["types"].as_str() else { continue };
        let text = fs::read_to_string(folder.join(types)).unwrap();
        names.extend(
            text.split("\nexport ").skip(1).flat_map(exported).map(|name| format!("npm {entry} {name}")),
        );
    }
    names
}

/// The names of one `export` statement: those between its braces, or the name that it declares.
fn exported(export: &str) -> Vec<&str> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let list = export.strip_prefix("type ").unwrap_or(export).strip_prefix('{');
    if let Some((list, _)) = list.and_then(|rest| rest.split_once('}')) {
        return list.split(',').filter_map(|item| item.split_whitespace().last()).collect();
    }
    let mut words = export.split(|c: char| !is_part(c));
    words.find(|word| ["function", "class", "interface", "type", "const"].contains(word));
    words.next().into_iter().collect()
}

#[test]
fn exports_are_read_from_lists_and_declarations() {
    assert_eq!(exported("{ a as b, c };\n"), ["b", "c"]);
    assert_eq!(exported("type {\n  A,\n  B,\n} from './x.js';"), ["A", "B"]);
    assert_eq!(exported("{};"), [""; 0]);
    assert_eq!(exported("function load(module?: A): B;"), ["load"]);
    assert_eq!(exported("type Answer<T> = T;"), ["Answer"]);
}

#[test]
fn public_names_are_those_that_are_written_down() {
    let mut names = methods();
    assert!(names.len() > 100, "{names:?}");
    for (kind, found) in [metrics(), tables(), exit_codes(), exports()].into_iter().enumerate() {
        assert!(found.len() > 1, "kind {kind}: {found:?}");
        names.extend(found);
    }
    let text = names.into_iter().map(|name| name + "\n").collect::<String>();
    let file = root().join("api/names.txt");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, &text).expect("api/ is writable");
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(text, written, "run UPDATE_DOCS=1 cargo test --test house names");
}

/// Every metric that a Grafana dashboard shows exists.
#[test]
fn dashboards_use_metrics_that_exist() {
    let known = metrics();
    for entry in fs::read_dir(root().join("docs/grafana")).expect("docs/grafana is readable").flatten() {
        let text = fs::read_to_string(entry.path()).expect("a dashboard");
        for used in text.split("rootlight_").skip(1) {
            let end = used.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(used.len());
            let name = ["_total", "_bucket", "_count", "_sum"]
                .iter()
                .fold(&used[..end], |name, suffix| name.strip_suffix(suffix).unwrap_or(name));
            let is = |name: &str| known.contains(&format!("metric {name}"));
            let without_prefix = name.split_once('_').is_some_and(|(_, rest)| is(rest));
            assert!(
                is(name) || without_prefix,
                "{}: rootlight_{name}",
                Path::new(&entry.file_name()).display()
            );
        }
    }
}
