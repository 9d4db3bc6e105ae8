//! Why a block is refused, and which header fields its execution contradicts.

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::B256;
use thiserror::Error;

use super::remasc::UnknownAncestor;
use super::sublists::EdgeError;
use super::transaction_error::TxError;
use crate::evm::precompiles::Unsimulated;
use crate::state::AccessKey;

/// The rule that the block breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum BlockError {
    #[error("the last transaction is not the REMASC transaction of this block")]
    Remasc,
    /// The header commits to other transactions.
    #[error("transactionsRoot: {expected}, the transactions give {found}")]
    TransactionsRoot { expected: B256, found: B256 },
    /// The edges do not divide the transactions into lists.
    #[error("rskPteEdges: {0}")]
    Edges(#[from] EdgeError),
    /// A transaction breaks a rule.
    #[error("transaction {index} {hash}: {error}")]
    Transaction { index: usize, hash: B256, error: TxError },
    #[error("parallel lists {lists:?} both use {key:?}")]
    Conflict { lists: (usize, usize), key: AccessKey },
    #[error("transaction {index} {hash}: calls Bridge or REMASC in a parallel list")]
    NativeContract { index: usize, hash: B256 },
    /// An ancestor that the execution needs, or its list of uncles, is not available.
    #[error(transparent)]
    UnknownAncestor(#[from] UnknownAncestor),
    /// The caller gave another number of senders than of transactions.
    #[error("{senders} senders for {transactions} transactions")]
    Senders { senders: usize, transactions: usize },
    /// A transaction calls a method of a native contract that this version does not implement, so the result of the
    /// block is not known.
    #[error("transaction {index} calls {method}, which is not simulated{}", differing(.mismatches))]
    NotSimulated {
        index: usize,
        method: Unsimulated,
        /// Header fields that differ if the call fails; empty if the execution ended at the call.
        mismatches: Vec<Mismatch>,
    },
    /// The result of the execution contradicts the header.
    #[error("execution gives another header: {}", list(.0))]
    Mismatch(Vec<Mismatch>),
}

/// A header field that differs from the result of the execution.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {expected}, execution gives {found}")]
pub struct Mismatch {
    /// The field, by its JSON name.
    pub field: &'static str,
    /// Value in the header.
    pub expected: String,
    /// Value computed by the execution.
    pub found: String,
}

impl Mismatch {
    /// Compares the two values and returns the mismatch, if any.
    pub(super) fn between<T: PartialEq + core::fmt::Display>(
        field: &'static str,
        expected: T,
        found: T,
    ) -> Option<Self> {
        use alloc::string::ToString as _;
        let differ = expected != found;
        differ.then(|| Self { field, expected: expected.to_string(), found: found.to_string() })
    }
}

/// The end of the message about a call that is not simulated: the fields that differ, if any.
fn differing(mismatches: &[Mismatch]) -> String {
    if mismatches.is_empty() {
        String::new()
    } else {
        alloc::format!("; if the call fails, {}", list(mismatches))
    }
}

/// The messages of all mismatches.
fn list(mismatches: &[Mismatch]) -> String {
    use alloc::string::ToString as _;
    let parts: Vec<String> = mismatches.iter().map(Mismatch::to_string).collect();
    parts.join("; ")
}
