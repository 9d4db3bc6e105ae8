//! Files of redb databases (of API keys, headers and executed chains): made whole or not at all, and texts for their errors.

use std::io::ErrorKind;
use std::path::Path;

use redb::{Database, DatabaseError};
use rootlight_limits::io_words::of_path;

/// Opens the database at a path, or makes it. If that fails, no part of a new file stays.
///
/// # Errors
/// The file cannot be opened or made, or it is not a database.
pub fn create(path: &Path) -> Result<Database, DatabaseError> {
    whole(path, || Database::create(path), |error| matches!(error, DatabaseError::DatabaseAlreadyOpen))
}

/// Opens the database at a path with `open`, which makes the file if there is none. If that fails, such as on a full disk, a file
/// that was not there before is removed: the next attempt would take a part of a database for a damaged one. The file stays if
/// `has_open` says of the error that another program has the file open, because that program made it meanwhile.
pub(crate) fn whole<E>(
    path: &Path,
    open: impl FnOnce() -> Result<Database, E>,
    has_open: impl FnOnce(&E) -> bool,
) -> Result<Database, E> {
    let is_new = std::fs::symlink_metadata(path).is_err();
    open().inspect_err(|error| {
        if is_new && !has_open(error) {
            let _ = std::fs::remove_file(path);
        }
    })
}

/// Why a database cannot be used, and what to do.
#[must_use]
pub fn words(error: &redb::Error) -> String {
    match error {
        redb::Error::DatabaseAlreadyOpen => {
            "another program has it open: end that program, or give another path".to_owned()
        }
        redb::Error::Io(io) if io.kind() == ErrorKind::InvalidData => {
            "it is damaged, or no database of this program: move it away, or give another path".to_owned()
        }
        redb::Error::Io(io) => of_path(io),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_attempt_leaves_no_part_of_a_file_and_removes_no_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.redb");
        let failing = |error: DatabaseError| {
            let open = || {
                std::fs::write(&path, "part").unwrap();
                Err(error)
            };
            whole(&path, open, |error| matches!(error, DatabaseError::DatabaseAlreadyOpen)).unwrap_err()
        };
        let full = || DatabaseError::Storage(redb::StorageError::Io(ErrorKind::StorageFull.into()));
        assert!(words(&failing(full()).into()).starts_with("no room is left"));
        assert!(!path.exists());
        failing(DatabaseError::DatabaseAlreadyOpen);
        assert!(path.exists(), "another program has made it");
        failing(full());
        assert!(path.exists(), "it was there before");
        let foreign = create(&path).unwrap_err();
        assert!(words(&foreign.into()).contains("no database of this program"));
    }
}
