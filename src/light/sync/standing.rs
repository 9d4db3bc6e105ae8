//! Which upstreams are asked and which rest, and why.

use alloc::{format, string::String, vec::Vec};

use super::{
    peer::{Capabilities, Phase},
    state::{HeaderSync, Lease, Peer},
};
use crate::{
    consensus::ChainError,
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        record::{LIE, REFUTED, Record, SILENT},
        upstream::{RequestFailure, UpstreamRequest},
        upstream_fetch::{Cause, METHOD_NOT_FOUND},
    },
};

/// If a chain is more than this many blocks ahead of ours, one upstream at a time fetches it.
const BULK: u64 = 64;

/// Longest turn at fetching many headers, in milliseconds.
const LEASE: u64 = 10_000;

/// Pause of upstreams that wait for their turn, in milliseconds.
pub(super) const LEASE_POLL: u64 = 500;

/// How long slow upstreams can delay the moment when the client counts as synchronized, in milliseconds.
pub(super) const PATIENCE: u64 = 30_000;

/// Pause before an upstream may propose a start again after one that was judged too light, in milliseconds: a proposal
/// costs thousands of headers.
const NEXT_PROPOSAL: u64 = 60_000;

/// Longest pause of upstreams that did not answer while no other can be asked, in milliseconds: nothing is answered until
/// one of them is tried again.
const ALONE: u64 = 30_000;

/// Blocks that an upstream may be behind the head and still be asked first.
const LAG: u64 = 2;

/// What upstreams are ordered by, best first: whether they rest; then the lies, whether it lags or cannot prove state, its
/// demerits and its latency, in steps.
type Standing = (bool, Option<(u32, bool, bool, u32, u64)>);

/// The outcome of a request for a fact to an upstream.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The upstream, by number.
    pub upstream: usize,
    /// The first request of the attempt.
    pub request: UpstreamRequest,
    /// `Ok` if the fact was proven, with the block whose state it belongs to; otherwise the cause.
    pub outcome: Result<Option<u64>, Cause>,
}

/// The state of one upstream, as reported to users.
#[derive(Debug, Clone)]
pub struct UpstreamState {
    /// Who answers now, if sources take each other's place ([`HeaderSync::replace`]).
    pub name: Option<String>,
    /// How many sources have answered before.
    pub turn: u64,
    /// The height it announced last.
    pub announced: Option<u64>,
    /// If it is resting: for how many milliseconds more, and why.
    pub resting: Option<(u64, SyncFault)>,
    /// Its record.
    pub record: Record,
    /// What it offers.
    pub can: Capabilities,
}

impl Capabilities {
    /// Learns from the outcome of a request. Returns what the upstream did wrong, and the demerits for it.
    fn learn(
        &mut self,
        request: &UpstreamRequest,
        outcome: Result<Option<u64>, Cause>,
    ) -> Option<(String, u32)> {
        let proof = request.method == "eth_getProof";
        if request.method.ends_with("Witness") {
            match &outcome {
                Ok(_) => self.witness = Some(true),
                Err(Cause::Call(RequestFailure::Rpc { .. } | RequestFailure::NotRecorded)) => {
                    // An upstream that gave a witness before has the method, but not this witness.
                    self.witness.get_or_insert(false);
                    return None;
                }
                Err(_) => {}
            }
        }
        match outcome {
            Ok(block) => {
                if let Some(block) = block.filter(|_| proof) {
                    self.proofs = Some(true);
                    self.oldest_state = Some(self.oldest_state.unwrap_or(block).min(block));
                }
                None
            }
            // "There is none" is not a fault if nothing shows that the fact exists. A request that was not sent and a
            // response that was not read say nothing.
            Err(Cause::Denied | Cause::Call(RequestFailure::Unasked(_) | RequestFailure::NoRoom)) => None,
            Err(Cause::NoAbsence(_)) => {
                self.absence = Some(false);
                None
            }
            Err(Cause::Call(RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. })) => {
                self.proofs = if proof { Some(false) } else { self.proofs };
                None
            }
            Err(cause @ Cause::Call(RequestFailure::False(_))) => Some((format!("{cause}"), LIE)),
            Err(cause @ Cause::Refuted(_)) => {
                // Only one block has the hash that was named. A transaction object may hide part of the transaction.
                let by_hash = request.method.contains("ByHash") && !request.method.contains("Transaction");
                Some((format!("{cause}"), if by_hash { LIE } else { REFUTED }))
            }
            Err(cause) => Some((format!("{cause}"), SILENT)),
        }
    }
}

