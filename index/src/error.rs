//! Errors of the index: of the database and its schema, of blocks, and of traces.

use std::time::Duration;

use alloy_primitives::B256;
use deadpool_postgres::TimeoutType;
use rootlight::consensus::BodyError;
use rootlight::types::SenderError;
use tokio_postgres::error::{DbError, Severity, SqlState};

/// Why an operation on the index failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum IndexError {
    /// The address of the database cannot be used. The message repeats no part of the address, which may contain a password.
    #[error("the address of the database is not postgres://USER:PASSWORD@HOST:PORT/NAME?OPTIONS: {0}")]
    Address(&'static str),
    /// The database refused, or the connection broke.
    #[error("{}", database_text(.0))]
    Database(#[from] tokio_postgres::Error),
    #[error("no connection to the database: {0}")]
    Pool(String),
    /// All connections of the pool are in use.
    #[error("no connection to the database became free in time; ask again")]
    NoneFree,
    /// The server accepted a connection, and began no session in time.
    #[error("the database accepts connections but did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    #[error("the schema cannot be brought to version {version}: {reason}")]
    Migration { version: u32, reason: String },
    #[error(
        "the index has schema version {found}, and this program knows versions up to {known}: use the newer program"
    )]
    NewerSchema { found: u32, known: u32 },
    /// A reader needs a schema that no indexer has made yet.
    #[error(
        "the index has schema version {found}, and this program needs {known}: start `rootlight index` first"
    )]
    OlderSchema { found: u32, known: u32 },
    #[error("the index is of network {found}, not of {expected}")]
    OtherNetwork { found: String, expected: String },
    /// The index was made with another first block or partition size.
    #[error("the index was made with {what} {found}, not {asked}; a new one needs another database")]
    OtherLayout { what: &'static str, found: u64, asked: u64 },
    #[error("another indexer writes to this index ({writer}): end it first, or wait for its end with --wait")]
    Locked { writer: String },
    /// Another writer has raised the epoch in the database, so this one must not write any more.
    #[error(
        "a newer indexer has taken over this index (epoch {found}, this one has {own}); nothing was written"
    )]
    Fenced { own: i64, found: i64 },
    /// The batch does not continue the loaded blocks.
    #[error("blocks from {from} on do not continue the index, which is at {next} there")]
    Progress { from: u64, next: u64 },
    /// Blocks of a batch do not follow each other.
    #[error("block {number} does not follow the block before it")]
    Unconnected { number: u64 },
    /// A reorganisation is deeper than `MAX_REORGANISATION`.
    #[error(
        "a reorganisation would replace {depth} blocks, at most {most} are replaced: make the index anew"
    )]
    TooDeep { depth: u64, most: u64 },
    /// The ancestors of a proven block are other blocks than the source gave.
    #[error(
        "blocks {first} to {last} of the source are not the ancestors of the proven chain: {found} is not {expected}"
    )]
    NotAncestors { first: u64, last: u64, found: B256, expected: B256 },
    /// A reader asks about blocks that are not loaded, or not searchable yet.
    #[error("the index has no complete blocks {from} to {to}")]
    NotCovered { from: u64, to: u64 },
    /// A reader asks about traces that are not loaded.
    #[error("the index has no complete traces of blocks {from} to {to}")]
    TracesNotLoaded { from: u64, to: u64 },
    /// A reader asks about traces that were too long to be stored.
    #[error("the traces of block {number} are too long to be in the index")]
    TracesTooLong { number: u64 },
    #[error("traces of block {number} are of another branch than the index")]
    OtherBranch { number: u64 },
    /// A row does not have the form that the loader writes.
    #[error("the index is damaged: {what} of block {number}")]
    Damaged { what: &'static str, number: u64 },
    /// A background task ended early.
    #[error("a task of the index failed: {0}")]
    Task(String),
}

impl IndexError {
    /// Whether the same operation may succeed later: the server restarts, or its disk is full.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Database(error) => match error.as_db_error() {
                Some(error) => TRANSIENT.contains(error.code()) || is_refused_session(error),
                None => error.is_closed() || std::error::Error::source(error).is_some_and(is_io),
            },
            Self::Pool(_) | Self::NoneFree | Self::Silent(_) => true,
            // The same operation would fail again: the program, the schema, the data or the question must change first.
            _ => false,
        }
    }
}

