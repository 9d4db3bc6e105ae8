//! Uncles: the list a block commits to, and the rules by which its work counts.

use alloc::vec::Vec;

use thiserror::Error;

use super::network::{MAX_UNCLES, UNCLE_GENERATIONS};
use super::rules::RuleError;
use super::verified::VerifiedHeader;
use crate::types::{uncles_hash, Header, SealedHeader, B256, U256};

/// Why uncles are not a block's, or do not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum UncleError {
    /// Not the list that the header commits to.
    #[error("sha3Uncles: {expected}, the list hashes to {found}")]
    Hash {
        /// The header's commitment.
        expected: B256,
        /// Hash of the list.
        found: B256,
    },
    /// Too many uncles.
    #[error("{found} uncles, at most {MAX_UNCLES}")]
    TooMany {
        /// Their number.
        found: usize,
    },
    /// At or above the block that names it, or too far below.
    #[error("uncle {index}: number {number} in block {block}, at most {UNCLE_GENERATIONS} blocks below the parent")]
    Generation {
        /// Place in the list.
        index: usize,
        /// The uncle's number.
        number: u64,
        /// The block's number.
        block: u64,
    },
    /// Named twice in the same block.
    #[error("uncle {index}: {hash} is named twice")]
    Repeated {
        /// Place in the list.
        index: usize,
        /// The uncle's hash.
        hash: B256,
    },
    /// An ancestor of the block.
    #[error("uncle {index}: {hash} is an ancestor of the block")]
    Ancestor {
        /// Place in the list.
        index: usize,
        /// The uncle's hash.
        hash: B256,
    },
    /// Already an uncle of a recent block.
    #[error("uncle {index}: {hash} is already an uncle of block {block}")]
    Used {
        /// Place in the list.
        index: usize,
        /// The uncle's hash.
        hash: B256,
        /// The earlier block.
        block: u64,
    },
    /// Its parent is no recent ancestor of the block.
    #[error("uncle {index}: parent {parent} is none of the block's last ancestors")]
    Parent {
        /// Place in the list.
        index: usize,
        /// The uncle's parent hash.
        parent: B256,
    },
    /// Breaks a header rule.
    #[error("uncle {index}: {rule}")]
    Rule {
        /// Place in the list.
        index: usize,
        /// The rule.
        rule: RuleError,
    },
    /// An ancestor that the check needs is not known (start of the chain); the uncles cannot be counted.
    #[error("ancestor block {number} is not known")]
    UnknownAncestor {
        /// Its number.
        number: u64,
    },
    /// An earlier block's uncles must be proven first, to see that none is used twice.
    #[error("the uncles of block {number} {hash} must be proven first")]
    EarlierUncles {
        /// The earlier block's number.
        number: u64,
        /// The earlier block's hash.
        hash: B256,
    },
}

impl UncleError {
    /// Whether whoever sent the uncles, or mined the block, broke a rule, rather than something being unknown yet.
    #[must_use]
    pub const fn is_misbehaviour(&self) -> bool {
        match self {
            Self::UnknownAncestor { .. } | Self::EarlierUncles { .. } => false,
            Self::Rule { rule, .. } => !matches!(rule, RuleError::Future { .. }),
            _ => true,
        }
    }
}

/// The uncles that a verified header commits to. That alone does not make their work count: see
/// [`super::chain::HeaderChain::attach_uncles`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedUncles {
    block: B256,
    uncles: Vec<SealedHeader>,
}

impl VerifiedUncles {
    /// Checks the list against the header's uncles hash.
    pub fn check(header: &VerifiedHeader, uncles: Vec<Header>) -> Result<Self, UncleError> {
        let (expected, found) = (header.uncles_hash, uncles_hash(&uncles));
        if expected != found {
            return Err(UncleError::Hash { expected, found });
        }
        let uncles = uncles.into_iter().map(Header::seal).collect();
        Ok(Self { block: header.hash(), uncles })
    }

    /// The uncles of a block whose header commits to an empty list.
    pub(crate) fn none(header: &VerifiedHeader) -> Self {
        Self { block: header.hash(), uncles: Vec::new() }
    }

    /// Hash of the block they belong to.
    #[must_use]
    pub const fn block(&self) -> B256 {
        self.block
    }

    /// The uncles in order.
    #[must_use]
    pub fn headers(&self) -> &[SealedHeader] {
        &self.uncles
    }

    /// Sum of their difficulties.
    #[must_use]
    pub fn work(&self) -> U256 {
        self.uncles.iter().fold(U256::ZERO, |sum, uncle| sum.saturating_add(uncle.difficulty.value()))
    }
}
