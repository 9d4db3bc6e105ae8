//! Uncles: the list of headers that a block commits to besides its parent, and why they may not count as work. The rules of uncles are
//! checked in `consensus::chain`.

use alloc::vec::Vec;

use thiserror::Error;

use super::network::{MAX_UNCLES, UNCLE_GENERATIONS};
use super::rules::RuleError;
#[cfg(feature = "dev")]
use super::verified::PendingHeader;
use super::verified::VerifiedHeader;
use crate::types::{B256, EMPTY_UNCLES_HASH, Header, SealedHeader, U256, uncles_hash};

/// Why uncles do not belong to a block, or do not count.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum UncleError {
    /// The header commits to another list.
    #[error("sha3Uncles: {expected}, the list hashes to {found}")]
    Hash { expected: B256, found: B256 },
    #[error("{found} uncles, at most {MAX_UNCLES}")]
    TooMany { found: usize },
    /// The uncle is not below the block that includes it, or is too far below it.
    #[error(
        "uncle {index}: number {number} in block {block}, at most {UNCLE_GENERATIONS} blocks below the parent"
    )]
    Generation { index: usize, number: u64, block: u64 },
    #[error("uncle {index}: {hash} is included twice")]
    Repeated { index: usize, hash: B256 },
    #[error("uncle {index}: {hash} is an ancestor of the block")]
    Ancestor { index: usize, hash: B256 },
    /// A recent block already includes the uncle.
    #[error("uncle {index}: {hash} is already an uncle of block {block}")]
    Used { index: usize, hash: B256, block: u64 },
    #[error("uncle {index}: parent {parent} is not a recent ancestor of the block")]
    Parent { index: usize, parent: B256 },
    /// The uncle breaks a header rule.
    #[error("uncle {index}: {rule}")]
    Rule { index: usize, rule: RuleError },
    /// The chain lacks an ancestor that the check needs, because the block is near the start, so the uncles cannot be counted.
    #[error("ancestor block {number} is not known")]
    UnknownAncestor { number: u64 },
    /// The uncles of an earlier block must be proven first, to exclude that an uncle is used twice.
    #[error("the uncles of block {number} {hash} must be proven first")]
    EarlierUncles { number: u64, hash: B256 },
}

impl UncleError {
    /// Whether the error proves a fault of the sender or of the miner; `false` if the chain only lacks data, or if an uncle is ahead of
    /// the clock.
    pub const fn is_misbehaviour(&self) -> bool {
        match self {
            Self::UnknownAncestor { .. } | Self::EarlierUncles { .. } => false,
            Self::Rule { rule, .. } => !matches!(rule, RuleError::Future { .. }),
            _ => true,
        }
    }

    /// Whether the same uncles may be valid a little later.
    pub const fn is_early(&self) -> bool {
        matches!(self, Self::Rule { rule: RuleError::Future { .. }, .. })
    }
}

/// The uncles that a verified header commits to. Their work counts only after further checks: see
/// [`super::chain::HeaderChain::attach_uncles`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedUncles {
    block: B256,
    uncles: Vec<SealedHeader>,
}

impl VerifiedUncles {
    /// Checks the list against the header's uncles hash.
    pub fn check(header: &VerifiedHeader, uncles: Vec<Header>) -> Result<Self, UncleError> {
        Self::of(header, uncles)
    }

    /// As [`Self::check`], for the header of a block that is not mined yet.
    #[cfg(feature = "dev")]
    pub(crate) fn pending(header: &PendingHeader, uncles: Vec<Header>) -> Result<Self, UncleError> {
        Self::of(header, uncles)
    }

    /// Compares the list with the header's uncles hash.
    fn of(header: &SealedHeader, uncles: Vec<Header>) -> Result<Self, UncleError> {
        let (expected, found) = (header.uncles_hash, uncles_hash(&uncles));
        if expected != found {
            return Err(UncleError::Hash { expected, found });
        }
        let uncles = uncles.into_iter().map(Header::seal).collect();
        Ok(Self { block: header.hash(), uncles })
    }

    /// The uncles of a block whose header commits to an empty list. `None` for other blocks.
    pub(crate) fn if_empty(header: &VerifiedHeader) -> Option<Self> {
        let empty = header.uncles_hash == EMPTY_UNCLES_HASH;
        empty.then(|| Self { block: header.hash(), uncles: Vec::new() })
    }

    /// Hash of the block that includes the uncles.
    pub const fn block(&self) -> B256 {
        self.block
    }

    /// The uncles in order.
    pub fn headers(&self) -> &[SealedHeader] {
        &self.uncles
    }

    /// Sum of the uncles' difficulties.
    pub fn work(&self) -> U256 {
        self.uncles.iter().fold(U256::ZERO, |sum, uncle| sum.saturating_add(uncle.difficulty.value()))
    }
}
