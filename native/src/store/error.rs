//! What can go wrong with a store.

use std::path::PathBuf;

use alloy_primitives::B256;

/// A store cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The folder cannot be made.
    #[error("{}: {source}", folder.display())]
    Folder {
        /// As configured.
        folder: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The database's own error: damaged, not a database, in use by another process, disk full.
    #[error("database: {0}")]
    Database(#[from] Box<redb::Error>),
    /// A block of the chain is neither in the store nor in memory.
    #[error("block {number} {hash} is not there to be written")]
    MissingBlock {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: B256,
    },
    /// The database was closed after a failure.
    #[error("the database is closed")]
    Closed,
    /// Written by another version of this program.
    #[error("the folder has format {0}, which this version does not read: use an empty folder")]
    Format(String),
    /// The folder belongs to a chain with another genesis.
    #[error("the folder holds the chain of genesis {found}, not {expected}: use another folder")]
    OtherChain {
        /// Genesis asked for.
        expected: B256,
        /// Genesis in the folder.
        found: B256,
    },
}

/// redb has an error type for each kind of call; they all end here.
macro_rules! from_redb {
    ($($kind:ident),*) => {$(
        impl From<redb::$kind> for StoreError {
            fn from(error: redb::$kind) -> Self {
                Self::Database(Box::new(error.into()))
            }
        }
    )*};
}

from_redb!(DatabaseError, TransactionError, TableError, StorageError, CommitError);
