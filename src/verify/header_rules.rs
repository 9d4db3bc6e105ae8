//! The names of the rules that a header can be checked by without its parent, and of those that need the parent.

use alloc::vec::Vec;

use serde::Serialize;

use crate::consensus::fork_detection::checked_data;
use crate::consensus::{HeaderCandidate, Network, Rule, Seal};

/// The rules of headers that were checked, and those that were not because the parent is missing. Rules that are not
/// active at the header's height are in neither list. [`crate::consensus::RuleError`] describes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeaderRules {
    /// Names of the rules that were checked, and that the header obeys.
    pub checked: Vec<&'static str>,
    /// Names of the rules that compare a header with its parent, or with earlier ancestors.
    pub need_parent: Vec<&'static str>,
}

impl HeaderRules {
    /// The rules of [`crate::consensus::VerifiedHeader::alone`], except those on the seal.
    pub(super) fn alone(candidate: &HeaderCandidate, network: &Network) -> Self {
        let header = candidate.header();
        let active = network.rules(header.number);
        let mut checked = alloc::vec!["gasLimitMinimum", "gasUsed", "extraData"];
        let mut need_parent =
            alloc::vec!["parentHash", "number", "difficulty", "gasLimitStep", "minimumGasPrice"];
        if header.shape.edges {
            checked.push("edges");
        }
        if active.has(Rule::Rskip179) && network.params.future_bound > 0 {
            checked.push("bitcoinTime");
        }
        if candidate.mining_hash().as_ref().is_ok_and(|hash| checked_data(header, hash).is_some()) {
            checked.push("forkDetectionNumber");
            need_parent.push("forkDetection");
        }
        Self { checked, need_parent }
    }

    /// Adds the rules on the proof of work or the signature.
    pub(super) fn sealed(&mut self, seal: Seal) {
        self.checked.extend_from_slice(match seal {
            Seal::MergedMining => &["target", "coinbaseCommitment", "merkleProof"],
            Seal::FallbackSignature => &["fallbackSignature"],
        });
    }
}
