//! Who is asked, who rests, and why.

use alloc::{format, string::String, vec::Vec};

use super::{
    peer::{Capabilities, Phase},
    state::{Lease, Peer, Sync},
};
use crate::{
    consensus::ChainError,
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        record::{LIE, REFUTED, Record, SILENT},
        task::{Cause, METHOD_NOT_FOUND},
        upstream::{CallFailure, UpstreamCall},
    },
    types::sorted,
};

/// A chain this many blocks ahead of ours is fetched by one upstream at a time.
const BULK: u64 = 64;

/// Longest turn at fetching many headers, in milliseconds.
const LEASE: u64 = 10_000;

/// Pause of those who wait for their turn, in milliseconds.
pub(super) const LEASE_POLL: u64 = 500;

/// How long slow upstreams can keep the client from calling itself synchronized, in milliseconds.
pub(super) const PATIENCE: u64 = 30_000;

/// Pause before an upstream may propose again what was judged too light, in milliseconds: it costs thousands of headers.
const NEXT_PROPOSAL: u64 = 60_000;

/// How many blocks an upstream may be behind the head and still be asked first.
const LAG: u64 = 2;

/// How an upstream fared with a question for a fact.
#[derive(Debug, Clone)]
pub struct Observation {
    /// The upstream, by number.
    pub upstream: usize,
    /// The first question of the attempt.
    pub call: UpstreamCall,
    /// Proven, with the block whose state it was, or why not.
    pub outcome: Result<Option<u64>, Cause>,
}

/// One upstream, for the listing.
#[derive(Debug, Clone)]
pub struct UpstreamState {
    /// The height it announced last.
    pub announced: Option<u64>,
    /// Why it is left alone now, and for how many milliseconds more.
    pub resting: Option<(u64, SyncFault)>,
    /// Its conduct.
    pub record: Record,
    /// What it offers.
    pub can: Capabilities,
}

