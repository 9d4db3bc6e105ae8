//! One chain that is followed: its headers, the uncles and ancestors that are still missing, and the judge of its work. The upstreams
//! that show the chain are apart (`peer.rs`).

use alloc::{sync::Arc, vec::Vec};

use super::{backfill_range::Backfill, lease_state::LeaseState, options::SyncOptions, peer::SyncPeer};
use crate::{
    consensus::{
        ChainError, Checkpoint, HeadChange, HeaderCandidate, HeaderChain, Inserted, Network, VerifiedHeader,
    },
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        meter::{Progress, SyncMeter},
        uncle_backlog::UncleBacklog,
        work_floor::WorkFloor,
    },
    types::{B256, SealedHeader},
};

/// Greatest age of a recent head, in seconds. An upstream that has not responded yet could add only a few blocks to such a head.
const RECENT: u64 = 600;

/// A chain from its checkpoint on, with the data that is still to be fetched for it and the judge of its work.
#[derive(Debug)]
pub(super) struct FollowedChain {
    pub(super) network: Arc<Network>,
    /// The block that the chain starts at, trusted or elected. Genesis before an election.
    pub(super) checkpoint: Checkpoint,
    /// The verified headers; `None` until the checkpoint's header has arrived.
    pub(super) chain: Option<HeaderChain>,
    /// Blocks whose uncles are still to be fetched.
    pub(super) backlog: UncleBacklog,
    /// Which ancestors of the checkpoint are still to be fetched.
    pub(super) backfill: Backfill,
    /// Judges the work that the headers show.
    pub(super) floor: WorkFloor,
    /// Measures how fast headers arrive.
    pub(super) meter: SyncMeter,
    /// Whether the head was reached once.
    pub(super) synced_once: bool,
    /// Whether uncles are requested only after the head was reached.
    pub(super) headers_first: bool,
    /// The number of the lowest canonical header that changed, or whose uncles changed, since the last export to a store.
    pub(super) changed: Option<u64>,
}

impl FollowedChain {
    pub(super) fn new(network: Arc<Network>, checkpoint: Checkpoint, options: &SyncOptions) -> Self {
        Self {
            network,
            checkpoint,
            chain: None,
            backlog: UncleBacklog::default(),
            backfill: Backfill::default(),
            floor: WorkFloor::new(options.work_floor, options.promised),
            meter: SyncMeter::default(),
            synced_once: false,
            headers_first: false,
            changed: None,
        }
    }

    /// The number of the head; that of the checkpoint before there is a chain.
    pub(super) fn head_number(&self) -> u64 {
        self.chain.as_ref().map_or(self.checkpoint.number, |chain| chain.head().number)
    }

    /// The height of a header that is not on the heaviest chain; `None` for a header that is, or that the chain does not have.
    pub(super) fn side_branch(&self, hash: Option<B256>) -> Option<u64> {
        let (hash, view) = (hash?, self.chain.as_ref()?.view());
        let number = view.by_hash(&hash)?.number;
        (!view.is_canonical(number, &hash)).then_some(number)
    }

    /// Starts the chain at the checkpoint's header.
    pub(super) fn start_at(&mut self, header: SealedHeader, options: &SyncOptions) -> Result<(), SyncFault> {
        let number = self.checkpoint.number;
        let chain = HeaderChain::from_checkpoint(self.network.clone(), &self.checkpoint, header)
            .map_err(|error| SyncFault { number, cause: SyncCause::Header(error) })?;
        if self.chain.is_none() {
            self.backfill.start(number, options.backfill);
            self.chain = Some(chain);
            // All pages are written again, which replaces those of an earlier chain.
            self.touch(0);
        }
        Ok(())
    }

    /// Checks a header by all rules and adds it to the chain, and notes which headers a store has to write again. `None` without
    /// a chain.
    pub(super) fn add_to_chain(
        &mut self,
        header: HeaderCandidate,
        now: Now,
    ) -> Option<Result<Inserted, ChainError>> {
        let inserted = self.chain.as_mut()?.insert(header, Some(now.unix));
        match inserted.as_ref().map(|inserted| (&inserted.change, inserted.header.number)) {
            Ok((HeadChange::Extended, number)) => self.touch(number),
            Ok((HeadChange::Reorganised(change), _)) => self.touch(change.ancestor.number.saturating_add(1)),
            Ok((HeadChange::Known | HeadChange::Side, _)) | Err(_) => {}
        }
        Some(inserted)
    }

