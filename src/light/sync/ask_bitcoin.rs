//! Asks upstreams for Bitcoin's chain, which those that are Rootlights and follow that chain serve. These requests are not part of
//! the phases: each is sent together with the requests of a phase, or alone between two phases. `bitcoin_search` chooses the
//! requests and takes the responses.

use alloc::{string::String, sync::Arc, vec::Vec};

use super::{
    bitcoin_dates::BitcoinDates,
    bitcoin_search::{BitcoinAsk, NextAsk},
    options::SyncStep,
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
    /// Judges the followed chain, and windows, from `now` on by the Bitcoin chain that upstreams show. To be called before any other
    /// method. Nothing happens if the network's Bitcoin chain is not known.
    pub fn follow_bitcoin_of_upstreams(&mut self, now: Now) {
        let Some(network) = self.followed.network.bitcoin else { return };
        self.now = now;
        self.follow_bitcoin(BitcoinFollower::new(network));
        self.judge_windows_by(Arc::new(BitcoinDates::since(now)));
        // Each upstream is asked at once.
        self.peers.iter_mut().for_each(|peer| peer.bitcoin.due = Some(0));
    }

    /// Chooses the next request for Bitcoin's chain to an upstream, if one is due.
    pub(super) fn begin_bitcoin(&mut self, upstream: usize) {
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        let (search, tip) = (&mut peer.bitcoin, self.bitcoin.as_ref().and_then(|follower| follower.tip()));
        let is_due = search.due.is_some_and(|due| due <= self.now.millis);
        if search.asked.is_none() && is_due && matches!(peer.phase, Phase::Idle(_) | Phase::Resting(..)) {
            // Headers above our tip, or from the stored chain's tip on, or only the height of the upstream's tip.
            search.asked = Some(match (tip, &self.store.bitcoin.chain) {
                (Some(tip), _) => BitcoinAsk::headers(tip.height.saturating_add(1)),
                (None, Some(stored)) => BitcoinAsk::headers(stored.chain().tip().height),
                (None, None) => BitcoinAsk::TIP,
            });
        }
    }

    /// The request for Bitcoin's chain that an upstream has not answered yet, if it was sent without others.
    pub(super) fn lone_bitcoin(&self, upstream: usize) -> Option<UpstreamRequest> {
        let search = &self.peers.get(upstream)?.bitcoin;
        search.asked.filter(|_| search.is_alone).map(BitcoinAsk::request)
    }

    /// Adds the request for Bitcoin's chain to an upstream's next step, so that it costs no round trip of its own.
    pub(super) fn with_bitcoin(&mut self, upstream: usize, step: SyncStep) -> SyncStep {
        let Some(peer) = self.peers.get_mut(upstream).filter(|peer| !peer.is_resting()) else { return step };
        let Some(asked) = peer.bitcoin.asked else { return step };
        let (mut requests, is_alone) = match step {
            SyncStep::Fetch(requests) => (requests, false),
            SyncStep::Wait(_) => (Vec::new(), true),
        };
        peer.bitcoin.is_alone = is_alone;
        requests.push(asked.request());
        SyncStep::Fetch(requests)
    }

    /// Removes and takes the response about Bitcoin's chain, which is the last one. Returns whether there are other responses.
    pub(super) fn take_bitcoin(&mut self, upstream: usize, responses: &mut Vec<UpstreamResponse>) -> bool {
        let Some(search) = self.peers.get_mut(upstream).map(|peer| &mut peer.bitcoin) else { return false };
        let Some(asked) = search.asked.take() else { return true };
        let is_alone = core::mem::take(&mut search.is_alone);
        if let Some(response) = responses.pop() {
            self.take_bitcoin_response(upstream, asked, &response);
        }
        !is_alone
    }

    /// Takes the response to `asked`, and chooses the next request.
    fn take_bitcoin_response(&mut self, upstream: usize, asked: BitcoinAsk, response: &UpstreamResponse) {
        let (now, network) = (self.now, self.followed.network.bitcoin);
        let Some((peer, network)) = self.peers.get_mut(upstream).zip(network) else { return };
        // The client gives up Bitcoin's chain if no upstream has it, but an upstream may show it later.
        let given_up = self.bitcoin.is_none();
        let mut follower = self.bitcoin.take().unwrap_or_else(|| Arc::new(BitcoinFollower::new(network)));
        let next = match text_of(response, follower.tip().is_none()) {
            Ok(Some(text)) => {
                peer.bitcoin.take(asked, &text, &mut follower, &mut self.store.bitcoin, network, now)
            }
            Ok(None) => NextAsk::None,
            Err(Unanswered) => NextAsk::Pause,
        };
        match next {
            NextAsk::Ask(ask) => peer.bitcoin.asked = Some(ask),
            NextAsk::Pause => peer.bitcoin.pause(now),
            NextAsk::None => peer.bitcoin.pause_without(now),
            NextAsk::Lie(rule) => {
                peer.bitcoin.due = None;
                peer.source.record.failed();
                peer.source.record.bad(now, asked.request(), rule.into(), LIE);
            }
        }
        let has_none = follower.tip().is_none();
        self.bitcoin = Some(follower).filter(|_| !(given_up && has_none));
        if !given_up && has_none && self.peers.iter().all(|peer| peer.bitcoin.is_over()) {
            self.give_up_bitcoin();
        }
    }

    /// Gives up Bitcoin's chain, because no upstream has it: work cannot be dated, and proposals that were to be judged by dated
    /// work begin again. The chain that an earlier run stored is kept, because an upstream may show Bitcoin's chain later.
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

/// The response does not tell whether the upstream has a Bitcoin chain.
struct Unanswered;

/// The text of a response; `None` if the upstream has no Bitcoin chain. `is_first` says that no upstream has shown a block yet.
fn text_of(response: &UpstreamResponse, is_first: bool) -> Result<Option<String>, Unanswered> {
    match response {
        // A result that is no text, such as `null`, says that there is none.
        Ok(raw) => Ok(serde_json::from_str(raw.get()).ok().flatten()),
        Err(RequestFailure::NotRecorded) => Ok(None),
        // Nodes also refuse unknown methods with other error codes. After an upstream has shown its chain, such an error does not
        // mean that.
        Err(RequestFailure::Rpc { code, .. }) if *code == METHOD_NOT_FOUND || is_first => Ok(None),
        Err(_) => Err(Unanswered),
    }
}
