//! Why an upstream gave no result.

use serde_json::Value;

/// Failure of one call to an upstream.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It answered with a JSON-RPC error.
    #[error("upstream error {code}: {message}")]
    Rpc {
        /// JSON-RPC code.
        code: i64,
        /// Its text, as sent.
        message: String,
        /// Its data, as sent.
        data: Option<Value>,
    },
    /// The recording holds no answer to this question.
    #[error("not recorded: {0}")]
    NotRecorded(String),
    /// It could not be reached or the connection broke.
    #[error("upstream not reachable: {0}")]
    Transport(String),
    /// It did not answer in time.
    #[error("upstream did not answer within {0} ms")]
    Timeout(u128),
    /// It answered with more bytes than are taken.
    #[error("upstream answer exceeds {0} bytes")]
    TooLarge(usize),
    /// It answered with an HTTP status instead of JSON-RPC.
    #[error("upstream answered HTTP status {0}")]
    Status(u16),
    /// It wants fewer questions and says for how long (`Retry-After`).
    #[error("upstream answered HTTP status {status} and asks for a pause of {seconds} s")]
    Busy {
        /// 429 or a server error.
        status: u16,
        /// The pause in seconds.
        seconds: u64,
    },
    /// Its answer is no JSON-RPC answer to what was asked.
    #[error("upstream answer is malformed: {0}")]
    Malformed(String),
}
