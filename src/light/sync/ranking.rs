//! The order in which upstreams are asked for facts, and what the outcomes of such requests add to their records.

use alloc::{format, string::String, vec::Vec};

use super::{
    peer::{Capabilities, SyncPeer},
    phase::Phase,
    proposal::Proposal,
    state::HeaderSync,
};
use crate::{
    light::{
        clock::Now,
        fault::{SyncCause, SyncFault},
        record::{LIE, REFUTED, SILENT, UpstreamRecord},
        upstream::{RequestFailure, UpstreamRequest},
        upstream_fetch::{Cause, METHOD_NOT_FOUND},
    },
    types::insert_sorted,
};

/// Blocks that an upstream may be behind the head and still be asked first: upstreams do not get a new block at the same time.
const LAG: u64 = 2;

/// The rank of an upstream; the lowest is asked first. In order: whether it rests, its number of lies, whether it is behind, whether
/// it cannot prove state, its demerits in steps of 4, its latency in steps of 64 ms. Steps keep small differences from deciding.
type UpstreamRank = (bool, u32, bool, bool, u32, u64);

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
    /// The name of the present source, if sources replace each other ([`HeaderSync::replace`]).
    pub name: Option<String>,
    /// How many sources have been this upstream before the present one.
    pub source_generation: u64,
    /// The height that the upstream announced last.
    pub announced: Option<u64>,
    /// If the upstream rests: for how many milliseconds more, and why.
    pub resting: Option<(u64, SyncFault)>,
    /// Speed, failures and wrong responses so far.
    pub record: UpstreamRecord,
    /// The kinds of requests that the upstream answers.
    pub can: Capabilities,
}

impl Capabilities {
    /// Learns from the outcome of a request. Returns the rule that the upstream broke, if it did, and the demerits for it.
    fn learn(
        &mut self,
        request: &UpstreamRequest,
        outcome: Result<Option<u64>, Cause>,
    ) -> Option<(String, u32)> {
        let is_proof = request.method == "eth_getProof";
        if request.method.ends_with("Witness") {
            match &outcome {
                Ok(_) => self.witness = Some(true),
                Err(Cause::Call(RequestFailure::Rpc { .. } | RequestFailure::NotRecorded)) => {
                    // An upstream that gave a witness before has the method, but not this witness.
                    self.witness.get_or_insert(false);
                    return None;
                }
                // Other failures do not tell whether the upstream has the method.
                Err(_) => {}
            }
        }
        match outcome {
            Ok(block) => {
                // An upstream may have only `rsk_getProof`, which is requested after `eth_getProof`.
                if let Some(block) = block.filter(|_| is_proof || request.method == "rsk_getProof") {
                    self.proofs = Some(true);
                    self.oldest_state = Some(self.oldest_state.unwrap_or(block).min(block));
                }
                None
            }
            // "There is none" is not a fault if nothing shows that the fact exists. A request that was not sent and a
            // response that was not read say nothing.
            Err(Cause::Denied | Cause::Call(RequestFailure::NotSent(_) | RequestFailure::BudgetUsedUp)) => {
                None
            }
            Err(Cause::NoAbsence(_)) => {
                self.absence = Some(false);
                None
            }
            Err(Cause::Call(RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. })) => {
                self.proofs = if is_proof { Some(false) } else { self.proofs };
                None
            }
            Err(cause @ Cause::Call(RequestFailure::False(_))) => Some((format!("{cause}"), LIE)),
            Err(cause @ Cause::Refuted(_)) => {
                // Only one block has a given hash, so a wrong response about it is a lie. But a transaction object may hide part of
                // the transaction.
                let by_hash = request.method.contains("ByHash") && !request.method.contains("Transaction");
                Some((format!("{cause}"), if by_hash { LIE } else { REFUTED }))
            }
            Err(cause) => Some((format!("{cause}"), SILENT)),
        }
    }
}

impl HeaderSync {
    /// Whether an upstream is not asked for a while, because it failed, lied or asked for a pause.
    pub fn is_resting(&self, upstream: usize) -> bool {
        self.peers.get(upstream).is_some_and(SyncPeer::is_resting)
    }

    /// The upstreams to ask for facts, best first. Resting ones come last, for facts that no other can prove. Those
    /// that rest because of a lie are left out, unless all do.
    pub fn roster(&self) -> Vec<usize> {
        self.ranked().into_iter().map(|(_, upstream)| upstream).collect()
    }

