//! The interface of the synchronization machine for hosts: [`HeaderSync::next`] and [`HeaderSync::feed`], which a host calls in a
//! loop for each upstream, and the results.

use alloc::{sync::Arc, vec::Vec};

use super::{exchange::UpstreamExchange, options::SyncStep, peer::SyncPeer, phase::Phase, state::HeaderSync};
use crate::{
    consensus::{Checkpoint, HeaderChain, Network},
    light::{clock::Now, fault::SyncFault, meter::Progress, upstream::UpstreamResponse},
    types::B256,
};

impl HeaderSync {
    /// Sets the most headers of one header window ([`SyncOptions::batch`](super::SyncOptions::batch)); 0 counts as 1.
    pub fn set_batch(&mut self, batch: usize) {
        self.options.batch = batch;
    }

    /// The verified chain; `None` until the checkpoint's header has arrived.
    pub fn chain(&self) -> Option<&HeaderChain> {
        self.followed.chain.as_ref()
    }

    /// The network that the machine follows.
    pub fn network(&self) -> &Arc<Network> {
        &self.followed.network
    }

    /// The block that the chain starts at.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.followed.checkpoint
    }

    /// Height of the checkpoint.
    pub fn start(&self) -> u64 {
        self.followed.checkpoint.number
    }

    /// The number of the highest block that an upstream announces, unless the upstream rests. Announcing a height costs nothing,
    /// so once the head was reached a height counts only up to the newest verified header from the same upstream.
    pub fn announced(&self) -> u64 {
        self.followed.announced(&self.peers)
    }

    /// Whether the head has been reached at least once.
    pub fn is_synced(&self) -> bool {
        self.followed.synced_once
    }

    /// Whether the head was reached and no uncles are pending: total difficulties are then as exact as they can be.
    pub fn uncles_complete(&self) -> bool {
        self.followed.synced_once && self.followed.backlog.is_empty()
    }

    /// Progress of synchronization.
    pub fn progress(&self) -> Progress {
        let start = self.store.resumed.unwrap_or(self.start());
        self.progress_of_proposals().unwrap_or_else(|| self.followed.progress(start, &self.peers))
    }

    /// An exchange with an upstream, if there is one of this number.
    pub(super) fn exchange(&mut self, upstream: usize) -> Option<UpstreamExchange<'_>> {
        let (before, from) = self.peers.split_at_mut_checked(upstream)?;
        let (peer, after) = from.split_first_mut()?;
        let (followed, leases, options, now) =
            (&mut self.followed, &mut self.leases, &self.options, self.now);
        let (proposal, bitcoin) = (self.start.proposal(upstream), self.bitcoin.as_deref());
        Some(UpstreamExchange {
            upstream,
            peer,
            before,
            after,
            followed,
            leases,
            proposal,
            options,
            bitcoin,
            now,
        })
    }

    /// The next step for an upstream. The same requests are returned until [`Self::feed`] gets their responses.
    pub fn next(&mut self, upstream: usize, now: Now) -> SyncStep {
        self.now = now;
        if let Some(request) = self.lone_bitcoin(upstream) {
            return SyncStep::Fetch(alloc::vec![request]);
        }
        self.begin_bitcoin(upstream);
        let step = self.step(upstream);
        self.with_bitcoin(upstream, step)
    }

    /// The next step towards the chain of an upstream.
    fn step(&mut self, upstream: usize) -> SyncStep {
        let no_upstream = SyncStep::Wait(self.options.poll);
        let Some(mut exchange) = self.exchange(upstream) else { return no_upstream };
        if let Some(wait) = exchange.begin() {
            return wait;
        }
        // An election or a judgement may become due by time alone.
        self.elect();
        if self.store.on_probation {
            self.settle();
        }
        self.exchange(upstream).map_or(no_upstream, |mut exchange| exchange.step())
    }

    /// Makes an upstream due at once, or after the exchange that is under way, because it reports that there are new
    /// blocks. An upstream that rests after a fault continues to rest.
    pub fn hint(&mut self, upstream: usize) {
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        match &mut peer.phase {
            Phase::Idle(due) => *due = 0,
            Phase::Resting(..) => {}
            _ => peer.hinted = true,
        }
    }

    /// Checks for new blocks at once and then after pauses that grow up to the usual one, because an upstream has taken the transaction
    /// `sent`, which may be in the next block.
    pub(crate) fn look_for(&mut self, sent: B256) {
        self.sent = Some(sent);
        self.peers.iter_mut().for_each(SyncPeer::hasten);
    }

    /// Returns to the usual pauses if the transaction that was sent last is in a block.
    pub(crate) fn end_search(&mut self, is_mined: impl FnOnce(&B256) -> bool) {
        if self.sent.as_ref().is_some_and(is_mined) {
            self.sent = None;
            self.peers.iter_mut().for_each(|peer| peer.short_pause = None);
        }
    }

    /// Makes every upstream due at once.
    pub fn poll(&mut self) {
        self.peers.iter_mut().for_each(SyncPeer::poll);
        self.followed.backfill.forget_refusals();
    }

    /// Takes the responses to the requests of an upstream's last [`SyncStep::Fetch`], in order.
    pub fn feed(&mut self, upstream: usize, mut responses: Vec<UpstreamResponse>, now: Now) {
        self.now = now;
        if self.take_bitcoin(upstream, &mut responses) {
            let Some(mut exchange) = self.exchange(upstream) else { return };
            exchange.feed(responses);
            self.compare(upstream);
        }
        self.settle();
    }

    /// Draws the conclusions from new data or from the time: elects a start, attaches uncles, judges the chain, and decides whether the
    /// head is reached.
    pub(super) fn settle(&mut self) {
        self.elect();
        let was_synced = self.followed.synced_once;
        self.followed.settle(&self.peers, &mut self.leases, self.now);
        let is_shown = self.peers.iter().any(|peer| peer.search.at_end);
        if !was_synced && is_shown && self.leases.is_past_silence(self.now) {
            let chain = self.followed.chain.as_ref();
            let is_supported = chain.is_some_and(|chain| self.is_supported(chain.view()));
            self.followed.synced_once |= is_supported;
        }
        self.judge_restored();
        if self.followed.headers_first && self.is_synced() && !was_synced {
            // Requests that have waited for the head are sent at once.
            self.peers.iter_mut().for_each(SyncPeer::end_pause);
        }
        self.judge_by_bitcoin();
    }

    /// A stretch of the chain with less work than the work floor requires, if there is one. `None` for a window that no trusted block
    /// leads to, if Bitcoin's chain dates its work: then [`Self::low_dated_work`] decides, because the floor knows only a built-in
    /// difficulty.
    pub fn low_work(&self) -> Option<&crate::light::work_floor::LowWork> {
        let is_dated = self.untrusted_start().is_some() && self.dated_work().is_some();
        self.followed.floor.low().filter(|_| !is_dated)
    }

    /// Why synchronization has stopped, if every upstream failed.
    pub fn fault(&self) -> Option<&SyncFault> {
        if self.peers.iter().any(|peer| !peer.is_resting()) {
            return None;
        }
        self.peers.iter().find_map(|peer| match &peer.phase {
            Phase::Resting(_, fault) => Some(fault),
            _ => None,
        })
    }
}
