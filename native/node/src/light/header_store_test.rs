//! Tests of the stored headers' file: its properties (format, network and checkpoint, in the table `META`), and what happens to an
//! unusable file.

use std::sync::Arc;

use redb::ReadableTableMetadata as _;
use rootlight::consensus::{Checkpoint, Network};

use super::*;

fn sync() -> HeaderSync {
    let network = Arc::new(Network::regtest());
    let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    HeaderSync::new(network, checkpoint)
}

fn page(index: u64) -> HeaderPage {
    HeaderPage { index, bytes: vec![index as u8; 40] }
}

/// Creates a store, applies a change to it, and returns its folder.
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

/// A file without properties must not pass its pages off as those of this network and checkpoint.
#[test]
fn a_file_with_pages_but_without_properties_is_set_aside() {
    let silent = |write: &redb::WriteTransaction| {
        write.open_table(META).unwrap().retain(|_, _| false).unwrap();
        write.open_table(PAGES).unwrap().insert(7, &b"page"[..]).unwrap();
    };
    assert!(is_set_aside(changed(silent).path()));
    let empty =
        |write: &redb::WriteTransaction| write.open_table(META).unwrap().retain(|_, _| false).unwrap();
    assert!(!is_set_aside(changed(empty).path()), "an empty file counts as new");
}

#[test]
fn pages_above_the_last_one_written_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = HeaderStore::open(&folder.path().join("not/yet/there"), &mut sync()).unwrap();
    let kept = || {
        let table = store.database.begin_read().unwrap().open_table(PAGES).unwrap();
        (table.len().unwrap(), table.get(1).unwrap().map(|page| page.value().to_vec()))
    };
    store.write(&[page(0), page(1), page(2)]).unwrap();
    store.write(&[]).unwrap();
    assert_eq!(kept(), (3, Some(page(1).bytes)));
    store.write(&[HeaderPage { index: 1, bytes: vec![9; 40] }]).unwrap();
    assert_eq!(kept(), (2, Some(vec![9; 40])));
}

/// Without the limit, whoever writes the file decides how much memory the program takes.
#[test]
fn a_page_that_is_longer_than_any_page_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let store = HeaderStore::open(folder.path(), &mut sync()).unwrap();
    let longest = HeaderPage { index: 0, bytes: vec![1; MAX_PAGE_BYTES] };
    let longer = HeaderPage { index: 1, bytes: vec![1; MAX_PAGE_BYTES + 1] };
    store.write(&[longest.clone(), longer]).unwrap();
    assert_eq!(store.page(0), Ok(Some(longest.bytes)));
    assert_eq!(store.page(1), Err(HeaderStoreFault::Damaged { index: 1 }));
}

/// If the file cannot be opened for a reason outside it, nothing is moved and the user gets an error.
#[test]
fn a_failure_outside_the_file_is_an_error_and_sets_nothing_aside() {
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
    assert!(matches!(HeaderStore::open(&file, &mut sync()), Err(ChainStoreError::Folder { .. })));
}

#[test]
fn only_some_io_errors_mean_a_damaged_file() {
    let judged = |kind: ErrorKind| {
        let io = || std::io::Error::from(kind);
        let opening = of_opening(DatabaseError::Storage(StorageError::Io(io())));
        (opening, of_reading(ChainStoreError::Database(Box::new(redb::Error::Io(io())))))
    };
    for kind in [ErrorKind::UnexpectedEof, ErrorKind::InvalidData, ErrorKind::InvalidInput] {
        assert!(matches!(judged(kind), (OpenFailure::Useless(_), OpenFailure::Useless(_))), "{kind}");
    }
    for kind in [ErrorKind::PermissionDenied, ErrorKind::StorageFull, ErrorKind::Other] {
        assert!(matches!(judged(kind), (OpenFailure::Fatal(_), OpenFailure::Fatal(_))), "{kind}");
    }
    assert!(
        matches!(of_opening(DatabaseError::UpgradeRequired(1)), OpenFailure::Useless(_)),
        "an older version"
    );
}
