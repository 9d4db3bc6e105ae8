//! Why a block is not taken into the chain.

use alloy_primitives::B256;
use thiserror::Error;

use crate::consensus::{BodyError, ChainError};
use crate::exec::BlockError;

/// The rule that a block breaks, or what is not there to check it. The chain is as it was before.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The header or an uncle breaks a rule, or the parent is not known.
    #[error(transparent)]
    Header(#[from] ChainError),
    /// The transactions or receipts are not those that the header commits to.
    #[error("block {number} {hash}: {error}")]
    Body {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: B256,
        /// The difference.
        error: BodyError,
    },
    /// A transaction breaks a rule, or execution gives something else than the header says.
    #[error("block {number} {hash}: {error}")]
    Execution {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: B256,
        /// The rule, or every field that differs.
        error: BlockError,
    },
    /// The parent's state is not kept any more.
    #[error("block {number} {hash}: the state of its parent {parent} is older than the history kept")]
    NoState {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: B256,
        /// Its parent.
        parent: B256,
    },
    /// A stored state does not belong to the block.
    #[error("block {number} {hash}: the stored state has the root {found}")]
    StoredState {
        /// Its number.
        number: u64,
        /// Its hash.
        hash: B256,
        /// Root of the state given.
        found: B256,
    },
}
