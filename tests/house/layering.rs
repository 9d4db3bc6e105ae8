//! The house rules that the compiler does not check: layers look down only, one layer names the EVM engine,
//! and no source file grows past what one can read.
//!
//! Paths are read from the source text: comments and literals are blanked, then every path that starts at
//! `crate`, `super` or `rootlight` is resolved to the layer it enters.

use std::fs;
use std::path::{Path, PathBuf};

/// Lowest first: a layer may name itself and those before it.
const LAYERS: [&str; 11] =
    ["types", "trie", "consensus", "state", "evm", "exec", "light", "local", "dev", "engine", "rpc"];

/// The longest a source file may be, in lines; test files are exempt.
const MAX_LINES: usize = 600;

/// Source folders whose files are measured.
const MEASURED: [&str; 5] = ["src", "native/src", "pkg", "xtask/src", "bench/src"];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Word(String),
    PathSep,
    Open,
    Close,
    Comma,
    Other(char),
}

/// Source text with comments, strings and characters blanked; line breaks are kept for counting.
fn blank(source: &str) -> String {
    let c: Vec<char> = source.chars().collect();
    let mut out = String::with_capacity(source.len());
    let mut i = 0;
    while i < c.len() {
        let end = match (c[i], c.get(i + 1)) {
            ('/', Some('/')) => until(&c, i, |c, j| c[j] == '\n'),
            ('/', Some('*')) => block_comment_end(&c, i),
            ('"', _) => string_end(&c, i),
            ('r', Some('"' | '#')) if i == 0 || !is_word(c[i - 1]) => raw_string_end(&c, i),
            ('\'', _) => char_end(&c, i),
            _ => i,
        };
        if end == i {
            out.push(c[i]);
            i += 1;
        } else {
            out.extend(c[i..end].iter().map(|x| if *x == '\n' { '\n' } else { ' ' }));
            i = end;
        }
    }
    out
}

fn until(c: &[char], from: usize, stop: impl Fn(&[char], usize) -> bool) -> usize {
    (from..c.len()).find(|j| stop(c, *j)).unwrap_or(c.len())
}

/// Block comments nest.
fn block_comment_end(c: &[char], from: usize) -> usize {
    let (mut depth, mut j) = (0usize, from);
    while j < c.len() {
        match (c[j], c.get(j + 1)) {
            ('/', Some('*')) => (depth, j) = (depth + 1, j + 2),
            ('*', Some('/')) if depth == 1 => return j + 2,
            ('*', Some('/')) => (depth, j) = (depth - 1, j + 2),
            _ => j += 1,
        }
    }
    c.len()
}

fn string_end(c: &[char], from: usize) -> usize {
    let mut j = from + 1;
    while j < c.len() && c[j] != '"' {
        j += if c[j] == '\\' { 2 } else { 1 };
    }
    (j + 1).min(c.len())
}

/// `from` itself when it is no raw string after all (`r#type`, say).
fn raw_string_end(c: &[char], from: usize) -> usize {
    let hashes = c[from + 1..].iter().take_while(|x| **x == '#').count();
    let quote = from + 1 + hashes;
    if c.get(quote) != Some(&'"') {
        return from;
    }
    let ends = |c: &[char], j: usize| {
        c[j] == '"' && c[j + 1..].iter().take(hashes).filter(|x| **x == '#').count() == hashes
    };
    (until(c, quote + 1, ends) + 1 + hashes).min(c.len())
}

