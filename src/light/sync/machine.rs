//! The interface of the machine for hosts.

use alloc::{sync::Arc, vec::Vec};

use super::{
    peer::{Goal, Phase, Work},
    state::{HeaderSync, Peer, SyncStep},
};
use crate::{
    consensus::{Checkpoint, HeaderChain, Network},
    light::{
        clock::Now,
        fault::SyncFault,
        header_window::HeaderWindow,
        meter::Progress,
        upstream::{UpstreamRequest, UpstreamResponse},
    },
};

impl HeaderSync {
    /// Sets the most headers of one window; 0 counts as 1.
    pub fn set_batch(&mut self, batch: usize) {
        self.options.batch = batch;
    }

    /// The verified chain; `None` until the checkpoint's header has arrived.
    pub fn chain(&self) -> Option<&HeaderChain> {
        self.line.chain.as_ref()
    }

    /// The network that the machine follows.
    pub fn network(&self) -> &Arc<Network> {
        &self.line.network
    }

    /// The block that the chain starts at.
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.line.checkpoint
    }

    /// Height of the checkpoint.
    pub fn start(&self) -> u64 {
        self.line.checkpoint.number
    }

    /// The number of the highest block that an upstream in good standing announces. Announcing a height costs nothing,
    /// so once the head was reached it counts only up to the newest verified header from the same upstream.
    pub fn announced(&self) -> u64 {
        let most = |peer: &Peer| if self.line.synced_once { self.shown(peer) } else { u64::MAX };
        let healthy = self.peers.iter().filter(|peer| !peer.is_resting());
        healthy.filter_map(|peer| Some(peer.source.announced?.min(most(peer)))).max().unwrap_or(0)
    }

    /// The height of the newest header accepted from an upstream; 0 without one.
    fn shown(&self, peer: &Peer) -> u64 {
        let newest = peer.search.at.and_then(|at| self.line.chain.as_ref()?.by_hash(&at));
        newest.map_or(0, |header| header.number)
    }

    /// Whether the head has been reached at least once.
    pub fn is_synced(&self) -> bool {
        self.line.synced_once
    }

    /// Whether the head was reached and no uncles are pending: total difficulties are then as exact as they can be.
    pub fn is_settled(&self) -> bool {
        self.line.synced_once && self.line.backlog.is_empty()
    }

    /// Progress of synchronization.
    pub fn progress(&self) -> Progress {
        if let Some(progress) = self.progress_of_proposals() {
            return progress;
        }
        self.line.meter.progress(
            self.store.resumed.unwrap_or(self.start()),
            self.line.head_number(),
            self.announced(),
        )
    }

    /// The next step for an upstream. The same requests are returned until they are answered.
    pub fn next(&mut self, upstream: usize, now: Now) -> SyncStep {
        self.now = now;
        let Some(peer) = self.peers.get(upstream) else { return SyncStep::Wait(self.options.poll) };
        if let Phase::Idle(due) | Phase::Resting(due, _) = &peer.phase {
            if *due > now.millis {
                return SyncStep::Wait(due.saturating_sub(now.millis));
            }
            let phase = self.begin(upstream);
            self.set_phase(upstream, phase);
        }
        self.elect();
        let Some(peer) = self.peers.get_mut(upstream) else { return SyncStep::Wait(self.options.poll) };
        peer.asked = now.millis;
        match &peer.phase {
            Phase::Propose => self.next_of_proposal(upstream),
            Phase::Height => {
                SyncStep::Fetch(alloc::vec![UpstreamRequest::new("eth_blockNumber", "[]".into())])
            }
            Phase::Work(work) => SyncStep::Fetch(work.requests()),
            Phase::Idle(due) | Phase::Resting(due, _) => SyncStep::Wait(due.saturating_sub(now.millis)),
        }
    }

    /// The phase in which an upstream's turn begins.
    fn begin(&self, upstream: usize) -> Phase {
        match self.line.chain {
            _ if self.proposes(upstream) => Phase::Propose,
            Some(_) => Phase::Height,
            None => {
                let window =
                    HeaderWindow::single(self.line.checkpoint.number).in_binary(self.binary(upstream));
                Work::headers(Goal::Base, window)
            }
        }
    }

    pub(super) fn binary(&self, upstream: usize) -> bool {
        self.peers.get(upstream).is_some_and(|peer| peer.source.can.headers != Some(false))
    }

    pub(super) fn set_phase(&mut self, upstream: usize, phase: Phase) {
        if let Some(peer) = self.peers.get_mut(upstream) {
            peer.phase = phase;
        }
    }

    /// Makes an upstream due at once, or after the exchange that is under way, because it reports that there are new
    /// blocks. One that is left alone after a fault stays so.
    pub fn hint(&mut self, upstream: usize) {
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        match &mut peer.phase {
            Phase::Idle(due) => *due = 0,
            Phase::Resting(..) => {}
            Phase::Height | Phase::Propose | Phase::Work(_) => peer.hinted = true,
        }
    }

    /// Makes every upstream due at once.
    pub fn poll(&mut self) {
        for peer in &mut self.peers {
            if let Phase::Idle(due) | Phase::Resting(due, _) = &mut peer.phase {
                *due = 0;
            }
        }
        self.forget_refusals();
    }

    /// Takes the responses to the requests of an upstream's last [`SyncStep::Fetch`], in order.
    pub fn feed(&mut self, upstream: usize, responses: Vec<UpstreamResponse>, now: Now) {
        self.now = now;
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        let elapsed = now.millis.saturating_sub(peer.asked);
        let phase = core::mem::replace(&mut peer.phase, Phase::Idle(now.millis));
        let failures = responses.iter().filter(|response| response.is_err()).count();
        if failures == 0 {
            peer.source.record.good(elapsed);
        }
        let next = match phase {
            Phase::Height => self.feed_height(upstream, &responses),
            Phase::Work(work) => self.feed_work(upstream, work, responses, elapsed),
            Phase::Propose => self.feed_proposal(upstream, responses),
            same @ (Phase::Idle(_) | Phase::Resting(..)) => Ok(same),
        };
        match next {
            Ok(phase) => self.set_phase(upstream, phase),
            Err(fault) => self.rest(upstream, fault),
        }
        if let Some(Peer { phase: Phase::Idle(due), hinted, .. }) = self.peers.get_mut(upstream)
            && core::mem::take(hinted)
        {
            *due = 0;
        }
        self.settle();
    }

    /// Updates everything that depends on new data: uncles, the work floor, whether the head is reached.
    pub(super) fn settle(&mut self) {
        self.elect();
        self.attach_ready();
        self.line.judge_work();
        if !self.line.synced_once {
            self.line.synced_once = self.line.chain.is_some() && self.all_seen();
        }
    }

    /// A stretch of the chain with less work than the floor requires, if there is one.
    pub fn low_work(&self) -> Option<&crate::light::floor::LowWork> {
        self.line.floor.low()
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
