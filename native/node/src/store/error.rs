//! Errors of the chain store.

use std::path::{Path, PathBuf};

use alloy_primitives::B256;
use rootlight_limits::io_words::of_path;
use rootlight_server::database_file::words;

/// The store cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ChainStoreError {
    /// The folder cannot be created.
    #[error("{}: {}", folder.display(), of_path(.source))]
    Folder { folder: PathBuf, source: std::io::Error },
    /// An error of the database: a damaged file, a file that is not a database, a file in use by another
    /// process, a full disk.
    #[error("database: {}", words(.0))]
    Database(#[from] Box<redb::Error>),
    /// An error of the database while a file was opened.
    #[error("{}: {}", path.display(), words(.source))]
    File { path: PathBuf, source: Box<redb::Error> },
    #[error(
        "block {number} {hash} cannot be stored: its data or its parent is neither in memory nor in the store"
    )]
    MissingBlock { number: u64, hash: B256 },
    /// The database was closed after a failure.
    #[error("the database is closed")]
    Closed,
    /// Another version of this program wrote the folder.
    #[error("the folder has format {0}, which this version does not read: use an empty folder")]
    Format(String),
    #[error("the folder holds the chain of genesis {found}, not {expected}: use another folder")]
    OtherChain { expected: B256, found: B256 },
}

impl ChainStoreError {
    /// Adds the path of the file that was opened to an error of the database.
    pub(crate) fn at(self, path: &Path) -> Self {
        match self {
            Self::Database(source) => Self::File { path: path.to_owned(), source },
            other => other,
        }
    }
}

/// redb has an error type for each kind of operation; all of them convert to `ChainStoreError::Database`.
macro_rules! from_redb {
    ($($kind:ident),*) => {$(
        impl From<redb::$kind> for ChainStoreError {
            fn from(error: redb::$kind) -> Self {
                Self::Database(Box::new(error.into()))
            }
        }
    )*};
}

from_redb!(DatabaseError, TransactionError, TableError, StorageError, CommitError);
