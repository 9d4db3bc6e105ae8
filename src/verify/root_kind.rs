//! The roots of a header against which proofs are checked.

use crate::types::{B256, Header};

/// A root of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// `stateRoot`.
    State,
    /// `receiptsRoot`.
    Receipts,
}

impl RootKind {
    /// The member of documents that states the root.
    pub(super) const fn field(self) -> &'static str {
        match self {
            Self::State => "stateRoot",
            Self::Receipts => "receiptsRoot",
        }
    }

    /// The name of the root in reports.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::State => "state root",
            Self::Receipts => "receipts root",
        }
    }

    /// The root in this header.
    pub(super) const fn of(self, header: &Header) -> B256 {
        match self {
            Self::State => header.state_root,
            Self::Receipts => header.receipts_root,
        }
    }
}
