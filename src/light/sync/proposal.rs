//! Where a chain starts, and what upstreams propose if no block is trusted.

use alloc::{boxed::Box, vec::Vec};

use super::{followed::FollowedChain, lease_state::LeaseState, options::SyncOptions, peer::SyncPeer};
use crate::{consensus::WorkStart, light::header_window::HeaderWindow};

/// How the block is found at which the chain starts.
#[derive(Debug)]
pub(super) enum ChainStart {
    /// The host trusts it.
    Trusted,
    /// It is elected by this rule among the proposals of the upstreams, one for each.
    Work { rule: WorkStart, proposals: Vec<Proposal> },
}

impl ChainStart {
    /// The rule of the election, and the proposal of an upstream.
    pub(super) fn proposal(&mut self, upstream: usize) -> Option<(WorkStart, &mut Proposal)> {
        match self {
            Self::Trusted => None,
            Self::Work { rule, proposals } => Some((*rule, proposals.get_mut(upstream)?)),
        }
    }
}

/// The proposal of an upstream in a start by work.
#[derive(Debug, Default)]
pub(super) struct Proposal {
    pub(super) stage: ProposalStage,
    /// When it last made progress, in milliseconds of the monotonic clock.
    pub(super) moved: u64,
    /// Whether the upstream's headers do not link to the elected block: it follows another chain, and proposes again.
    pub(super) apart: bool,
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
