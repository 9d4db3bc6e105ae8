//! Rules about the sources that the compiler does not check: a layer imports only itself and lower layers, only
//! `src/evm` names revm, and source files have a limited length.

use std::fs;
use std::path::{Path, PathBuf};

use crate::modules::{Module, Modules, rust_files};

/// Lowest first: a layer may import itself and those before it.
const LAYERS: [&str; 12] = [
    "types",
    "trie",
    "consensus",
    "state",
    "verify",
    "evm",
    "exec",
    "light",
    "local",
    "dev",
    "engine",
    "rpc",
];

/// The longest a source file may be, in lines; test files are exempt.
const MAX_LINES: usize = 600;

/// Source folders whose files are measured.
const MEASURED: [&str; 13] = [
    "src",
    "p2p/src",
    "index/src",
    "native/limits/src",
    "native/upstream/src",
    "native/server/src",
    "native/node/src",
    "native/cluster/src",
    "native/cli/src",
    "pkg",
    "xtask/src",
    "bench/src",
    "bench/fleet/src",
];

fn level(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|name| *name == layer)
}

/// The layer of a path from the crate's root.
fn layer_of(path: &[String]) -> Option<usize> {
    level(path.first()?)
}

/// The violations of one module of the core, one line each.
fn module_faults(crate_modules: &Modules, module: &Module) -> Vec<String> {
    let own = layer_of(&module.path);
    let mut faults = Vec::new();
    for (path, _) in &module.named {
        let shown = format!("src/{}: {}", module.file.display(), path.join("::"));
        if path.first().is_some_and(|name| name == "revm") && own != level("evm") {
            faults.push(format!("{shown}: only src/evm names revm"));
        }
        // The layer that the path spells, and the layer that defines the item when it is a re-export.
        let spelled = crate_modules.absolute(module, path).and_then(|path| layer_of(&path));
        let defining = crate_modules.target(module, path).and_then(|target| layer_of(&target.path));
        let target = spelled.max(defining);
        if let (Some(own), Some(target)) = (own, target)
            && target > own
        {
            faults.push(format!("{shown}: {} must not import {}", LAYERS[own], LAYERS[target]));
        }
    }
    faults
}

fn layer_faults(crate_modules: &Modules) -> Vec<String> {
    let mut faults: Vec<String> =
        crate_modules.iter().flat_map(|module| module_faults(crate_modules, module)).collect();
    faults.dedup();
    faults
}

/// The violations of one file in a crate that has no other.
fn faults_of(file: &str, source: &str) -> Vec<String> {
    layer_faults(&Modules::parse(vec![(file.into(), source.into())], "rootlight"))
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn is_test_file(path: &Path) -> bool {
    path.iter().any(|part| part == "tests")
        || path.file_stem().is_some_and(|stem| {
            let stem = stem.to_string_lossy();
            stem == "tests" || stem.ends_with("_tests")
        })
}

#[test]
fn layers_import_only_lower_layers() {
    let core = Modules::read(&root().join("src"), "rootlight");
    assert!(core.iter().count() > 100, "{} modules found", core.iter().count());
    let faults = layer_faults(&core);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_folder_below_src_is_a_layer() {
    for entry in fs::read_dir(root().join("src")).expect("src is readable").flatten() {
        if entry.path().is_dir() {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(level(&name).is_some(), "src/{name} is missing in the order of layers");
        }
    }
}

#[test]
fn source_files_are_not_longer_than_the_limit() {
    let mut faults = Vec::new();
    for folder in MEASURED {
        for file in rust_files(&root().join(folder)) {
            let lines = fs::read_to_string(&file).expect("the source is readable").lines().count();
            if lines > MAX_LINES && !is_test_file(&file) {
                faults.push(format!("{}: {lines} lines, at most {MAX_LINES}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn imports_of_higher_layers_are_found() {
    let upward = [
        "use crate::rpc::Dispatcher;",
        "pub use crate::{types::Header, consensus::{Network, rules}};",
        "fn f(x: &crate::evm::Spec) {}",
        "use super::super::state::Account;",
        "use ::rootlight::light;\nuse rootlight::light::Session;",
        "use crate::{\n    types::Header,\n    engine,\n};",
        "fn f() { let a = \"\\\"\"; let b = '\"'; crate::exec::call(a, b); }",
        "fn f<'a>(x: &'a str) -> crate::light::View<'a> { x }",
        "fn r#type() {} use crate::r#rpc::x;",
        "fn f() { assert_eq!(crate::rpc::VERSION, 1); }",
        "macro_rules! m { () => { $crate::rpc::x() } }",
        "mod inner { use super::super::super::rpc::x; }",
        "#[cfg(test)]\nmod tests { use crate::rpc::x; }",
    ];
    for text in upward {
        assert!(!faults_of("trie/node.rs", text).is_empty(), "{text}");
    }
    let seen = faults_of("trie/node.rs", "use crate::rpc::Dispatcher;");
    assert_eq!(seen, ["src/trie/node.rs: crate::rpc::Dispatcher: trie must not import rpc"]);
    assert_eq!(faults_of("trie/mod.rs", "use super::state;").len(), 1);
}

#[test]
fn a_re_export_belongs_to_the_layer_that_defines_the_item() {
    let files = [
        ("lib.rs", "pub mod rpc;\npub mod trie;\npub use rpc::Dispatcher;"),
        ("rpc/mod.rs", "mod dispatch;\npub use dispatch::Dispatcher;"),
        ("rpc/dispatch.rs", "pub struct Dispatcher;"),
        ("trie/mod.rs", "use crate::Dispatcher;"),
    ];
    let files = files.map(|(file, source)| (file.into(), source.into()));
    let faults = layer_faults(&Modules::parse(files.into(), "rootlight"));
    assert_eq!(faults, ["src/trie/mod.rs: crate::Dispatcher: trie must not import rpc"]);
}

#[test]
fn imports_of_lower_layers_comments_and_strings_are_allowed() {
    let allowed = [
        "use crate::types::Header;",
        "use crate::trie::node;",
        "use super::rpc;",
        "use super::*;",
        "mod inner { use super::super::rpc; }",
        "// use crate::rpc::x;\n/* crate::rpc /* nested crate::rpc::y */ crate::rpc::z */",
        "//! crate::rpc::x\nconst A: &str = \"crate::rpc::x\";",
        "const A: &str = r#\"crate::rpc::x \" y\"#;",
        "const A: &[u8] = b\"crate::rpc::x\"; const B: char = '\\''; const C: char = '\"';",
        "use alloc::rpc::x; use other::crate_like::rpc;",
    ];
    for text in allowed {
        assert_eq!(faults_of("trie/node.rs", text), Vec::<String>::new(), "{text}");
    }
    assert!(faults_of("rpc/mod.rs", "use crate::{types, light, engine};").is_empty());
    assert!(faults_of("lib.rs", "pub use crate::rpc::Dispatcher;").is_empty());
}

#[test]
fn revm_named_outside_its_layer_is_found() {
    assert_eq!(faults_of("exec/mod.rs", "use revm::primitives::Address;").len(), 1);
    assert!(faults_of("evm/mod.rs", "use revm::primitives::Address;").is_empty());
}