impl HeaderSync {
    /// The upstreams that are not resting.
    pub(super) fn healthy(&self) -> Vec<usize> {
        let peers = self.peers.iter().enumerate();
        peers.filter(|(_, peer)| !peer.is_resting()).map(|(index, _)| index).collect()
    }

    /// Whether an upstream is left alone for a while, because it failed, lied or asked for a pause.
    pub fn is_resting(&self, upstream: usize) -> bool {
        self.peers.get(upstream).is_some_and(Peer::is_resting)
    }

    /// The upstreams to ask for facts, best first. Resting ones come last, for facts that no other can prove. Those
    /// that rest because of a lie are left out, unless all do.
    pub fn roster(&self) -> Vec<usize> {
        self.ranked().into_iter().map(|(_, upstream)| upstream).collect()
    }

    /// As [`Self::roster`], but those that are as good as the best take turns at being the first.
    #[cfg(feature = "hosted")]
    pub fn roster_in_turn(&self, turn: u64) -> Vec<usize> {
        let ranked = self.ranked();
        let best = ranked.first().map(|(standing, _)| *standing);
        let equal = ranked.iter().take_while(|(standing, _)| Some(*standing) == best).count();
        let mut roster: Vec<usize> = ranked.into_iter().map(|(_, upstream)| upstream).collect();
        let first = turn.checked_rem(equal as u64).unwrap_or(0) as usize;
        if let Some(best) = roster.get_mut(..equal) {
            best.rotate_left(first);
        }
        roster
    }

    /// The upstreams to ask with their standings, best first.
    fn ranked(&self) -> Vec<(Standing, usize)> {
        let head = self.line.head_number();
        let standing = |index: &usize| {
            self.peers.get(*index).map(|peer| {
                // Requests are about the heaviest chain: an upstream on a longer branch of less work does not help.
                let behind = peer.source.announced.is_none_or(|own| own.saturating_add(LAG) < head)
                    || self.side_branch(*index).is_some();
                let unable = peer.source.can.proofs == Some(false);
                (
                    peer.source.record.lies,
                    behind,
                    unable,
                    peer.source.record.demerits / 4,
                    peer.source.record.latency / 64,
                )
            })
        };
        let mut order: Vec<usize> = (0..self.peers.len()).collect();
        let lied = |index: &usize| {
            let phase = self.peers.get(*index).map(|peer| &peer.phase);
            matches!(phase, Some(Phase::Resting(_, fault)) if fault.cause.is_lie())
        };
        if !order.iter().all(lied) {
            order.retain(|index| !lied(index));
        }
        let mut ranked: Vec<_> =
            order.into_iter().map(|index| ((self.is_resting(index), standing(&index)), index)).collect();
        ranked.sort();
        ranked
    }

    /// The state of each upstream, in the host's order.
    pub fn upstreams(&self) -> Vec<UpstreamState> {
        let state = |peer: &Peer| UpstreamState {
            name: peer.source.name.clone(),
            turn: peer.source.turn,
            announced: peer.source.announced,
            resting: match &peer.phase {
                Phase::Resting(until, fault) => Some((until.saturating_sub(self.now.millis), fault.clone())),
                _ => None,
            },
            record: peer.source.record.clone(),
            can: peer.source.can.clone(),
        };
        self.peers.iter().map(state).collect()
    }

