//! Finds the trie store in the database folder of the reference node (rskj), and recognises its format by its files.

use std::path::{Path, PathBuf};

use rootlight_limits::io_words::of_path;

/// Why a folder cannot be read as a node's store.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum LayoutError {
    #[error(
        "{} has no folder unitrie: give the folder that the node has as database.dir, such as ~/.rsk/mainnet/database",
        .0.display()
    )]
    Missing(PathBuf),
    /// The store is in another format.
    #[error(
        "{} is a LevelDB store, which is not supported: only a node with keyvalue.datasource = rocksdb (its default) can be \
         read; the node's tool co.rsk.cli.tools.DbMigrate converts a store",
        .0.display()
    )]
    LevelDb(PathBuf),
    #[error(
        "{} has stores unitrie_N: the node deletes old states (blockchain.gc.enabled), and with them nodes that newer states use; \
         turn that off in the node's configuration",
        .0.display()
    )]
    Collected(PathBuf),
    #[error("{} holds no RocksDB database: the copy is not complete, or the node has not written any state yet", .0.display())]
    NoDatabase(PathBuf),
    /// The folder cannot be read.
    #[error("{}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
}

/// The folder of the trie store of a node that keeps all states.
const SINGLE: &str = "unitrie";

/// Prefix of the folders of the trie store of a node that deletes old states: one folder for each epoch.
const EPOCH: &str = "unitrie_";

/// The database that holds a node's trie. `folder` is the node's database folder, or the trie store itself.
pub fn database(folder: &Path) -> Result<PathBuf, LayoutError> {
    let single = folder.join(SINGLE);
    let names = names(folder)?;
    let path = if single.is_dir() {
        single
    } else if names.iter().any(|name| name == "CURRENT") {
        folder.to_owned()
    } else if names.iter().any(|name| name.starts_with(EPOCH)) {
        return Err(LayoutError::Collected(folder.to_owned()));
    } else {
        return Err(LayoutError::Missing(folder.to_owned()));
    };
    check(&path).map(|()| path)
}

/// Checks that a folder is a RocksDB database.
fn check(path: &Path) -> Result<(), LayoutError> {
    let names = names(path)?;
    // RocksDB writes its options into a file; LevelDB does not, and its tables end in .ldb.
    if names.iter().any(|name| name.starts_with("OPTIONS-")) {
        return Ok(());
    }
    match names.iter().any(|name| name == "CURRENT" || name.ends_with(".ldb")) {
        true => Err(LayoutError::LevelDb(path.to_owned())),
        false => Err(LayoutError::NoDatabase(path.to_owned())),
    }
}

/// The names of the files in a folder.
fn names(folder: &Path) -> Result<Vec<String>, LayoutError> {
    let unreadable =
        |error: std::io::Error| LayoutError::Unreadable { path: folder.to_owned(), reason: of_path(&error) };
    let entries = folder.read_dir().map_err(unreadable)?;
    entries.map(|entry| Ok(entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    #[test]
    fn the_store_of_a_node_is_found() {
        let one = folder(&["unitrie/CURRENT", "unitrie/OPTIONS-000007", "blocks/CURRENT"]);
        let path = one.path().join("unitrie");
        assert_eq!(database(one.path()), Ok(path.clone()));
        assert_eq!(database(&path), Ok(path));
    }

    #[test]
    fn folders_without_a_rocksdb_store_are_refused_by_name() {
        let refused = |files: &[&str]| database(folder(files).path()).unwrap_err();
        assert!(matches!(refused(&["blocks/CURRENT"]), LayoutError::Missing(_)));
        assert!(matches!(
            refused(&["unitrie_3/OPTIONS-1", "unitrie_4/OPTIONS-1"]),
            LayoutError::Collected(_)
        ));
        assert!(matches!(refused(&["unitrie/CURRENT", "unitrie/000005.ldb"]), LayoutError::LevelDb(_)));
        assert!(matches!(refused(&["unitrie/CURRENT", "unitrie/MANIFEST-000002"]), LayoutError::LevelDb(_)));
        assert!(matches!(refused(&["unitrie/rskcache"]), LayoutError::NoDatabase(_)));
        let gone = Path::new("/nowhere/at/all");
        assert!(matches!(database(gone), Err(LayoutError::Unreadable { .. })));
    }
}
