//! Errors of the keys of a service on many machines.

use rootlight_index::IndexError;
use rootlight_server::keys::KeyError;

use crate::store::HotStoreError;

/// Why the keys cannot be used, or a command on them failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ClusterKeyError {
    /// The database's address, its connection, or a statement.
    #[error(transparent)]
    Database(#[from] IndexError),
    #[error("the database did not answer in time")]
    Slow,
    /// The store.
    #[error(transparent)]
    Store(#[from] HotStoreError),
    /// A value of a command, or the key that it names.
    #[error(transparent)]
    Key(#[from] KeyError),
    #[error("the schema of keys cannot be brought to version {version}: {reason}")]
    Migration { version: u32, reason: String },
    #[error(
        "the schema of keys has version {found}, and this program knows versions up to {known}: use the newer program"
    )]
    NewerSchema { found: u32, known: u32 },
    /// The database takes no changes.
    #[error(
        "the database is read-only, as a replica is: front ends write usage, so --index has to name the primary"
    )]
    ReadOnly,
    /// A row does not have the form that this program writes.
    #[error("the database of keys is damaged: {what} of key {id}")]
    Damaged { what: &'static str, id: String },
}

impl ClusterKeyError {
    /// Whether the database refused values, as it will again: they are out of range, have a wrong form or break a rule of a table
    /// (PostgreSQL's error classes 21, 22 and 23).
    pub(super) fn is_about_values(&self) -> bool {
        let Self::Database(IndexError::Database(error)) = self else { return false };
        error.code().is_some_and(|state| matches!(state.code().get(..2), Some("21" | "22" | "23")))
    }
}

impl From<tokio_postgres::Error> for ClusterKeyError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Database(error.into())
    }
}