    /// Lets an upstream rest for a while. What it was fetching is open to others.
    pub(super) fn rest(&mut self, upstream: usize, fault: SyncFault) {
        self.line.release(upstream);
        self.drop_lease(upstream);
        let lie = fault.cause.is_lie();
        let beyond = matches!(fault.cause, SyncCause::Header(ChainError::UpdateNeeded { .. }));
        // A host without room says nothing about the upstream.
        let unread = matches!(fault.cause, SyncCause::Call(RequestFailure::NoRoom));
        if !beyond && !unread {
            let params = format!(r#"["{:#x}",false]"#, fault.number);
            let request = UpstreamRequest::new("eth_getBlockByNumber", params);
            self.note(upstream, request, format!("{}", fault.cause), if lie { LIE } else { SILENT });
        }
        let asked = match &fault.cause {
            SyncCause::Call(RequestFailure::Busy { seconds: Some(seconds) }) => seconds.saturating_mul(1_000),
            _ => 0,
        };
        let by_work = self.is_by_work();
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        peer.search.at_end = false;
        let doublings = peer.source.record.in_row.saturating_sub(1).min(10);
        let pause = self.options.retry.saturating_mul(1 << doublings);
        // A liar rests for long if there are other upstreams; the only one is tried again soon. A proposal in a start
        // by work costs thousands of headers, so it may be repeated only now and then.
        let unlinked = matches!(fault.cause, SyncCause::Unlinked);
        let proposed = by_work && unlinked && self.now.millis < peer.moved.saturating_add(NEXT_PROPOSAL);
        let light = matches!(fault.cause, SyncCause::TooLittleWork(_));
        let pause = if proposed || light { pause.max(NEXT_PROPOSAL) } else { pause };
        peer.apart |= unlinked;
        let pause = if lie && self.peers.len() > 1 { self.options.longest_retry } else { pause.max(asked) };
        let until = self.now.plus(pause.min(self.options.longest_retry));
        self.set_phase(upstream, Phase::Resting(until, fault));
        if self.healthy().is_empty() {
            self.shorten_rests();
            // The backfill is tried again with the upstreams that did not have its blocks.
            self.line.backfill.forget_refusals();
        }
    }

    /// Ends the rests of upstreams that did not answer after [`ALONE`] at the latest, or after the pause that they asked for.
    fn shorten_rests(&mut self) {
        for peer in &mut self.peers {
            let Phase::Resting(until, fault) = &mut peer.phase else { continue };
            let asked = match &fault.cause {
                SyncCause::Call(RequestFailure::Busy { seconds }) => {
                    seconds.unwrap_or(0).saturating_mul(1_000)
                }
                SyncCause::Call(RequestFailure::Transport(_) | RequestFailure::NoRoom) => 0,
                _ => continue,
            };
            *until = (*until).min(self.now.plus(asked.max(ALONE)));
        }
    }

    /// Records what an upstream did wrong.
    pub(super) fn note(
        &mut self,
        upstream: usize,
        request: UpstreamRequest,
        rule: alloc::string::String,
        weight: u32,
    ) {
        if let Some(peer) = self.peers.get_mut(upstream) {
            peer.source.record.failed();
            peer.source.record.bad(self.now, request, rule, weight);
        }
    }

    /// The time that the host passed in last.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Notes that another source, of this name, answers in an upstream's place from now on. It starts with a clean
    /// record; what the earlier one was fetching is open to all. To be called between two exchanges of the upstream.
    pub fn replace(&mut self, upstream: usize, name: String) {
        self.line.release(upstream);
        self.line.backfill.readmit(upstream);
        self.drop_lease(upstream);
        if let Some(peer) = self.peers.get_mut(upstream) {
            let turn = peer.source.turn.saturating_add(1);
            *peer = Peer::new();
            (peer.source.name, peer.source.turn) = (Some(name), turn);
        }
    }

    /// Takes over the outcomes of requests of a session, during which upstreams were at these turns. What it says of a
    /// source that has been replaced since is dropped.
    pub fn observe_since(&mut self, turns: &[u64], observations: impl IntoIterator<Item = Observation>) {
        let present: Vec<u64> = self.peers.iter().map(|peer| peer.source.turn).collect();
        let is_present = |seen: &Observation| turns.get(seen.upstream) == present.get(seen.upstream);
        self.observe(observations.into_iter().filter(is_present));
    }

    /// Takes over the outcomes of requests for facts.
    pub fn observe(&mut self, observations: impl IntoIterator<Item = Observation>) {
        for Observation { upstream, request, outcome } in observations {
            let Some(peer) = self.peers.get_mut(upstream) else { continue };
            let Some((rule, weight)) = peer.source.can.learn(&request, outcome) else { continue };
            peer.source.record.bad(self.now, request, rule.clone(), weight);
            if weight >= REFUTED
                && peer.source.record.is_dishonest()
                && !peer.is_resting()
                && self.healthy().len() > 1
            {
                let fault = SyncFault { number: self.line.head_number(), cause: SyncCause::Dishonest(rule) };
                self.rest(upstream, fault);
            }
        }
    }

    pub(super) fn forget_refusals(&mut self) {
        self.line.backfill.forget_refusals();
        self.peers.iter_mut().for_each(|peer| peer.source.no_uncles = false);
    }

    /// Whether only one upstream at a time fetches headers up to this height.
    pub(super) fn is_bulk(&self, height: u64) -> bool {
        self.peers.len() > 1 && height > self.line.head_number().saturating_add(BULK)
    }

    /// Takes the turn at fetching many headers if no other upstream has it or should have it first.
    pub(super) fn take_lease(&mut self, upstream: usize) -> bool {
        let now = self.now;
        let over = |lease: &Lease| lease.holder == upstream || now.millis > lease.began.saturating_add(LEASE);
        if self.turns.lease.as_ref().is_some_and(|lease| !over(lease)) {
            return false;
        }
        self.finish_lease();
        // The fastest upstream goes first; each gets one turn to show its speed.
        let rate = |peer: &Peer| peer.source.record.rate.unwrap_or(u64::MAX);
        let ready = |peer: &Peer| peer.source.announced.is_some_and(|height| self.is_bulk(height));
        let own = self.peers.get(upstream).map_or(0, rate);
        let faster =
            self.peers.iter().filter(|peer| !peer.is_resting() && ready(peer)).any(|p| rate(p) > own);
        if faster {
            return false;
        }
        self.turns.lease = Some(Lease { holder: upstream, began: now.millis, headers: 0 });
        true
    }

    /// Counts the headers that a window added to the chain.
    pub(super) fn count(&mut self, upstream: usize, before: u64) {
        let gained = self.line.head_number().saturating_sub(before);
        let asked = self.peers.get(upstream).map_or(self.now.millis, |peer| peer.asked);
        self.line.meter.count(gained, asked, self.now);
        if let Some(lease) = self.turns.lease.as_mut().filter(|lease| lease.holder == upstream) {
            lease.headers = lease.headers.saturating_add(gained);
        }
    }

    /// Whether an upstream's turn is over and others wait for theirs.
    pub(super) fn lease_is_over(&mut self, upstream: usize) -> bool {
        let now: Now = self.now;
        let over = |lease: &Lease| now.millis > lease.began.saturating_add(LEASE);
        match &self.turns.lease {
            Some(lease) if lease.holder == upstream && over(lease) => {
                self.finish_lease();
                true
            }
            // Another upstream has the turn now.
            Some(lease) if lease.holder != upstream => {
                let announced = self.peers.get(upstream).and_then(|peer| peer.source.announced);
                announced.is_some_and(|height| self.is_bulk(height))
            }
            _ => false,
        }
    }

    pub(super) fn drop_lease(&mut self, upstream: usize) {
        if self.turns.lease.is_some_and(|lease| lease.holder == upstream) {
            self.finish_lease();
        }
    }

    /// Ends the present turn and remembers how fast it went.
    fn finish_lease(&mut self) {
        let Some(lease) = self.turns.lease.take() else { return };
        let elapsed = self.now.millis.saturating_sub(lease.began).max(1);
        if let Some(peer) = self.peers.get_mut(lease.holder) {
            peer.source.record.rate = lease.headers.saturating_mul(1_000).checked_div(elapsed);
        }
    }

    pub(super) fn learn_binary(&mut self, upstream: usize, offered: bool) {
        if let Some(peer) = self.peers.get_mut(upstream) {
            peer.source.can.headers = Some(offered);
        }
    }

    /// Whether every upstream has shown all of its headers, failed, or taken too long.
    pub(super) fn all_seen(&mut self) -> bool {
        if !self.peers.iter().any(|peer| peer.search.at_end) {
            return false;
        }
        let since = *self.turns.first_end.get_or_insert(self.now.millis);
        let late = self.now.millis > since.saturating_add(PATIENCE) && self.turns.lease.is_none();
        late || self.peers.iter().all(|peer| peer.search.at_end || peer.is_resting())
    }
}
