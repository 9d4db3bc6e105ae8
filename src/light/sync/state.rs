//! The state of the synchronization machine and its constructors. The other files of this folder implement its steps.

use alloc::{sync::Arc, vec::Vec};

use super::{
    followed::FollowedChain,
    lease_state::LeaseState,
    options::SyncOptions,
    peer::SyncPeer,
    phase::Phase,
    proposal::{ChainStart, ElectionRule, Proposal},
    store::RestoreState,
};
use crate::{
    consensus::{Checkpoint, Network, WorkStart},
    light::{bitcoin::BitcoinFollower, clock::Now},
    types::B256,
};

/// The synchronization machine, which owns the header chain.
#[derive(Debug)]
pub struct HeaderSync {
    pub(super) followed: FollowedChain,
    /// The upstreams, by number.
    pub(super) peers: Vec<SyncPeer>,
    pub(super) leases: LeaseState,
    /// How the start of the chain is found.
    pub(super) start: ChainStart,
    /// The headers of an earlier run.
    pub(super) store: RestoreState,
    pub(super) options: SyncOptions,
    /// The Bitcoin chain by which the followed chain is judged, if the client follows one.
    pub(super) bitcoin: Option<Arc<BitcoinFollower>>,
    /// Hash of the transaction that was sent last, while it is not known to be in a block.
    pub(super) sent: Option<B256>,
    /// The time that the host passed in last.
    pub(super) now: Now,
}

impl HeaderSync {
    /// A machine that starts at a trusted checkpoint, with one upstream.
    pub fn new(network: Arc<Network>, checkpoint: Checkpoint) -> Self {
        Self::with_upstreams(network, checkpoint, 1, SyncOptions::default())
    }

    /// A machine that starts at a trusted checkpoint; upstreams are numbered from 0.
    pub fn with_upstreams(
        network: Arc<Network>,
        checkpoint: Checkpoint,
        upstreams: usize,
        options: SyncOptions,
    ) -> Self {
        let options = options.bounded();
        Self {
            followed: FollowedChain::new(network, checkpoint, &options),
            peers: (0..upstreams.max(1)).map(|_| SyncPeer::default()).collect(),
            leases: LeaseState::default(),
            start: ChainStart::Trusted,
            store: RestoreState::default(),
            options,
            bitcoin: None,
            sent: None,
            now: Now::default(),
        }
    }

    /// A machine that starts by work alone, judged by the rule of [`Network::start_by_work`]. A floor of 0 percent
    /// counts as 1, because without a floor the start would prove nothing.
    pub fn by_work(network: Arc<Network>, work: WorkStart, upstreams: usize, options: SyncOptions) -> Self {
        let (promised, work_floor) = (Some(work.difficulty), options.work_floor.max(1));
        let options = SyncOptions { promised, work_floor, ..options };
        let rule = ElectionRule { work, is_window: false, dated: None, mark: None };
        let placeholder = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        let sync = Self::with_upstreams(network, placeholder, upstreams, options);
        let proposals = sync.peers.iter().map(|_| Proposal::default()).collect();
        Self { start: ChainStart::Elected { rule, proposals }, ..sync }
    }

    /// Begins again at another trusted block, because the upstreams' chain was replaced as a whole, and drops the former chain. Does
    /// nothing in a start by work.
    pub fn begin_anew(&mut self, checkpoint: Checkpoint) {
        if self.is_by_work() {
            return;
        }
        self.followed = FollowedChain::new(self.followed.network.clone(), checkpoint, &self.options);
        (self.leases, self.store, self.sent) = (LeaseState::default(), RestoreState::default(), None);
        for peer in &mut self.peers {
            // Responses that are under way belong to the former chain.
            (peer.phase, peer.source.announced) = (Phase::Idle(0), None);
            peer.search.restart();
        }
    }

    /// Whether no block is trusted: the start is accepted for the work above it.
    pub fn is_by_work(&self) -> bool {
        matches!(self.start, ChainStart::Elected { .. })
    }

    /// Whether the trusted checkpoint is a block that the upstreams have shown ([`SyncOptions::shown_start`]).
    pub(crate) fn is_start_shown(&self) -> bool {
        self.options.shown_start && !self.is_by_work()
    }

    /// How the chain starts if no trusted block leads to it: `work` or `window`.
    pub fn untrusted_start(&self) -> Option<&'static str> {
        let rule = self.start.rule().filter(|_| self.store.linked != Some(self.followed.checkpoint.hash));
        rule.map(|rule| if rule.is_window { "window" } else { "work" })
    }
}
