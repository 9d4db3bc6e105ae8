//! Limits, counters and marks belong to a server: a static in a library below the command line would be one for all servers
//! of the process.

use std::path::{Path, PathBuf};

use crate::modules::rust_files;

const CRATES: [&str; 5] = ["limits", "upstream", "server", "node", "cluster"];

/// Types whose values change.
const CHANGING: [&str; 5] = ["Atomic", "Mutex", "RwLock", "Cell<", "Semaphore"];

/// The statics that may change, by file and name; each says in its file why.
const ALLOWED: [(&str, &str); 7] = [
    ("native/limits/src/caller_id.rs", "NEXT_FRAME"),
    ("native/limits/src/caller_id.rs", "NEXT_CONNECTION"),
    ("native/limits/src/processors.rs", "MEMBER"),
    ("native/limits/src/processors.rs", "STATE"),
    ("native/server/src/page.rs", "DECOMPRESSED"),
    ("native/node/src/peer_server/scheduler.rs", "ACTIVE"),
    // The data of each block that the present thread lacked, by which a run knows its own.
    ("native/node/src/fork/notes.rs", "MISSING"),
];

/// The names of the statics in a source that can change, up to its tests.
fn changing(source: &str) -> Vec<&str> {
    let source = source.split("#[cfg(test)]\nmod tests").next().unwrap_or(source);
    let statics = source.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub ").or(line.strip_prefix("pub(crate) ")).unwrap_or(line);
        line.strip_prefix("static ")?.split_once(": ")
    });
    let of = |(_, kind): &(&str, &str)| {
        let kind = kind.split(" =").next().unwrap_or(kind);
        CHANGING.iter().any(|changing| kind.contains(changing))
    };
    statics.filter(of).map(|(name, _)| name).collect()
}

#[test]
fn libraries_hold_no_state_for_the_whole_process() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found: Vec<(PathBuf, String)> = Vec::new();
    for name in CRATES {
        for file in rust_files(&root.join("native").join(name).join("src")) {
            let source = std::fs::read_to_string(&file).unwrap();
            let file = file.strip_prefix(root).unwrap().to_owned();
            found.extend(changing(&source).into_iter().map(|name| (file.clone(), name.to_owned())));
        }
    }
    found.sort();
    let mut allowed = ALLOWED.map(|(file, name)| (PathBuf::from(file), name.to_owned()));
    allowed.sort();
    assert_eq!(found, allowed);
}

#[test]
fn statics_that_change_are_found() {
    let source = "static A: AtomicU64 = AtomicU64::new(0);\n    pub(crate) static B: LazyLock<Mutex<u8>> =\n\
                  static C: LazyLock<Bytes> = X;\nthread_local! {\n    static D: Cell<bool> = X;\n}\n\
                  #[cfg(test)]\nmod tests {\n    static E: Mutex<()> = X;\n}";
    assert_eq!(changing(source), ["A", "B", "D"]);
}
