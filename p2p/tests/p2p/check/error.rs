//! Why a response does not fit its request.

use alloy_primitives::{B256, U256};
use rootlight::types::{FieldError, HeaderError};
use rootlight_p2p::message::MessageError;
use thiserror::Error;

/// A response contradicts its request, or a header that it must agree with.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum CheckError {
    /// A field breaks a rule of its encoding.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// A part of a block or body is malformed.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The bytes do not decode as a header.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A header of a message must have all three mining fields.
    #[error("header {0}: without Merkle proof and coinbase")]
    NoProof(u64),
    /// The response has too few or too many items.
    #[error("{found} items, expected {expected}")]
    Count { expected: u64, found: usize },
    /// The header has another hash than the one asked for.
    #[error("header: hash {found}, expected {expected}")]
    Hash { expected: B256, found: B256 },
    /// Two headers that follow each other are not parent and child.
    #[error("item {0}: not the parent or child of the item before")]
    Link(usize),
    #[error("item {index}: number {found}, expected {expected}")]
    Number { index: usize, expected: u64, found: u64 },
    /// The header commits to other transactions.
    #[error("transactionsRoot: {expected}, the transactions give {found}")]
    TransactionsRoot { expected: B256, found: B256 },
    /// The header commits to other uncles.
    #[error("sha3Uncles: {expected}, the uncles give {found}")]
    UnclesHash { expected: B256, found: B256 },
    /// The header needs an extension, or must not have one, or commits to another one.
    #[error("header {0}: the extension is not the one that the header commits to")]
    Extension(u64),
    /// The total difficulty does not grow by the difficulty of the block and its uncles.
    #[error("item {index}: total difficulty {found}, expected {expected}")]
    TotalDifficulty {
        index: usize,
        /// The parent's total difficulty and the difficulties of the block and its uncles, added up.
        expected: U256,
        found: U256,
    },
}
