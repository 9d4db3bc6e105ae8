//! What a file must say about itself, and what is done with one that does not.

use std::sync::Arc;

use redb::ReadableTableMetadata as _;
use rootlight::consensus::{Checkpoint, Network};

use super::*;

fn sync() -> Sync {
    let network = Arc::new(Network::regtest());
    let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    Sync::new(network, checkpoint)
}

fn page(index: u64) -> Page {
    Page { index, bytes: vec![index as u8; 40] }
}

/// A folder with a store in which something was changed.
fn changed(change: impl FnOnce(&redb::WriteTransaction)) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    drop(HeaderStore::open(folder.path(), &mut sync()).unwrap());
    let database = Database::create(folder.path().join(FILE)).unwrap();
    let write = database.begin_write().unwrap();
    change(&write);
    write.commit().unwrap();
    folder
}

fn is_set_aside(folder: &Path) -> bool {
    let store = HeaderStore::open(folder, &mut sync());
    assert!(store.is_ok());
    folder.join(SET_ASIDE).exists()
}

#[test]
fn a_file_of_another_version_network_or_checkpoint_is_set_aside() {
    assert!(!is_set_aside(changed(|_| {}).path()));
    for name in [FORMAT, NETWORK, CHECKPOINT] {
        let other = |write: &redb::WriteTransaction| {
            write.open_table(META).unwrap().insert(name, &b"other"[..]).unwrap();
        };
        assert!(is_set_aside(changed(other).path()), "{name}");
        let missing = |write: &redb::WriteTransaction| {
            write.open_table(META).unwrap().remove(name).unwrap();
        };
        assert!(is_set_aside(changed(missing).path()), "{name}");
    }
}

/// Pages of nobody knows what do not become this client's by a file that says nothing.
#[test]
fn pages_without_a_word_about_them_are_set_aside() {
    let silent = |write: &redb::WriteTransaction| {
        write.open_table(META).unwrap().retain(|_, _| false).unwrap();
        write.open_table(PAGES).unwrap().insert(7, &b"page"[..]).unwrap();
    };
    assert!(is_set_aside(changed(silent).path()));
    let empty =
        |write: &redb::WriteTransaction| write.open_table(META).unwrap().retain(|_, _| false).unwrap();
    assert!(!is_set_aside(changed(empty).path()), "as good as a new one");
}

#[test]
fn pages_above_the_last_one_written_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let store = HeaderStore::open(&folder.path().join("not/yet/there"), &mut sync()).unwrap();
    let kept = || {
        let table = store.database.begin_read().unwrap().open_table(PAGES).unwrap();
        (table.len().unwrap(), table.get(1).unwrap().map(|page| page.value().to_vec()))
    };
    store.write(&[page(0), page(1), page(2)]).unwrap();
    store.write(&[]).unwrap();
    assert_eq!(kept(), (3, Some(page(1).bytes)));
    store.write(&[Page { index: 1, bytes: vec![9; 40] }]).unwrap();
    assert_eq!(kept(), (2, Some(vec![9; 40])));
}

/// A place that cannot be read says nothing about a file: nothing is moved, and the user is told.
#[test]
fn what_is_no_fault_of_the_file_is_told_and_moves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    std::fs::create_dir(&path).unwrap();
    assert!(HeaderStore::open(folder.path(), &mut sync()).is_err());
    assert!(path.is_dir() && !folder.path().join(SET_ASIDE).exists());

    let folder = tempfile::tempdir().unwrap();
    let first = HeaderStore::open(folder.path(), &mut sync()).unwrap();
    assert!(HeaderStore::open(folder.path(), &mut sync()).is_err(), "in use");
    assert!(first.path().exists() && !folder.path().join(SET_ASIDE).exists());

    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(matches!(HeaderStore::open(&file, &mut sync()), Err(StoreError::Folder { .. })));
}

#[test]
fn which_failures_tell_of_damage() {
    let judged = |kind: ErrorKind| {
        let io = || std::io::Error::from(kind);
        let opening = of_opening(DatabaseError::Storage(StorageError::Io(io())));
        (opening, of_reading(StoreError::Database(Box::new(redb::Error::Io(io())))))
    };
    for kind in [ErrorKind::UnexpectedEof, ErrorKind::InvalidData, ErrorKind::InvalidInput] {
        assert!(matches!(judged(kind), (Trouble::Useless(_), Trouble::Useless(_))), "{kind}");
    }
    for kind in [ErrorKind::PermissionDenied, ErrorKind::StorageFull, ErrorKind::Other] {
        assert!(matches!(judged(kind), (Trouble::Fatal(_), Trouble::Fatal(_))), "{kind}");
    }
    assert!(matches!(of_opening(DatabaseError::UpgradeRequired(1)), Trouble::Useless(_)), "an older version");
}
