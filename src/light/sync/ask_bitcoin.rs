//! Asks upstreams for Bitcoin's chain: those that are Rootlights and follow it answer. These requests are not part of the phases:
//! an upstream is asked between them.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::{
    bitcoin_dates::BitcoinDates,
    bitcoin_search::{BitcoinAsk, NextAsk},
    phase::Phase,
    proposal::{ChainStart, Proposal, ProposalStage},
    state::HeaderSync,
};
use crate::light::{
    bitcoin::BitcoinFollower,
    clock::Now,
    record::LIE,
    upstream::{RequestFailure, UpstreamRequest, UpstreamResponse},
    upstream_fetch::METHOD_NOT_FOUND,
};

impl HeaderSync {
    /// Judges the followed chain, and windows, by Bitcoin's from `now` on, as upstreams show it. To be called before anything else
    /// is done. Nothing happens if the network's Bitcoin chain is not known.
    pub fn follow_bitcoin_of_upstreams(&mut self, now: Now) {
        let Some(network) = self.followed.network.bitcoin else { return };
        self.now = now;
        self.follow_bitcoin(BitcoinFollower::new(network));
        self.judge_windows_by(Arc::new(BitcoinDates::since(now)));
        self.peers.iter_mut().for_each(|peer| peer.bitcoin.due = Some(0));
    }

    /// Upstreams are asked for Bitcoin's headers at `time` at the earliest, on the monotonic clock.
    pub(super) fn hold_bitcoin_until(&mut self, time: u64) {
        self.peers.iter_mut().for_each(|peer| peer.bitcoin.not_before = time);
    }

    /// What an upstream is to be asked of Bitcoin's chain now. The same request is returned until it is answered.
    pub(super) fn ask_bitcoin(&mut self, upstream: usize) -> Option<Vec<UpstreamRequest>> {
        let (peer, follower) = (self.peers.get_mut(upstream)?, self.bitcoin.as_ref()?);
        let search = &mut peer.bitcoin;
        if search.asked.is_none() {
            if search.due? > self.now.millis || !matches!(peer.phase, Phase::Idle(_)) {
                return None;
            }
            search.asked = Some(match follower.tip() {
                Some(tip) => BitcoinAsk::headers(tip.height.saturating_add(1)),
                None => BitcoinAsk::TIP,
            });
        }
        Some(alloc::vec![search.asked?.request()])
    }

    /// Takes the response to [`Self::ask_bitcoin`]. Returns whether there was such a request.
    pub(super) fn take_bitcoin(&mut self, upstream: usize, responses: &[UpstreamResponse]) -> bool {
        let (now, network) = (self.now, self.followed.network.bitcoin);
        let Some((peer, follower)) = self.peers.get_mut(upstream).zip(self.bitcoin.as_mut()) else {
            return false;
        };
        let Some(asked) = peer.bitcoin.asked.take() else { return false };
        let text: Option<String> = match responses.first() {
            Some(Ok(raw)) => serde_json::from_str(raw.get()).ok().flatten(),
            Some(Err(RequestFailure::NotRecorded)) => None,
            // Nodes refuse unknown methods with other codes, too; that of a server which has shown its chain says nothing of that.
            Some(Err(RequestFailure::Rpc { code, .. }))
                if *code == METHOD_NOT_FOUND || follower.tip().is_none() =>
            {
                None
            }
            _ => {
                peer.bitcoin.pause(now);
                return true;
            }
        };
        let next = match text.zip(network) {
            Some((text, network)) => peer.bitcoin.take(asked, &text, follower, network, now),
            None => NextAsk::Never,
        };
        match next {
            NextAsk::Ask(ask) => peer.bitcoin.asked = Some(ask),
            NextAsk::Pause => peer.bitcoin.pause(now),
            NextAsk::Never => peer.bitcoin.due = None,
            NextAsk::Lie(rule) => {
                peer.bitcoin.due = None;
                peer.source.record.failed();
                peer.source.record.bad(now, asked.request(), rule.into(), LIE);
            }
        }
        let has_none = follower.tip().is_none();
        if has_none && self.peers.iter().all(|peer| peer.bitcoin.is_over()) {
            self.give_up_bitcoin();
        }
        true
    }

    /// No upstream has Bitcoin's chain: nothing dates work, and proposals for dated work begin again.
    fn give_up_bitcoin(&mut self) {
        self.bitcoin = None;
        let ChainStart::Elected { rule, proposals } = &mut self.start else { return };
        rule.dated = None;
        for (peer, proposal) in self.peers.iter_mut().zip(proposals) {
            if matches!(proposal.stage, ProposalStage::Height) {
                continue;
            }
            *proposal = Proposal::default();
            if !peer.is_resting() {
                peer.phase = Phase::Idle(0);
            }
        }
    }
}
