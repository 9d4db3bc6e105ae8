//! docs/methods.md is generated from the method table.

use std::fmt::Write as _;

use rootlight::rpc;
use rootlight_server::methods::{Profile, methods};

use crate::support::root;

fn page() -> String {
    let mut page = String::from(
        "# Methods\n\nWritten from the method table (`src/rpc/table.rs`, `native/server/src/methods`) by `UPDATE_DOCS=1 cargo test --package rootlight-server --test methods`.\n\
         Levels: [trust.md](trust.md). `BLOCK` is a number, a tag, a hash, or a map with `blockHash` or `blockNumber`.\n\
         The columns `dev`, `follow` and `light` say what a method answers in each mode: `yes`, a limit, or the code of an error; the\n\
         texts are below the table, and in `rootlight methods --json`. `hosted` says whether the hosted profile has the method. Web pages that may call a method: `any`, or `own`, those of\n\
         the same machine and those that `--cors` names ([server.md](server.md)); `named` is the same, but not for the pages that `--cors *` lets in. Methods of `operator` exist only for an operator key, and\n\
         without API keys for programs and pages of the same machine; others get -32601.\n\n\
         | method | parameters | result | level | dev | follow | light | hosted | pages | what it does |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut methods: Vec<_> = methods().collect();
    methods.sort_by_key(|method| method.name);
    for method in methods {
        let names: Vec<String> =
            std::iter::once(&method.name).chain(method.aliases).map(|name| format!("`{name}`")).collect();
        let optional = |required: bool| if required { "" } else { "?" };
        let params = method.params.iter().map(|p| format!("{}{}: {}", p.name, optional(p.required), p.kind));
        let params: Vec<String> = params.collect();
        let level = method.level.name().replace('-', " ");
        let modes = rpc::Mode::ALL.map(|mode| answer(&method.support(mode)));
        let hosted = if Profile::Hosted.has(method) { "yes" } else { "-32601" };
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
    page.push_str(
        "\nMethods of Ethereum that Rootstock cannot have, or that others replace, are -32601 too, and the error says what to do:\n",
    );
    for (name, instead) in rpc::IMPOSSIBLE {
        writeln!(page, "- `{name}`: {instead}").unwrap();
    }
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
    for method in methods() {
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
    let path = root().join("docs/methods.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page()).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page(),
        "docs/methods.md is not the method table: run UPDATE_DOCS=1 cargo test --package rootlight-server --test methods"
    );
}
