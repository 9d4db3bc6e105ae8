//! Asks upstreams for Bitcoin's chain: those that are Rootlights and follow it answer. These requests are not part of the phases:
//! an upstream is asked between them.

use alloc::{string::String, vec::Vec};

use super::{
    bitcoin_search::{BitcoinAsk, NextAsk},
    phase::Phase,
    state::HeaderSync,
};
use crate::light::{
    bitcoin::BitcoinFollower,
    record::LIE,
    upstream::{RequestFailure, UpstreamRequest, UpstreamResponse},
    upstream_fetch::METHOD_NOT_FOUND,
};

impl HeaderSync {
    /// Judges the followed chain by Bitcoin's from now on, as upstreams show it. Nothing happens if the network's Bitcoin chain
    /// is not known.
    pub fn follow_bitcoin_of_upstreams(&mut self) {
        let Some(network) = self.followed.network.bitcoin else { return };
        self.follow_bitcoin(BitcoinFollower::new(network));
        self.peers.iter_mut().for_each(|peer| peer.bitcoin.due = Some(0));
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
            Some(Err(RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. })) => None,
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
        true
    }
}
