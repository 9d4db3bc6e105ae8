//! Why the contents of a block are not taken from another host.

use alloy_primitives::B256;
use thiserror::Error;

use crate::{consensus::BodyError, types::FieldError};

/// Why the contents of a block are not taken.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ContentsError {
    /// The bytes are no list of transactions and receipts.
    #[error(transparent)]
    Rlp(#[from] FieldError),
    /// The block is not on a branch that this client has verified.
    #[error("block {0} is not known")]
    Unknown(B256),
    /// The header commits to other transactions or receipts.
    #[error(transparent)]
    Body(#[from] BodyError),
}
