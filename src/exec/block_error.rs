//! Why a block is refused, and what of it differs from its header.

use alloc::string::String;
use alloc::vec::Vec;

use alloy_primitives::B256;
use thiserror::Error;

use super::remasc::UnknownAncestor;
use super::sublists::EdgeError;
use super::transaction_error::TxError;
use crate::state::AccessKey;

/// The rule that a block breaks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BlockError {
    /// The last transaction is not REMASC's.
    #[error("the last transaction is not the REMASC transaction of this block")]
    Remasc,
    /// Not the transactions that the header commits to.
    #[error("transactionsRoot: {expected}, the transactions give {found}")]
    TransactionsRoot {
        /// The header's root.
        expected: B256,
        /// Root of the list.
        found: B256,
    },
    /// The edges do not divide the transactions.
    #[error("rskPteEdges: {0}")]
    Edges(#[from] EdgeError),
    /// A transaction breaks a rule.
    #[error("transaction {index} {hash}: {error}")]
    Transaction {
        /// Index in the block.
        index: usize,
        /// Its hash.
        hash: B256,
        /// The rule.
        error: TxError,
    },
    /// Two parallel lists are not independent.
    #[error("parallel lists {lists:?} both use {key:?}")]
    Conflict {
        /// The lists, counted from 0.
        lists: (usize, usize),
        /// What one writes and the other reads or writes.
        key: AccessKey,
    },
    /// A transaction of a parallel list calls the Bridge or REMASC.
    #[error("transaction {index} {hash}: calls Bridge or REMASC in a parallel list")]
    SharedContract {
        /// Index in the block.
        index: usize,
        /// Its hash.
        hash: B256,
    },
    /// An ancestor that the block's execution needs is not known.
    #[error(transparent)]
    UnknownAncestor(#[from] UnknownAncestor),
    /// As many senders as transactions are needed.
    #[error("{senders} senders for {transactions} transactions")]
    Senders {
        /// Senders given.
        senders: usize,
        /// Transactions.
        transactions: usize,
    },
    /// What its execution gives is not what its header says.
    #[error("execution gives another header: {}", list(.0))]
    Mismatch(Vec<Mismatch>),
}

/// A field of the header that the execution gives differently.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} is {expected}, execution gives {found}")]
pub struct Mismatch {
    /// The field, by its JSON name.
    pub field: &'static str,
    /// What the header says.
    pub expected: String,
    /// What the execution gives.
    pub found: String,
}

impl Mismatch {
    /// The field where the two differ.
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

fn list(mismatches: &[Mismatch]) -> String {
    use alloc::string::ToString as _;
    let parts: Vec<String> = mismatches.iter().map(Mismatch::to_string).collect();
    parts.join("; ")
}
