//! Why a document cannot be read.

use alloc::string::String;

/// Longest document, in bytes. A week of headers takes 60 MiB; a block of thousands of transactions with all receipts
/// takes less than 20 MiB.
pub const MAX_INPUT_BYTES: usize = 64 * 1024 * 1024;

/// Why a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum InputError {
    #[error("{0} bytes; at most {MAX_INPUT_BYTES} are accepted")]
    TooLong(usize),
    /// The document has no bytes, or only white space.
    #[error("the input is empty")]
    Empty,
    #[error("neither hex nor JSON: {0}")]
    Form(String),
    #[error("the JSON-RPC response is an error: {0}")]
    RpcError(String),
    /// The document is a JSON-RPC response without a result, or with `null`.
    #[error("the JSON-RPC response has no result")]
    NoResult,
    /// The document has a header, but no network was given, or this build does not check headers.
    #[error("headers are not checked here; state the root instead")]
    HeaderNotChecked,
    /// The JSON does not have the structure that this check needs.
    #[error("{0}")]
    Shape(String),
}
