//! docs/methods.md is generated from the method table, and the tests that docs/attacks.md names exist.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;

use rootlight::rpc;

fn page() -> String {
    let mut page = String::from(
        "# Methods\n\nWritten from the method table (`src/rpc/table.rs`, `src/rpc/server/rows.rs`) by `UPDATE_DOCS=1 cargo test --test house`.\n\
         Levels: [trust.md](trust.md). `BLOCK` is a number, a tag, a hash, or a map with `blockHash` or `blockNumber`.\n\
         The columns `dev`, `follow` and `light` say what a method answers in each mode: `yes`, a limit, or the code of an error; the\n\
         texts are below the table, and in `rootlight methods --json`. `hosted` says whether the hosted profile has the method. Web pages that may call a method: `any`, or `own`, those of\n\
         the same machine and those that `--cors` names ([server.md](server.md)); `named` is the same, but not for the pages that `--cors *` lets in. Methods of `operator` exist only for an operator key, and\n\
         without API keys for programs and pages of the same machine; others get -32601.\n\n\
         | method | parameters | result | level | dev | follow | light | hosted | pages | what it does |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut methods: Vec<_> = rpc::server::methods().collect();
    methods.sort_by_key(|method| method.name);
    for method in methods {
        let names: Vec<String> =
            std::iter::once(&method.name).chain(method.aliases).map(|name| format!("`{name}`")).collect();
        let optional = |required: bool| if required { "" } else { "?" };
        let params = method.params.iter().map(|p| format!("{}{}: {}", p.name, optional(p.required), p.kind));
        let params: Vec<String> = params.collect();
        let level = method.level.name().replace('-', " ");
        let modes = rpc::Mode::ALL.map(|mode| answer(&method.support(mode)));
        let hosted = if rpc::server::Profile::Hosted.has(method) { "yes" } else { "-32601" };
        let pages = method.pages.name();
        let params = if params.is_empty() { "none".into() } else { params.join(", ") };
        writeln!(
            page,
            "| {} | {params} | {} | {level} | {} | {hosted} | {pages} | {} |",
            names.join(", "),
            method.result,
            modes.join(" | "),
            method.doc
        )
        .unwrap();
    }
    page.push_str("\nErrors of methods that a mode does not have:\n");
    for text in refusals() {
        writeln!(page, "- {text}").unwrap();
    }
    writeln!(
        page,
        "\nMethods of the reference node that Rootlight does not have: {}.",
        rpc::UNAVAILABLE.join(", ")
    )
    .unwrap();
    page
}

/// What a method answers in a mode, for a cell of the table.
fn answer(support: &rpc::Support) -> String {
    match support {
        rpc::Support::Works => "yes".into(),
        rpc::Support::Partly(limit) => (*limit).into(),
        rpc::Support::Refused(error) => error.code().to_string(),
    }
}

/// The texts of all refusals, with NAME for the method.
fn refusals() -> Vec<String> {
    let mut texts = std::collections::BTreeSet::new();
    for method in rpc::server::methods() {
        for mode in rpc::Mode::ALL {
            if let rpc::Support::Refused(error) = method.support(mode) {
                let text = error.to_string().replace(method.name, "NAME");
                texts.insert(format!("{}: {} `` {text} ``", mode.name(), error.code()));
            }
        }
    }
    texts.insert("hosted: -32601 `` the method NAME does not exist/is not available ``".into());
    texts.into_iter().collect()
}

#[test]
fn the_methods_page_is_generated_from_the_table() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/methods.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/methods.md is not the method table: run UPDATE_DOCS=1 cargo test --test house"
    );
}

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