impl Capabilities {
    /// Learns from how an upstream fared with a question. Returns what it did wrong, and how much that weighs.
    fn learn(&mut self, call: &UpstreamCall, outcome: Result<Option<u64>, Cause>) -> Option<(String, u32)> {
        let proof = call.method == "eth_getProof";
        if call.method.ends_with("Witness") {
            match &outcome {
                Ok(_) => self.witness = Some(true),
                Err(Cause::Call(CallFailure::Rpc { .. } | CallFailure::NotRecorded)) => {
                    // Who gave one before can do it, only not of this.
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
            // "There is none" is no offence where nothing says that there is one.
            Err(Cause::Denied) => None,
            Err(Cause::NoAbsence(_)) => {
                self.absence = Some(false);
                None
            }
            Err(Cause::Call(CallFailure::Rpc { code: METHOD_NOT_FOUND, .. })) => {
                self.proofs = if proof { Some(false) } else { self.proofs };
                None
            }
            Err(cause @ Cause::Refuted(_)) => {
                // A block's hash has one block behind it. An object of a transaction may hide part of it.
                let by_hash = call.method.contains("ByHash") && !call.method.contains("Transaction");
                Some((format!("{cause}"), if by_hash { LIE } else { REFUTED }))
            }
            Err(cause) => Some((format!("{cause}"), SILENT)),
        }
    }
}

impl Sync {
    /// The upstreams that are not resting.
    pub(super) fn healthy(&self) -> Vec<usize> {
        let peers = self.peers.iter().enumerate();
        peers.filter(|(_, peer)| !peer.is_resting()).map(|(index, _)| index).collect()
    }

    /// Whom to ask for facts, best first; those that are resting last, for what nobody else can prove.
    pub fn roster(&self) -> Vec<usize> {
        let head = self.head_number();
        let standing = |index: &usize| {
            self.peers.get(*index).map(|peer| {
                // Questions are about the heaviest chain: a longer branch of less work is of no use.
                let behind = peer.announced.is_none_or(|own| own.saturating_add(LAG) < head)
                    || self.side_branch(*index).is_some();
                let unable = peer.can.proofs == Some(false);
                (peer.record.lies, behind, unable, peer.record.demerits / 4, peer.record.latency / 64)
            })
        };
        let mut order: Vec<usize> = (0..self.peers.len()).collect();
        let rests = |index: &usize| self.peers.get(*index).is_some_and(Peer::is_resting);
        let lied = |index: &usize| {
            let phase = self.peers.get(*index).map(|peer| &peer.phase);
            matches!(phase, Some(Phase::Resting(_, fault)) if fault.cause.is_lie())
        };
        if !order.iter().all(lied) {
            order.retain(|index| !lied(index));
        }
        let order = sorted(order.into_iter().map(|index| (rests(&index), standing(&index), index)));
        order.into_iter().map(|(_, _, index)| index).collect()
    }

    /// Every upstream's standing, in the host's order.
    pub fn upstreams(&self) -> Vec<UpstreamState> {
        let state = |peer: &Peer| UpstreamState {
            announced: peer.announced,
            resting: match &peer.phase {
                Phase::Resting(until, fault) => Some((until.saturating_sub(self.now.millis), fault.clone())),
                _ => None,
            },
            record: peer.record.clone(),
            can: peer.can.clone(),
        };
        self.peers.iter().map(state).collect()
    }

    /// Leaves an upstream alone for a while; what it was to fetch is open to others.
    pub(super) fn rest(&mut self, upstream: usize, fault: SyncFault) {
        self.backlog.release(upstream);
        self.below.release(upstream);
        self.drop_lease(upstream);
        let lie = fault.cause.is_lie();
        let beyond = matches!(fault.cause, SyncCause::Header(ChainError::UpdateNeeded { .. }));
        if !beyond {
            let params = format!(r#"["{:#x}",false]"#, fault.number);
            let call = UpstreamCall::new("eth_getBlockByNumber", params);
            self.note(upstream, call, format!("{}", fault.cause), if lie { LIE } else { SILENT });
        }
        let asked = match &fault.cause {
            SyncCause::Call(CallFailure::Busy { seconds: Some(seconds) }) => seconds.saturating_mul(1_000),
            _ => 0,
        };
        let by_work = self.is_by_work();
        let Some(peer) = self.peers.get_mut(upstream) else { return };
        peer.at_end = false;
        let doublings = peer.record.in_row.saturating_sub(1).min(10);
        let pause = self.options.retry.saturating_mul(1 << doublings);
        // Others can do without a liar for long; one that is needed is tried again soon.
        // What an upstream proposes in a start by work is thousands of headers: now and then only.
        let unlinked = matches!(fault.cause, SyncCause::Unlinked);
        let proposed = by_work && unlinked && self.now.millis < peer.moved.saturating_add(NEXT_PROPOSAL);
        let light = matches!(fault.cause, SyncCause::TooLittleWork(_));
        let pause = if proposed || light { pause.max(NEXT_PROPOSAL) } else { pause };
        peer.apart |= unlinked;
        let pause = if lie && self.peers.len() > 1 { self.options.longest_retry } else { pause.max(asked) };
        let until = self.now.plus(pause.min(self.options.longest_retry));
        self.set_phase(upstream, Phase::Resting(until, fault));
        // A new turn begins for those who had none to give.
        if self.healthy().is_empty() {
            self.below.forget_refusals();
        }
    }

    /// Writes down what an upstream did wrong.
    pub(super) fn note(
        &mut self,
        upstream: usize,
        call: UpstreamCall,
        rule: alloc::string::String,
        weight: u32,
    ) {
        if let Some(peer) = self.peers.get_mut(upstream) {
            peer.record.bad(self.now, call, rule, weight);
        }
    }

    /// The last moment the host told.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Takes over how upstreams fared with questions for facts.
    pub fn observe(&mut self, observations: impl IntoIterator<Item = Observation>) {
        for Observation { upstream, call, outcome } in observations {
            let Some(peer) = self.peers.get_mut(upstream) else { continue };
            let Some((rule, weight)) = peer.can.learn(&call, outcome) else { continue };
            peer.record.bad(self.now, call, rule.clone(), weight);
            if weight >= REFUTED
                && peer.record.is_dishonest()
                && !peer.is_resting()
                && self.healthy().len() > 1
            {
                let fault = SyncFault { number: self.head_number(), cause: SyncCause::Dishonest(rule) };
                self.rest(upstream, fault);
            }
        }
    }

    pub(super) fn forget_refusals(&mut self) {
        self.below.forget_refusals();
        self.peers.iter_mut().for_each(|peer| peer.no_uncles = false);
    }

    /// Whether fetching up to this height is a matter for one at a time.
    pub(super) fn is_bulk(&self, height: u64) -> bool {
        self.peers.len() > 1 && height > self.head_number().saturating_add(BULK)
    }

    /// Takes the turn at fetching many headers if nobody has it and nobody else should.
    pub(super) fn take_lease(&mut self, upstream: usize) -> bool {
        let now = self.now;
        let over = |lease: &Lease| lease.holder == upstream || now.millis > lease.began.saturating_add(LEASE);
        if self.lease.as_ref().is_some_and(|lease| !over(lease)) {
            return false;
        }
        self.finish_lease();
        // The fastest so far; each gets one turn to show its speed.
        let rate = |peer: &Peer| peer.record.rate.unwrap_or(u64::MAX);
        let ready = |peer: &Peer| peer.announced.is_some_and(|height| self.is_bulk(height));
        let own = self.peers.get(upstream).map_or(0, rate);
        let faster =
            self.peers.iter().filter(|peer| !peer.is_resting() && ready(peer)).any(|p| rate(p) > own);
        if faster {
            return false;
        }
        self.lease = Some(Lease { holder: upstream, began: now.millis, headers: 0 });
        true
    }

    /// Counts the headers that a window brought.
    pub(super) fn count(&mut self, upstream: usize, before: u64) {
        let gained = self.head_number().saturating_sub(before);
        let asked = self.peers.get(upstream).map_or(self.now.millis, |peer| peer.asked);
        self.meter.count(gained, asked, self.now);
        if let Some(lease) = self.lease.as_mut().filter(|lease| lease.holder == upstream) {
            lease.headers = lease.headers.saturating_add(gained);
        }
    }

    /// Whether an upstream's turn is over and others wait for theirs.
    pub(super) fn lease_is_over(&mut self, upstream: usize) -> bool {
        let now: Now = self.now;
        let over = |lease: &Lease| now.millis > lease.began.saturating_add(LEASE);
        match &self.lease {
            Some(lease) if lease.holder == upstream && over(lease) => {
                self.finish_lease();
                true
            }
            // Somebody else has the turn now.
            Some(lease) if lease.holder != upstream => {
                let announced = self.peers.get(upstream).and_then(|peer| peer.announced);
                announced.is_some_and(|height| self.is_bulk(height))
            }
            _ => false,
        }
    }

    pub(super) fn drop_lease(&mut self, upstream: usize) {
        if self.lease.is_some_and(|lease| lease.holder == upstream) {
            self.finish_lease();
        }
    }

    /// Ends the present turn and remembers how fast it went.
    fn finish_lease(&mut self) {
        let Some(lease) = self.lease.take() else { return };
        let elapsed = self.now.millis.saturating_sub(lease.began).max(1);
        if let Some(peer) = self.peers.get_mut(lease.holder) {
            peer.record.rate = lease.headers.saturating_mul(1_000).checked_div(elapsed);
        }
    }

    pub(super) fn learn_binary(&mut self, upstream: usize, offered: bool) {
        if let Some(peer) = self.peers.get_mut(upstream) {
            peer.can.headers = Some(offered);
        }
    }

    /// Whether every upstream has shown all it has, failed, or kept us waiting for too long.
    pub(super) fn all_seen(&mut self) -> bool {
        if !self.peers.iter().any(|peer| peer.at_end) {
            return false;
        }
        let since = *self.first_end.get_or_insert(self.now.millis);
        let late = self.now.millis > since.saturating_add(PATIENCE) && self.lease.is_none();
        late || self.peers.iter().all(|peer| peer.at_end || peer.is_resting())
    }
}
