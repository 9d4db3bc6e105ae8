//! Why a message does not decode.

use rootlight::types::FieldError;
use thiserror::Error;

/// The bytes are not the one encoding of a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MessageError {
    /// No message has this type.
    #[error("message type {0} is not known")]
    UnknownType(u8),
    /// A field breaks a rule of its encoding.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A list has more items than its limit.
    #[error("{list}: more than {most} items")]
    TooMany {
        /// The list.
        list: &'static str,
        /// Most items that it may have.
        most: usize,
    },
    /// An item is a string where a list is expected, or the reverse.
    #[error("{list}: item {index} is not a {expected}")]
    Shape {
        /// The list.
        list: &'static str,
        /// Position of the item.
        index: usize,
        /// "list" or "string".
        expected: &'static str,
    },
    /// A compressed header came without the extension that its full form needs.
    #[error("the header's extension is missing")]
    NoExtension,
    /// Two lists that belong together have different lengths.
    #[error("{blocks} blocks with {difficulties} total difficulties")]
    Unequal {
        /// Number of blocks.
        blocks: usize,
        /// Number of total difficulties.
        difficulties: usize,
    },
}
