//! Files of one crate do not import each other in circles. A module may import the modules below it; these do not import what
//! it defines.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::modules::Modules;

/// A crate's source folder, and the name by which its own tests import it.
type Crate = (&'static str, &'static str);

const CRATES: [Crate; 13] = [
    ("src", "rootlight"),
    ("p2p/src", "rootlight_p2p"),
    ("index/src", "rootlight_index"),
    ("native/limits/src", "rootlight_limits"),
    ("native/upstream/src", "rootlight_upstream"),
    ("native/server/src", "rootlight_server"),
    ("native/node/src", "rootlight_node"),
    ("native/cluster/src", "rootlight_cluster"),
    ("native/cli/src", "rootlight_cli"),
    ("pkg/wasm/src", "rootlight_wasm"),
    ("xtask/src", "xtask"),
    ("bench/src", "rootlight_bench"),
    ("bench/fleet/src", "rootlight_fleet"),
];

type Graph = BTreeMap<PathBuf, BTreeSet<PathBuf>>;

/// The imports between a crate's files. Code for tests does not count.
fn imports(modules: &Modules) -> Graph {
    let mut graph = Graph::new();
    for module in modules.iter().filter(|module| !module.test) {
        for (path, _) in module.named.iter().filter(|(_, test)| !test) {
            let Some(target) = modules.target(module, path) else { continue };
            if target.file != module.file && !target.test {
                graph.entry(module.file.clone()).or_default().insert(target.file.clone());
            }
        }
    }
    graph
}

/// The files that can be reached from one by at least one import.
fn reachable(graph: &Graph, from: &Path) -> BTreeSet<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut open = vec![from.to_path_buf()];
    while let Some(file) = open.pop() {
        for next in graph.get(&file).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    seen
}

/// Groups of files in which each can be reached from each, with the imports inside a group.
fn circles(graph: &Graph) -> Vec<BTreeSet<PathBuf>> {
    let reach: BTreeMap<&Path, BTreeSet<PathBuf>> =
        graph.keys().map(|file| (file.as_path(), reachable(graph, file))).collect();
    let mut groups: Vec<BTreeSet<PathBuf>> = Vec::new();
    for (file, reached) in &reach {
        if !reached.contains(*file) || groups.iter().any(|group| group.contains(*file)) {
            continue;
        }
        let back = |other: &&PathBuf| reach.get(other.as_path()).is_some_and(|set| set.contains(*file));
        groups.push(reached.iter().filter(back).cloned().collect());
    }
    groups
}

/// A group's files, and below them the imports between them.
fn shown(graph: &Graph, group: &BTreeSet<PathBuf>) -> String {
    let mut lines = vec!["These files import each other in a circle:".to_owned()];
    for file in group {
        let inside = graph[file].intersection(group).map(|path| path.display().to_string());
        lines.push(format!("  {} imports {}", file.display(), inside.collect::<Vec<_>>().join(", ")));
    }
    lines.join("\n")
}

#[test]
fn files_do_not_import_each_other_in_circles() {
    let mut faults = Vec::new();
    for (folder, name) in CRATES {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let graph = imports(&Modules::read(&root, name));
        let found = circles(&graph);
        faults.extend(found.iter().map(|group| format!("In {folder}: {}", shown(&graph, group))));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn graph_of(files: &[(&str, &str)]) -> Graph {
    let files = files.iter().map(|(file, source)| ((*file).into(), (*source).into()));
    imports(&Modules::parse(files.collect(), "rootlight"))
}

#[test]
fn a_circle_is_found_through_re_exports_and_globs() {
    let root = "mod a;\nmod b;\npub use a::A;\npub use b::*;";
    for b in [
        "use super::A;\npub struct B;",
        "pub struct B(super::A);",
        "pub struct B; fn f() { vec![crate::a::A] }",
    ] {
        let graph = graph_of(&[("lib.rs", root), ("a.rs", "use crate::B;\npub struct A;"), ("b.rs", b)]);
        assert_eq!(circles(&graph), [BTreeSet::from(["a.rs".into(), "b.rs".into()])], "{b}");
    }
}

#[test]
fn a_circle_is_found_in_attributes_and_between_a_module_and_its_parent() {
    let [lib, b] = ["mod a;\nmod b;", "use crate::a::A;\npub fn text(_: &A) {}"];
    let a = "#[derive(Error)]\npub enum A { #[error(\"{}\", super::b::text(.0))] Two(u8) }";
    let graph = graph_of(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]);
    assert_eq!(circles(&graph), [BTreeSet::from(["a.rs".into(), "b.rs".into()])]);
    let parent = [("lib.rs", "mod a;\nuse a::A;\npub struct L;"), ("a.rs", "use super::L;\npub struct A;")];
    assert_eq!(circles(&graph_of(&parent)), [BTreeSet::from(["lib.rs".into(), "a.rs".into()])]);
}

#[test]
fn tests_and_one_way_imports_are_not_circles() {
    let parent = [("lib.rs", "mod a;\nuse a::A;\npub struct L;"), ("a.rs", "pub struct A;")];
    assert!(circles(&graph_of(&parent)).is_empty());
    let one_way = [
        ("lib.rs", "mod a;\nmod b;"),
        ("a.rs", "use crate::b::B;\npub struct A;"),
        ("b.rs", "pub struct B;"),
    ];
    assert!(circles(&graph_of(&one_way)).is_empty());
    let tests = "pub struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }";
    assert!(circles(&graph_of(&[one_way[0], one_way[1], ("b.rs", tests)])).is_empty());
    let test_file = [
        ("lib.rs", "mod a;\n#[cfg(test)]\nmod b;"),
        ("a.rs", "#[cfg(test)]\nuse crate::b::B;\npub struct A;"),
        ("b.rs", "use crate::a::A;\npub struct B;"),
    ];
    assert!(circles(&graph_of(&test_file)).is_empty());
}
