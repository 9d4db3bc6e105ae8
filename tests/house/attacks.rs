//! The tests that docs/attacks.md names exist.

use std::collections::HashSet;
use std::path::Path;

/// The names in code spans of a text that have a module and a function, or that end with `.test.mjs`.
fn test_names(text: &str) -> Vec<&str> {
    let spans = text.split('`').skip(1).step_by(2);
    spans.filter(|name| name.contains("::") || name.ends_with(".test.mjs")).collect()
}

/// Every test function of a folder's sources as `module::function`. A module in a folder of its own is named after it.
fn tests_below(folder: &Path, found: &mut HashSet<String>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("target") && !path.ends_with("node_modules") {
                tests_below(&path, found);
            }
            continue;
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let module = if path.ends_with("mod.rs") { path.parent().unwrap() } else { &path };
        let module = module.file_stem().unwrap().to_str().unwrap();
        let source = std::fs::read_to_string(&path).unwrap();
        let mut is_test = false;
        for line in source.lines().map(str::trim) {
            if line.starts_with("#[") {
                is_test |= line.contains("test");
                continue;
            }
            let line = line.strip_prefix("async ").unwrap_or(line);
            let function =
                line.strip_prefix("fn ").and_then(|line| line.split_once("()")).filter(|_| is_test);
            if let Some((function, _)) = function {
                found.insert(format!("{module}::{function}"));
            }
            is_test = false;
        }
    }
}

/// Each row of docs/attacks.md ends with names of tests, and all of them exist.
#[test]
fn the_tables_of_attacks_name_existing_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/attacks.md")).unwrap();
    let (_, tables) = page.split_once("## Known attacks").unwrap();
    let tables = tables.split_once("\n## ").unwrap().0;
    let rows: Vec<&str> = tables.lines().filter(|line| line.starts_with("| ")).collect();
    assert!(rows.len() > 200, "{} rows", rows.len());
    for row in rows.iter().filter(|row| !row.ends_with(" | test |")) {
        let cell = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        let names = test_names(cell);
        assert!(!names.is_empty() && names.len() == cell.split(", ").count(), "no tests: {row}");
    }
    let mut tests = HashSet::new();
    ["src", "tests", "native", "p2p", "index"]
        .iter()
        .for_each(|folder| tests_below(&root.join(folder), &mut tests));
    for name in test_names(&page).into_iter().filter(|name| *name != "module::function") {
        assert!(
            tests.contains(name) || root.join(name).is_file(),
            "docs/attacks.md: there is no test {name}"
        );
    }
}