    /// Records that canonical headers, or their uncles, changed from this number on.
    pub(super) fn touch(&mut self, number: u64) {
        self.changed = Some(self.changed.map_or(number, |lowest| lowest.min(number)));
    }

    /// Judges the work of the headers that are new.
    pub(super) fn judge_work(&mut self) {
        if let Some(chain) = &self.chain {
            self.floor.follow(chain.view(), &self.network);
        }
    }

    /// The number of the highest block that one of these upstreams announces, unless it rests. Once the head was
    /// reached, an announced height counts only up to the newest verified header from the same upstream.
    pub(super) fn announced(&self, peers: &[SyncPeer]) -> u64 {
        let most = |peer: &SyncPeer| if self.synced_once { self.shown(peer) } else { u64::MAX };
        let healthy = peers.iter().filter(|peer| !peer.is_resting());
        healthy.filter_map(|peer| Some(peer.source.announced?.min(most(peer)))).max().unwrap_or(0)
    }

    /// The height of the newest header accepted from an upstream; 0 without one.
    fn shown(&self, peer: &SyncPeer) -> u64 {
        let newest = peer.search.newest_hash.and_then(|hash| self.chain.as_ref()?.by_hash(&hash));
        newest.map_or(0, |header| header.number)
    }

    /// Progress from block `start` on.
    pub(super) fn progress(&self, start: u64, peers: &[SyncPeer]) -> Progress {
        self.meter.progress(start, self.head_number(), self.announced(peers))
    }

    /// Attaches uncles that have arrived, judges the work, and decides whether the head is reached.
    pub(super) fn settle(&mut self, peers: &[SyncPeer], leases: &mut LeaseState, now: Now) {
        self.attach_ready(peers, now);
        self.judge_work();
        if !self.synced_once {
            let head = self.chain.as_ref().map(|chain| chain.snapshot().head().timestamp);
            let is_recent = head.is_some_and(|time| now.unix <= time.saturating_add(RECENT));
            self.synced_once = head.is_some() && leases.all_seen(peers, is_recent, now);
        }
    }

    /// Lets other upstreams take over the open fetches of this one.
    pub(super) fn release(&mut self, upstream: usize) {
        self.backlog.release(upstream);
        self.backfill.release(upstream);
    }

    /// Starts again at the checkpoint and drops the headers above it. `downwards` has the checkpoint's header first, then its
    /// ancestors from the newest to the oldest.
    pub(super) fn restart(&mut self, downwards: Vec<SealedHeader>) -> Result<(), ChainError> {
        let mut downwards = downwards.into_iter();
        let Some(header) = downwards.next() else { return Ok(()) };
        let mut chain = HeaderChain::from_checkpoint(self.network.clone(), &self.checkpoint, header)?;
        for header in downwards {
            chain.prepend(header)?;
        }
        self.touch(0);
        self.chain = Some(chain);
        self.backlog = UncleBacklog::default();
        self.synced_once = false;
        Ok(())
    }

    /// Continues from the chain of an elected proposal. The backfill skips the ancestors that this chain has already, and ancestors
    /// down to the block `lowest` are fetched in the background. The meter is not reset, because the speed of the network is the same.
    pub(super) fn adopt(&mut self, elected: Self, options: &SyncOptions, lowest: u64) {
        self.checkpoint = elected.checkpoint;
        (self.backfill, self.backlog) = (Backfill::default(), UncleBacklog::default());
        self.floor = WorkFloor::new(options.work_floor, options.promised);
        self.synced_once = false;
        self.backfill.start(self.checkpoint.number, options.backfill);
        self.backfill.background = Some(lowest);
        self.touch(0);
        if let Some(chain) = elected.chain {
            self.continue_from(chain);
        }
    }

    /// Continues a chain that was built by a trial or restored. Its uncles that are missing will be fetched.
    pub(super) fn continue_from(&mut self, chain: HeaderChain) {
        let view = chain.view();
        let lacks_uncles = |header: &&VerifiedHeader| view.uncles(&header.hash()).is_none();
        let above_base = view.base().number.saturating_add(1)..=view.head().number;
        let headers = above_base.filter_map(|number| view.by_number(number)).filter(lacks_uncles);
        headers.for_each(|header| self.backlog.add(header));
        self.chain = Some(chain);
        self.judge_work();
    }

    /// Drops the chain and everything that belongs to it.
    pub(super) fn forget(&mut self, options: &SyncOptions) {
        (self.chain, self.changed) = (None, None);
        (self.backfill, self.backlog) = (Backfill::default(), UncleBacklog::default());
        self.floor = WorkFloor::new(options.work_floor, options.promised);
    }
}
