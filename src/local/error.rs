//! The reasons for which a locally executed chain rejects a block.

use alloy_primitives::B256;
use thiserror::Error;

use crate::consensus::{BodyError, ChainError};
use crate::exec::BlockError;
use crate::types::SenderError;

/// The rule that a block breaks, or the data missing to check it. The chain is unchanged after such an error.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ImportError {
    /// The header or an uncle breaks a rule, or the chain does not have the parent.
    #[error(transparent)]
    Header(#[from] ChainError),
    /// The transactions or receipts do not match the header's roots.
    #[error("block {number} {hash}: {error}")]
    Body {
        number: u64,
        hash: B256,
        #[source]
        error: BodyError,
    },
    /// A transaction breaks a rule, or the result of execution differs from the header.
    #[error("block {number} {hash}: {error}")]
    Execution {
        number: u64,
        hash: B256,
        #[source]
        error: BlockError,
    },
    /// The parent's state is not available.
    #[error("block {number} {hash}: the state of its parent {parent} is older than the history kept")]
    NoState { number: u64, hash: B256, parent: B256 },
    /// A state that the host has stored does not have the root of the header whose block is restored.
    #[error("block {number} {hash}: the stored state has root {found}, the header states {expected}")]
    StoredState { number: u64, hash: B256, found: B256, expected: B256 },
    /// The signature of a transaction in a restored block gives no sender.
    #[error("block {number} {hash}, transaction {index}: {error}")]
    Sender {
        number: u64,
        hash: B256,
        index: usize,
        #[source]
        error: SenderError,
    },
}
