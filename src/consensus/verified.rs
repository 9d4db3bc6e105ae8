//! Headers that were checked, with the evidence for them. Only checks construct these types, and answers of a light client need them.

use alloc::sync::Arc;
use core::ops::Deref;

use super::candidate::HeaderCandidate;
use super::fork_detection::ForkDetection;
use super::network::Network;
use super::pow::Seal;
use super::rules::{RuleError, RuleInput, verify_standalone};
use crate::types::{Header, SealedHeader};

/// Why a header is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// The header is a checkpoint or genesis, whose hash is trusted.
    Trusted,
    /// The header is an ancestor of an accepted header, whose hash commits to it.
    HashLinked,
    /// The header was checked by every header rule as the child of an accepted header.
    Mined(Seal),
    /// The header has the requested hash and its own proof of work, but is not connected to the chain.
    Alone(Seal),
    /// The header comes from the host's own node, which is trusted.
    OwnNode,
}

/// The checks that a header has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Evidence {
    /// Why the header is accepted.
    pub origin: Origin,
    /// The parts of its fork detection data that were compared.
    pub fork_detection: ForkDetection,
}

/// A header that was checked. Only this layer constructs it. Cloning is cheap.
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

    /// Checks a header that was requested by its hash and is off the chain: the header must have its own proof of work and obey
    /// the rules that need no parent. The check proves nothing about the header's chain.
    ///
    /// # Errors
    /// The first rule that the header breaks.
    pub fn alone(candidate: HeaderCandidate, network: &Network) -> Result<Self, RuleError> {
        let seal = verify_standalone(&candidate, network, None)?;
        Ok(Self::shared(candidate.into_shared(), Origin::Alone(seal), ForkDetection::NotRequired))
    }

    /// A header from the host's own node. No rule is checked; the caller has compared the hash.
    #[cfg(feature = "light")]
    pub(crate) fn of_own_node(header: Arc<SealedHeader>) -> Self {
        Self::shared(header, Origin::OwnNode, ForkDetection::NotRequired)
    }

    /// The same header with more of its fork detection data compared.
    pub(super) fn with_fork_detection(&self, fork_detection: ForkDetection) -> Self {
        Self { header: self.header.clone(), evidence: Evidence { fork_detection, ..self.evidence } }
    }

    /// The same header after its proof of work was checked.
    pub(super) fn with_seal(&self, seal: Seal) -> Self {
        let evidence = Evidence { origin: Origin::Mined(seal), ..self.evidence };
        Self { header: self.header.clone(), evidence }
    }

    /// Whether Merkle proof and coinbase are valid. From RSKIP-92 on the hash does not cover these two fields, so an upstream can
    /// choose them for a header that is accepted by its hash; this function checks them in that case. A genesis block has none.
    pub fn shows_work(&self, network: &Network) -> bool {
        let Header { shape, number, merkle_proof, coinbase_tx, .. } = self.header.header();
        match self.evidence.origin {
            Origin::Mined(_) | Origin::Alone(_) => true,
            _ if shape.hash_covers_proof => true,
            _ => {
                // Genesis files write an empty field as one zero byte.
                let empty = |field: &[u8]| matches!(field, [] | [0]);
                let candidate = HeaderCandidate::from(self.sealed().clone());
                (*number == 0 && empty(merkle_proof) && empty(coinbase_tx))
                    || RuleInput::new(&candidate, network, None).mined().is_ok()
            }
        }
    }

    /// The evidence for the header.
    pub const fn evidence(&self) -> &Evidence {
        &self.evidence
    }

    /// The header with its hash.
    pub fn sealed(&self) -> &SealedHeader {
        &self.header
    }

    /// Accepts the parent of this header: the hash of `header` must be this header's parent hash.
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

/// The header of the block that would come next on a chain that this program executes. The header is built here, has no proof of work
/// and was not checked. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingHeader(Arc<SealedHeader>);

impl From<SealedHeader> for PendingHeader {
    fn from(header: SealedHeader) -> Self {
        Self(Arc::new(header))
    }
}

impl Deref for PendingHeader {
    type Target = SealedHeader;

    fn deref(&self) -> &SealedHeader {
        &self.0
    }
}
