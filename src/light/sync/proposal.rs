//! Where a chain starts, and what upstreams propose if no block is trusted.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use super::{
    followed::FollowedChain, lease_state::LeaseState, options::SyncOptions, peer::SyncPeer,
    window_judge::WindowJudge, window_record::ProvenMark,
};
use crate::{consensus::WorkStart, light::header_window::HeaderWindow};

/// How the block is found at which the chain starts.
#[derive(Debug)]
pub(super) enum ChainStart {
    /// The host trusts the block.
    Trusted,
    /// The block is elected by this rule among the proposals of the upstreams, one for each.
    Elected { rule: ElectionRule, proposals: Vec<Proposal> },
}

/// The rule by which a start is elected.
#[derive(Debug, Clone)]
pub(super) struct ElectionRule {
    /// The network's numbers.
    pub(super) work: WorkStart,
    /// Whether the chain is a window, which is stored.
    pub(super) is_window: bool,
    /// Judges the headers in place of the network's numbers, where it can.
    pub(super) dated: Option<Arc<dyn WindowJudge>>,
    /// The mark of an earlier run.
    pub(super) mark: Option<ProvenMark>,
}

/// The parts of the election that an exchange with an upstream needs: its rule and the upstream's proposal.
pub(super) type Election<'a> = (ElectionRule, &'a mut Proposal);

impl ChainStart {
    /// The rule of the election, and the proposal of an upstream.
    pub(super) fn proposal(&mut self, upstream: usize) -> Option<Election<'_>> {
        match self {
            Self::Trusted => None,
            Self::Elected { rule, proposals } => Some((rule.clone(), proposals.get_mut(upstream)?)),
        }
    }

    /// The rule of the election.
    pub(super) fn rule(&self) -> Option<&ElectionRule> {
        match self {
            Self::Trusted => None,
            Self::Elected { rule, .. } => Some(rule),
        }
    }
}

/// The proposal of an upstream where the start is elected.
#[derive(Debug, Default)]
pub(super) struct Proposal {
    pub(super) stage: ProposalStage,
    /// When it last made progress, in milliseconds of the monotonic clock.
    pub(super) moved: u64,
    /// Whether the upstream's headers do not link to the elected block: it follows another chain, and proposes again.
    pub(super) apart: bool,
    /// Whether work could not be dated, so that the network's numbers judge more headers.
    pub(super) undated: bool,
}

/// How far a proposal is.
#[derive(Debug, Default)]
pub(super) enum ProposalStage {
    /// The upstream's height is needed.
    #[default]
    Height,
    /// The header of the proposed block is needed.
    Block(HeaderWindow),
    /// The headers above the proposed block are needed.
    Headers(Box<Trial>),
    /// The headers show enough work.
    Judged(Box<Trial>),
}

/// The chain that one upstream shows above the block that it proposes, which is taken for a checkpoint. What this chain
/// says of the upstream is lost with it: only faults enter the upstream's record.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) followed: FollowedChain,
    pub(super) peer: SyncPeer,
    pub(super) leases: LeaseState,
    pub(super) options: SyncOptions,
}