    /// As [`Self::roster`], but the upstreams of the best rank are rotated by `turn`, any number that differs from message to message,
    /// such as the time, so that each of them is the first in turn.
    pub fn rotated_roster(&self, turn: u64) -> Vec<usize> {
        let ranked = self.ranked();
        let best = ranked.first().map(|(rank, _)| *rank);
        let equal = ranked.iter().take_while(|(rank, _)| Some(*rank) == best).count();
        let mut roster: Vec<usize> = ranked.into_iter().map(|(_, upstream)| upstream).collect();
        let first = turn.checked_rem(equal as u64).unwrap_or(0) as usize;
        if let Some(best) = roster.get_mut(..equal) {
            best.rotate_left(first);
        }
        roster
    }

    /// The upstreams to ask with their ranks, best first.
    fn ranked(&self) -> Vec<(UpstreamRank, usize)> {
        let lied = |peer: &SyncPeer| matches!(&peer.phase, Phase::Resting(_, fault) if fault.cause.is_lie());
        let all_lied = self.peers.iter().all(lied);
        let asked = self.peers.iter().enumerate().filter(|(_, peer)| all_lied || !lied(peer));
        let mut ranked = Vec::new();
        for (index, peer) in asked {
            insert_sorted(&mut ranked, (self.rank(peer), index));
        }
        ranked
    }

    fn rank(&self, peer: &SyncPeer) -> UpstreamRank {
        let (source, head) = (&peer.source, self.followed.head_number());
        // Requests are about the heaviest chain: an upstream on a longer branch of less work does not help.
        let is_behind = source.announced.is_none_or(|own| own.saturating_add(LAG) < head)
            || self.followed.side_branch(peer.search.newest_hash).is_some();
        let (record, lacks_proofs) = (&source.record, source.can.proofs == Some(false));
        (peer.is_resting(), record.lies, is_behind, lacks_proofs, record.demerits / 4, record.latency / 64)
    }

    /// The state of each upstream, in the host's order.
    pub fn upstreams(&self) -> Vec<UpstreamState> {
        let state = |peer: &SyncPeer| UpstreamState {
            name: peer.source.name.clone(),
            source_generation: peer.source.generation,
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

    /// The time that the host passed in last.
    pub fn now(&self) -> Now {
        self.now
    }

    /// Notes that another source, of this name, is the upstream from now on. The new source starts with an empty
    /// record; others may take over the open fetches of the earlier source. To be called between two exchanges of the upstream.
    pub fn replace(&mut self, upstream: usize, name: String) {
        let Some(mut exchange) = self.exchange(upstream) else { return };
        exchange.followed.release(upstream);
        exchange.followed.backfill.readmit(upstream);
        exchange.drop_lease();
        let generation = exchange.peer.source.generation.saturating_add(1);
        *exchange.peer = SyncPeer::default();
        (exchange.peer.source.name, exchange.peer.source.generation) = (Some(name), generation);
        if let Some((_, proposal)) = exchange.proposal {
            *proposal = Proposal::default();
        }
    }

    /// Takes over the outcomes of requests of a session. `generations` are those of the sources when the session began
    /// ([`UpstreamState::source_generation`]): observations of a source that has been replaced since are dropped.
    pub fn observe_since(
        &mut self,
        generations: &[u64],
        observations: impl IntoIterator<Item = Observation>,
    ) {
        let present: Vec<u64> = self.peers.iter().map(|peer| peer.source.generation).collect();
        let is_present = |seen: &Observation| generations.get(seen.upstream) == present.get(seen.upstream);
        self.observe(observations.into_iter().filter(is_present));
    }

    /// Takes over the outcomes of requests for facts.
    pub fn observe(&mut self, observations: impl IntoIterator<Item = Observation>) {
        for Observation { upstream, request, outcome } in observations {
            let Some(mut exchange) = self.exchange(upstream) else { continue };
            let source = &mut exchange.peer.source;
            let Some((rule, weight)) = source.can.learn(&request, outcome) else { continue };
            source.record.bad(exchange.now, request, rule.clone(), weight);
            // A dishonest upstream rests only if at least two upstreams, itself included, do not.
            if weight >= REFUTED
                && source.record.is_dishonest()
                && !exchange.peer.is_resting()
                && exchange.all().filter(|peer| !peer.is_resting()).nth(1).is_some()
            {
                let number = exchange.followed.head_number();
                exchange.rest(SyncFault { number, cause: SyncCause::Dishonest(rule) });
            }
        }
    }
}
