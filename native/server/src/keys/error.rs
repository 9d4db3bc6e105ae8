//! Errors of the database of API keys and of the commands on keys.

use std::path::PathBuf;

use rootlight_limits::io_words::of_path;

use crate::database_file::words;

/// Why a command on keys failed, or the database of keys cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum KeyError {
    /// The file or the socket beside it cannot be opened.
    #[error("{}: {}", path.display(), of_path(.source))]
    File { path: PathBuf, source: std::io::Error },
    #[error("the database of keys is in use by another process")]
    InUse,
    /// An error of the database: a damaged file, a file that is not a database, a full disk.
    #[error("database of keys: {}", words(.0))]
    Database(Box<redb::Error>),
    /// Another version of this program, or another program, wrote the file.
    #[error("the file is not a database of keys that this version reads: {0}")]
    Format(String),
    /// A value of a command cannot be used.
    #[error("{0}")]
    Invalid(String),
    #[error("there is no key {0:?}: `rootlight keys list` shows the ids")]
    Unknown(String),
    /// The key is revoked, which cannot be undone.
    #[error("key {0} is revoked: make a new one with `rootlight keys create`")]
    Revoked(String),
    #[error("there are {0} keys: revoke one first")]
    TooMany(usize),
    /// The operating system provides no random numbers.
    #[error("the operating system gives no random numbers, so no key can be made: {0}")]
    Random(getrandom::Error),
    /// The server that has the database open does not answer.
    #[error("{}: the server does not answer: {reason}", path.display())]
    NoAnswer { path: PathBuf, reason: String },
    /// The running server refused the command.
    #[error("{0}")]
    Refused(String),
}

// redb, the library of the database, has an error type for each kind of operation.
macro_rules! from_redb {
    ($($kind:ident),*) => {$(
        impl From<redb::$kind> for KeyError {
            fn from(error: redb::$kind) -> Self {
                Self::Database(Box::new(error.into()))
            }
        }
    )*};
}

from_redb!(TransactionError, TableError, StorageError, CommitError);

impl From<redb::DatabaseError> for KeyError {
    fn from(error: redb::DatabaseError) -> Self {
        match error {
            redb::DatabaseError::DatabaseAlreadyOpen => Self::InUse,
            other => Self::Database(Box::new(other.into())),
        }
    }
}
