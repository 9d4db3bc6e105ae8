//! The block at which a chain starts: trusted, or elected among the proposals of the upstreams (`elect.rs`, `propose.rs`).

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
    /// The network's numbers: least difficulty, lowest block and number of headers.
    pub(super) work: WorkStart,
    /// Whether the chain is a window, whose headers are stored.
    pub(super) is_window: bool,
    /// Judges the headers by dated work instead of by the network's numbers, if their work can be dated.
    pub(super) dated: Option<Arc<dyn WindowJudge>>,
    /// The mark of an earlier run, which proposals must not contradict.
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
    /// When the proposal last made progress, in milliseconds of the monotonic clock.
    pub(super) last_progress: u64,
    /// Whether the upstream's headers do not link to the elected block: the upstream follows another chain, and proposes again.
    pub(super) apart: bool,
    /// Whether its work could not be dated, so that the proposal needs as many headers as the network's numbers ask for.
    pub(super) undated: bool,
}

/// The stage of a proposal.
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

/// The chain that one upstream shows above the block that it proposes, which is its checkpoint. The trial has a machine of its own,
/// whose record of the upstream is dropped at the end: only faults enter the upstream's record.
#[derive(Debug)]
pub(super) struct Trial {
    pub(super) followed: FollowedChain,
    pub(super) peer: SyncPeer,
    pub(super) leases: LeaseState,
    pub(super) options: SyncOptions,
}