/// Errors that pass without a change of the program, the schema or the address: lost connections, a server that stops or
/// starts, full disk or memory, conflicts of transactions, and a lock that was not granted in time.
const TRANSIENT: &[SqlState] = &[
    SqlState::ADMIN_SHUTDOWN,
    SqlState::CRASH_SHUTDOWN,
    SqlState::CANNOT_CONNECT_NOW,
    SqlState::CONNECTION_EXCEPTION,
    SqlState::CONNECTION_FAILURE,
    SqlState::DISK_FULL,
    SqlState::OUT_OF_MEMORY,
    SqlState::TOO_MANY_CONNECTIONS,
    SqlState::INSUFFICIENT_RESOURCES,
    SqlState::LOCK_NOT_AVAILABLE,
    SqlState::T_R_SERIALIZATION_FAILURE,
    SqlState::T_R_DEADLOCK_DETECTED,
    SqlState::IO_ERROR,
];

/// Whether the server ended a session by an internal error. A server with a full disk may refuse new sessions this way: it
/// cannot write the files that every session reads (`could not write init file`).
fn is_refused_session(error: &DbError) -> bool {
    *error.code() == SqlState::INTERNAL_ERROR
        && matches!(error.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

fn is_io(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<std::io::Error>()
}

/// Whether no program listens at the address.
fn is_refusal(error: &(dyn std::error::Error + 'static)) -> bool {
    let failure = error.downcast_ref::<std::io::Error>();
    failure.is_some_and(|failure| failure.kind() == std::io::ErrorKind::ConnectionRefused)
}

/// The server's own message and detail; the library's text says only that the database reported an error.
fn database_text(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(db) => match db.detail() {
            Some(detail) => format!("the database says: {} ({detail})", db.message()),
            None => format!("the database says: {}", db.message()),
        },
        None => match std::error::Error::source(error) {
            Some(cause) if is_refusal(cause) => {
                "database: no program listens there: start the server, or check its address".to_owned()
            }
            Some(cause) => format!("database: {error}: {cause}"),
            None => format!("database: {error}"),
        },
    }
}

impl From<deadpool_postgres::PoolError> for IndexError {
    fn from(error: deadpool_postgres::PoolError) -> Self {
        match error {
            deadpool_postgres::PoolError::Backend(error) => Self::Database(error),
            deadpool_postgres::PoolError::Timeout(TimeoutType::Wait) => Self::NoneFree,
            other => Self::Pool(other.to_string()),
        }
    }
}

/// Why a block cannot be stored.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum BlockError {
    /// The transactions or receipts do not match the header.
    #[error("block {number}: {error}")]
    Body { number: u64, error: BodyError },
    #[error("block {number}: {receipts} receipts for {transactions} transactions")]
    Count { number: u64, receipts: usize, transactions: usize },
    #[error("block {number}, transaction {index}: {error}")]
    Sender { number: u64, index: usize, error: SenderError },
    #[error("block {number}: the uncles do not match the uncles hash")]
    Uncles { number: u64 },
    /// A log has more topics than the EVM can write.
    #[error("block {number}: a log with {found} topics")]
    Topics { number: u64, found: usize },
}

/// Why traces cannot be those of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum TraceError {
    /// A transaction has no trace of its own, or one with another sender, recipient, value or data.
    #[error("block {number}: the traces are not those of transaction {index}")]
    Transaction { number: u64, index: usize },
    #[error("block {number}, transaction {index}: the traces are not in the order of the calls")]
    Order { number: u64, index: usize },
}

#[cfg(test)]
mod tests {
    use deadpool_postgres::PoolError;

    use super::*;

    #[test]
    fn a_pool_without_a_free_connection_differs_from_one_that_cannot_connect() {
        assert!(matches!(PoolError::Timeout(TimeoutType::Wait).into(), IndexError::NoneFree));
        for other in [TimeoutType::Create, TimeoutType::Recycle] {
            assert!(matches!(PoolError::Timeout(other).into(), IndexError::Pool(_)), "{other:?}");
        }
        assert!(IndexError::NoneFree.is_transient());
    }
}
