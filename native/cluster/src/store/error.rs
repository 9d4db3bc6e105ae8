//! Errors of the hot store.

use redis::{ErrorKind, RedisError, ServerErrorKind};
use rootlight_limits::sanitize::sanitize;

/// Why the hot store gave no answer. No message repeats an address, which may contain a password. Texts of the server are for the
/// log, not for callers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HotStoreError {
    /// The addresses or the prefix cannot be used.
    #[error("the address of the store: {0}")]
    Address(String),
    /// No server could be reached at the start.
    #[error("the store cannot be reached: {}", sanitize(.0))]
    Unreachable(String),
    /// The part of the store that has the key failed a moment ago, and is not asked again yet.
    #[error("the store is down")]
    Down,
    /// The limit of commands that wait for answers is reached.
    #[error("{0} commands wait for the store already")]
    Busy(usize),
    /// The limit of channels is reached.
    #[error("{0} channels of the store are in use already")]
    Channels(usize),
    /// No answer came in time. The command may have been carried out.
    #[error("the store did not answer in time")]
    Slow,
    /// The store has no memory left for what a command writes.
    #[error("the store is full")]
    Full,
    /// The server refused the command, or the connection broke. The command may have been carried out.
    #[error("the store: {}", sanitize(.0))]
    Failed(String),
    /// The answer does not have the form that the command gives.
    #[error("an answer of the store cannot be read: {}", sanitize(.0))]
    Answer(String),
}

impl HotStoreError {
    /// Whether an error is of the server or the connection, and not of the command.
    pub(super) fn is_outage(error: &RedisError) -> bool {
        match error.kind() {
            ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => true,
            ErrorKind::Server(kind) => !matches!(
                kind,
                ServerErrorKind::NoScript | ServerErrorKind::ResponseError | ServerErrorKind::ExecAbort
            ),
            _ => error.is_unrecoverable_error(),
        }
    }

    /// The error for callers of [`super::HotStore`].
    pub(super) fn of(error: &RedisError) -> Self {
        if error.is_timeout() {
            return Self::Slow;
        }
        match error.code() {
            Some("OOM") => Self::Full,
            _ => Self::Failed(error.to_string()),
        }
    }
}
