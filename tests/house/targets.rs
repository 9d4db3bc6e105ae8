//! Every Rust file below a folder of tests belongs to a test target; cargo does not report a file that is left out.

use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose subfolders with a `main.rs` are test targets.
const TEST_FOLDERS: [&str; 4] = ["tests", "p2p/tests", "index/tests", "native/cli/tests"];

/// Modules that several targets include by `#[path]`.
const SHARED: [&str; 2] = ["support", "common"];

/// The modules that a file declares.
fn declared(source: &str) -> Vec<&str> {
    let declaration = |line: &str| line.trim().trim_start_matches("pub ").starts_with("mod ");
    source
        .lines()
        .filter(|line| declaration(line))
        .filter_map(|line| line.trim().strip_suffix(';')?.rsplit(' ').next())
        .collect()
}

/// The files of a folder that its `main.rs` or `mod.rs` does not declare.
fn undeclared(folder: &Path, root: &str) -> Vec<PathBuf> {
    let source = fs::read_to_string(folder.join(root)).expect("the root module is readable");
    let modules = declared(&source);
    let files = fs::read_dir(folder).expect("the folder is readable").flatten().map(|entry| entry.path());
    let rust = files.filter(|path| path.extension().is_some_and(|end| end == "rs") && !path.ends_with(root));
    let left_out = |path: &PathBuf| {
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("a file name in UTF-8");
        !modules.contains(&stem)
    };
    rust.filter(left_out).collect()
}

#[test]
fn every_test_file_belongs_to_a_target() {
    let mut left_out = Vec::new();
    let mut targets = 0;
    for tests in TEST_FOLDERS {
        let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join(tests);
        for entry in fs::read_dir(tests).expect("tests are there").flatten() {
            let folder = entry.path();
            if SHARED.iter().any(|name| folder.ends_with(name)) {
                left_out.extend(undeclared(&folder, "mod.rs"));
            } else if folder.join("main.rs").is_file() {
                left_out.extend(undeclared(&folder, "main.rs"));
                targets += 1;
            }
        }
    }
    assert!(targets > 8, "{targets} targets found");
    assert!(left_out.is_empty(), "no target includes {left_out:?}");
}

#[test]
fn declarations_of_modules_are_found() {
    let source =
        "//! mod of;\nmod a;\npub mod b;\nmod c {\n}\n#[path = \"../d/mod.rs\"]\nmod d;\nuse super::mode;\n";
    assert_eq!(declared(source), ["a", "b", "d"]);
}
