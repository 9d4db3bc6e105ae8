//! docs/methods.md is generated from the method table, and the tests that docs/trust.md links exist.

use std::fmt::Write as _;
use std::path::Path;

use rootlight::rpc;

fn page() -> String {
    let mut page = String::from(
        "# Methods\n\nWritten from the method table (`src/rpc/table.rs`) by `UPDATE_DOCS=1 cargo test --test house`.\n\
         Levels: [trust.md](trust.md). `BLOCK` is a number, a tag, a hash, or a map with `blockHash` or `blockNumber`.\n\
         Methods that change something work on a local chain only; a light client refuses them with -32601. Web pages that may\n\
         call a method: `any`, or `own`, those of the same machine and those that `--cors` names ([server.md](server.md)).\n\n\
         | method | parameters | result | level | where | pages | what it does |\n|---|---|---|---|---|---|---|\n",
    );
    let mut methods: Vec<_> = rpc::methods().collect();
    methods.sort_by_key(|method| method.name);
    for method in methods {
        let names: Vec<String> =
            std::iter::once(&method.name).chain(method.aliases).map(|name| format!("`{name}`")).collect();
        let optional = |required: bool| if required { "" } else { "?" };
        let params = method.params.iter().map(|p| format!("{}{}: {}", p.name, optional(p.required), p.kind));
        let params: Vec<String> = params.collect();
        let level = method.level.name().replace('-', " ");
        let place = match method.handler {
            rpc::Handler::Write(_) => "local chain",
            rpc::Handler::Subscribe(_) | rpc::Handler::Unsubscribe(_) => "WebSocket",
            _ => "everywhere",
        };
        let pages = match method.pages {
            rpc::Pages::Any => "any",
            rpc::Pages::Own => "own",
        };
        let params = if params.is_empty() { "none".into() } else { params.join(", ") };
        writeln!(
            page,
            "| {} | {params} | {} | {level} | {place} | {pages} | {} |",
            names.join(", "),
            method.result,
            method.doc
        )
        .unwrap();
    }
    writeln!(
        page,
        "\nMethods of the reference node that Rootlight does not have: {}.",
        rpc::UNAVAILABLE.join(", ")
    )
    .unwrap();
    page
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

/// Name and file of every `[`module::name`](../file)` in a text.
fn linked(text: &str) -> Vec<(&str, &str)> {
    let links = text.split("[`").skip(1);
    links.filter_map(|link| link.split_once(')')?.0.split_once("`](../")).collect()
}

/// Each threat of docs/trust.md names existing tests in the file that the link leads to.
#[test]
fn the_threat_table_links_existing_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("docs/trust.md")).unwrap();
    let table = page.split("| an upstream that").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 25, "{} rows", rows.len());
    for row in rows {
        let cell = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap();
        let names = linked(cell);
        assert!(!names.is_empty() && names.len() == cell.split(", ").count(), "every test is a link: {row}");
        for (name, file) in names {
            let (module, function) = name.rsplit_once("::").unwrap();
            // A module in a folder of its own is named after the folder.
            let path = Path::new(file.strip_suffix("/mod.rs").unwrap_or(file));
            assert_eq!(path.file_stem().and_then(|stem| stem.to_str()), Some(module), "{name}");
            let source = std::fs::read_to_string(root.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"));
            let before =
                source.split(&format!("fn {function}()")).next().filter(|text| text.len() < source.len());
            let attribute = before.and_then(|text| text.lines().rev().find(|line| line.starts_with("#[")));
            assert!(attribute.is_some_and(|line| line.contains("test")), "{file} has no test {function}");
        }
    }
}