/// A character literal's end, or `from` for a lifetime.
fn char_end(c: &[char], from: usize) -> usize {
    match (c.get(from + 1), c.get(from + 2)) {
        (Some('\\'), _) => until(c, from + 3, |c, j| c[j] == '\'') + 1,
        (Some(_), Some('\'')) => from + 3,
        _ => from,
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Tokens with the line each starts on, counted from 1.
fn tokens(source: &str) -> Vec<(Token, usize)> {
    let text = blank(source);
    let (mut out, mut line, mut rest) = (Vec::new(), 1, text.as_str());
    while let Some(first) = rest.chars().next() {
        let len = if is_word(first) {
            rest.find(|x| !is_word(x)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (piece, tail) = rest.split_at(len);
        match piece {
            "::" => out.push((Token::PathSep, line)),
            "{" => out.push((Token::Open, line)),
            "}" => out.push((Token::Close, line)),
            "," => out.push((Token::Comma, line)),
            "\n" => line += 1,
            _ if is_word(first) => out.push((Token::Word(piece.to_owned()), line)),
            _ if first.is_whitespace() => {}
            _ => out.push((Token::Other(first), line)),
        }
        rest = tail;
    }
    out
}

/// Every path in the text as its segments, groups expanded, with its line.
fn paths(source: &str) -> Vec<(Vec<String>, usize)> {
    let all = tokens(source);
    let (mut out, mut i) = (Vec::new(), 0);
    while i < all.len() {
        let starts = matches!(all[i].0, Token::Word(_))
            && all.get(i + 1).is_some_and(|t| t.0 == Token::PathSep)
            && (i == 0 || all[i - 1].0 != Token::PathSep);
        i = if starts { read_path(&all, i, &[], &mut out) } else { i + 1 };
    }
    out
}

/// Reads one path from `i` under `prefix`; returns the index after it.
fn read_path(
    all: &[(Token, usize)],
    mut i: usize,
    prefix: &[String],
    out: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    let mut path = prefix.to_vec();
    let line = all.get(i).map_or(0, |t| t.1);
    loop {
        match all.get(i).map(|t| &t.0) {
            Some(Token::Word(word)) => path.push(word.clone()),
            Some(Token::Open) => return read_group(all, i + 1, &path, out),
            _ => break,
        }
        i += 1;
        if all.get(i).map(|t| &t.0) != Some(&Token::PathSep) {
            break;
        }
        i += 1;
    }
    out.push((path, line));
    i
}

fn read_group(
    all: &[(Token, usize)],
    mut i: usize,
    prefix: &[String],
    out: &mut Vec<(Vec<String>, usize)>,
) -> usize {
    while let Some((token, _)) = all.get(i) {
        i = match token {
            Token::Close => return i + 1,
            Token::Word(_) | Token::Open => read_path(all, i, prefix, out),
            _ => i + 1,
        };
    }
    i
}

/// The module path of a file below `src`: `trie/node.rs` is `["trie", "node"]`.
fn module_of(file: &Path) -> Vec<String> {
    let mut parts: Vec<String> =
        file.with_extension("").iter().map(|p| p.to_string_lossy().into_owned()).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib")) {
        parts.pop();
    }
    parts
}

/// The path from the crate's root, or `None` for a path of another crate or one that stays in its module.
///
/// An inline module adds a level that the text scan does not see, so a `super` too many may be read as one
/// leaving the layer for the root; what follows it then decides.
fn from_root(module: &[String], path: &[String]) -> Option<Vec<String>> {
    match path.first()?.as_str() {
        "crate" | "rootlight" => Some(path[1..].to_vec()),
        "super" => {
            let ups = path.iter().take_while(|p| *p == "super").count();
            let mut base = module[..module.len().saturating_sub(ups)].to_vec();
            base.extend_from_slice(&path[ups..]);
            Some(base)
        }
        _ => None,
    }
}

fn level(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|l| *l == layer)
}

/// What one file below `src` does wrong, one line each.
fn layer_faults(file: &Path, source: &str) -> Vec<String> {
    let module = module_of(file);
    let own = module.first().map(String::as_str).unwrap_or_default();
    let mut faults = Vec::new();
    for (path, line) in paths(source) {
        let shown = format!("src/{}:{line}: {}", file.display(), path.join("::"));
        if path[0] == "revm" && own != "evm" {
            faults.push(format!("{shown}: only src/evm names revm"));
        }
        let target = from_root(&module, &path).and_then(|p| p.first().and_then(|l| level(l)));
        if let (Some(own), Some(target)) = (level(own), target) {
            if target > own {
                faults.push(format!("{shown}: {} must not know {}", LAYERS[own], LAYERS[target]));
            }
        }
    }
    faults
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// All `.rs` files below a folder, in a stable order; build output is not source.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return found };
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name();
        if path.is_dir() && !["target", "node_modules", "dist"].iter().any(|x| name == *x) {
            found.extend(rust_files(&path));
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn is_test_file(path: &Path) -> bool {
    path.iter().any(|p| p == "tests")
        || path.file_stem().is_some_and(|s| {
            let s = s.to_string_lossy();
            s == "tests" || s.ends_with("_tests")
        })
}

#[test]
fn layers_look_down_only() {
    let src = root().join("src");
    let files = rust_files(&src);
    assert!(files.len() >= LAYERS.len(), "no source found below {}", src.display());
    let mut faults = Vec::new();
    for file in files {
        let source = fs::read_to_string(&file).expect("source is readable");
        faults.extend(layer_faults(file.strip_prefix(&src).expect("below src"), &source));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_folder_below_src_is_a_layer() {
    for entry in fs::read_dir(root().join("src")).expect("src is there").flatten() {
        if entry.path().is_dir() {
            let name = entry.file_name().to_string_lossy().into_owned();
            assert!(level(&name).is_some(), "src/{name} has no place in the order of layers");
        }
    }
}

#[test]
fn files_stay_readable() {
    let mut faults = Vec::new();
    for folder in MEASURED {
        for file in rust_files(&root().join(folder)) {
            let lines = fs::read_to_string(&file).expect("source is readable").lines().count();
            if lines > MAX_LINES && !is_test_file(&file) {
                faults.push(format!("{}: {lines} lines, at most {MAX_LINES}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn an_upward_path_is_found() {
    let up = [
        "use crate::rpc::Dispatcher;",
        "pub use crate::{types::Header, consensus::{Network, rules}};",
        "fn f(x: &crate::evm::Spec) {}",
        "use super::super::state::Account;",
        "use ::rootlight::light;\nuse rootlight::light::Session;",
        "use crate::{\n    types::Header,\n    engine,\n};",
        "let a = \"\\\"\"; let b = '\"'; crate::exec::call(a, b);",
        "fn f<'a>(x: &'a str) -> crate::light::View<'a> { x }",
        "fn r#type() {} use r#crate; use crate::rpc::x;",
    ];
    for text in up {
        assert!(!layer_faults(Path::new("trie/node.rs"), text).is_empty(), "{text}");
    }
    let seen = layer_faults(Path::new("trie/node.rs"), "\n\nuse crate::rpc::Dispatcher;");
    assert_eq!(seen, ["src/trie/node.rs:3: crate::rpc::Dispatcher: trie must not know rpc"]);
    assert_eq!(layer_faults(Path::new("trie/mod.rs"), "use super::state;").len(), 1);
}

#[test]
fn a_downward_path_and_mere_talk_are_not() {
    let fine = [
        "use crate::types::Header;",
        "use crate::trie::node;",
        "use super::rpc;",
        "use super::*;",
        "// use crate::rpc::x;\n/* crate::rpc /* nested crate::rpc::y */ crate::rpc::z */",
        "//! crate::rpc::x\nconst A: &str = \"crate::rpc::x\";",
        "const A: &str = r#\"crate::rpc::x \" y\"#;",
        "const A: &[u8] = b\"crate::rpc::x\"; const B: char = '\\''; const C: char = '\"';",
        "use alloc::rpc::x; use other::crate_like::rpc;",
    ];
    for text in fine {
        assert_eq!(layer_faults(Path::new("trie/node.rs"), text), Vec::<String>::new(), "{text}");
    }
    assert!(layer_faults(Path::new("rpc/mod.rs"), "use crate::{types, light, engine};").is_empty());
    assert!(layer_faults(Path::new("lib.rs"), "pub use crate::rpc::Dispatcher;").is_empty());
}

#[test]
fn revm_named_outside_its_layer_is_found() {
    assert_eq!(layer_faults(Path::new("exec/mod.rs"), "use revm::primitives::Address;").len(), 1);
    assert!(layer_faults(Path::new("evm/mod.rs"), "use revm::primitives::Address;").is_empty());
}
