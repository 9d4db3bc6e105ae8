//! The reasons why a message does not decode.

use rootlight::types::FieldError;
use thiserror::Error;

/// The bytes are not the encoding of a message. A message has one encoding only.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum MessageError {
    #[error("message type {0} is not known")]
    UnknownType(u8),
    /// A field breaks a rule of its encoding.
    #[error(transparent)]
    Field(#[from] FieldError),
    #[error("{list}: more than {most} items")]
    TooMany { list: &'static str, most: usize },
    #[error("{list}: item {index} is not a {expected}")]
    Shape { list: &'static str, index: usize, expected: &'static str },
    /// A compressed header came without the extension that its full form needs.
    #[error("the header's extension is missing")]
    NoExtension,
    /// Two lists that belong together have different lengths.
    #[error("{blocks} blocks with {difficulties} total difficulties")]
    Unequal { blocks: usize, difficulties: usize },
}
