//! The reasons for which the chain refuses a block.

use alloy_primitives::B256;
use thiserror::Error;

use crate::consensus::{BodyError, ChainError};
use crate::exec::BlockError;

/// The rule that a block breaks, or the data missing to check it. The chain is unchanged after such an error.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The header or an uncle breaks a rule, or the parent is not known.
    #[error(transparent)]
    Header(#[from] ChainError),
    /// The transactions or receipts do not match the header's roots.
    #[error("block {number} {hash}: {error}")]
    Body {
        /// Number of the refused block.
        number: u64,
        /// Hash of the refused block.
        hash: B256,
        /// The mismatch.
        #[source]
        error: BodyError,
    },
    /// A transaction breaks a rule, or the result of execution differs from the header.
    #[error("block {number} {hash}: {error}")]
    Execution {
        /// Number of the refused block.
        number: u64,
        /// Hash of the refused block.
        hash: B256,
        /// The rule, or every field that differs.
        #[source]
        error: BlockError,
    },
    /// The parent's state is not available.
    #[error("block {number} {hash}: the state of its parent {parent} is older than the history kept")]
    NoState {
        /// Number of the refused block.
        number: u64,
        /// Hash of the refused block.
        hash: B256,
        /// Hash of the refused block's parent.
        parent: B256,
    },
    /// A stored state does not belong to the block.
    #[error("block {number} {hash}: the stored state has root {found}, the header states {expected}")]
    StoredState {
        /// Number of the refused block.
        number: u64,
        /// Hash of the refused block.
        hash: B256,
        /// Root of the stored state.
        found: B256,
        /// Root that the header states.
        expected: B256,
    },
}
