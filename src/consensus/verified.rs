//! Headers that were checked, and how.

use alloc::sync::Arc;
use core::ops::Deref;

use super::candidate::Candidate;
use super::fork_detection::ForkDetection;
use super::network::Network;
use super::pow::Seal;
use super::rules::{Check, RuleError, verify_standalone};
use crate::types::{Header, SealedHeader};

/// Why a header is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// A checkpoint or genesis: its hash was given.
    Trusted,
    /// An ancestor of a believed header: that one's hash commits to it.
    HashLinked,
    /// Checked by every header rule as the child of a believed header.
    Mined(Seal),
    /// Known by its hash, with its own proof of work, but not connected to the chain.
    Alone(Seal),
    /// Built here on top of the head and not mined: the pending block.
    Pending,
}

/// What was checked of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Why it is believed.
    pub origin: Origin,
    /// What of its fork detection data was compared.
    pub fork_detection: ForkDetection,
}

/// A header that was checked; only this layer makes one. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifiedHeader {
    header: Arc<SealedHeader>,
    evidence: Evidence,
}

impl VerifiedHeader {
    pub(super) fn new(header: SealedHeader, origin: Origin, fork_detection: ForkDetection) -> Self {
        Self::shared(Arc::new(header), origin, fork_detection)
    }

    pub(super) fn shared(header: Arc<SealedHeader>, origin: Origin, fork_detection: ForkDetection) -> Self {
        Self { header, evidence: Evidence { origin, fork_detection } }
    }

    /// A header off the chain that was asked for by its hash: it must carry its own proof of work and keep the rules
    /// that need no parent. That says nothing about the chain it is on.
    ///
    /// # Errors
    /// The first rule it breaks.
    pub fn alone(candidate: Candidate, network: &Network) -> Result<Self, RuleError> {
        let seal = verify_standalone(&candidate, network, None)?;
        Ok(Self::shared(candidate.into_shared(), Origin::Alone(seal), ForkDetection::NotRequired))
    }

    /// The header of the block that would come next; it has no proof of work.
    #[must_use]
    pub fn pending(header: SealedHeader) -> Self {
        Self::new(header, Origin::Pending, ForkDetection::NotRequired)
    }

    /// Whether it is the header of the pending block.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.evidence.origin == Origin::Pending
    }

    /// The same header with more of its fork detection data compared.
    pub(super) fn with_fork_detection(&self, fork_detection: ForkDetection) -> Self {
        Self { header: self.header.clone(), evidence: Evidence { fork_detection, ..self.evidence } }
    }

    /// The same header, its proof of work checked.
    pub(super) fn with_seal(&self, seal: Seal) -> Self {
        let evidence = Evidence { origin: Origin::Mined(seal), ..self.evidence };
        Self { header: self.header.clone(), evidence }
    }

    /// Whether Merkle proof and coinbase are what they claim to be. From RSKIP-92 on the hash does not cover them, so one
    /// who hands out a header that is believed for its hash may choose them: then they are checked here. A genesis block
    /// has none.
    #[must_use]
    pub fn shows_work(&self, network: &Network) -> bool {
        let Header { shape, number, merkle_proof, coinbase_tx, .. } = self.header.header();
        match self.evidence.origin {
            Origin::Trusted | Origin::HashLinked if shape.hash_covers_proof => true,
            Origin::Trusted | Origin::HashLinked => {
                let empty = |field: &[u8]| matches!(field, [] | [0]);
                let candidate = Candidate::from(self.sealed().clone());
                (*number == 0 && empty(merkle_proof) && empty(coinbase_tx))
                    || Check::new(&candidate, network, None).mined().is_ok()
            }
            Origin::Mined(_) | Origin::Alone(_) | Origin::Pending => true,
        }
    }

    /// What was checked.
    #[must_use]
    pub const fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The header with its hash.
    #[must_use]
    pub fn sealed(&self) -> &SealedHeader {
        &self.header
    }

    /// A believed header's parent: `header` must hash to this one's parent hash.
    #[must_use]
    pub fn parent_from(&self, header: SealedHeader) -> Option<Self> {
        let linked = header.hash() == self.header.parent_hash;
        linked.then(|| Self::new(header, Origin::HashLinked, ForkDetection::NotRequired))
    }
}

impl Deref for VerifiedHeader {
    type Target = SealedHeader;

    fn deref(&self) -> &SealedHeader {
        &self.header
    }
}
