//! Decides when a discovered node that fills an upstream slot is replaced by another one.
//!
//! Only lies and failures of synchronization count. Failures of callers' requests do not count: otherwise any caller could drive honest
//! nodes away, by requests for states that the nodes no longer have.

use rootlight::light::{HeaderSync, RequestFailure, SyncCause, SyncFault, UpstreamState};
use rootlight_upstream::{CurrentSource, Dismissal};

use super::shared_light::SharedLight;

/// Strikes at which a source is useless. Each failure adds [`STRIKES_OF_FAILURE`], so ten failures in a row reach it,
/// after some minutes without headers.
const MAX_STRIKES: u32 = 40;

/// Strikes for a failure; a good exchange removes one. So a source is useless if more than one exchange in five fails for long.
const STRIKES_OF_FAILURE: u32 = 4;

/// A source that is more than this many blocks behind the verified head is useless: half an hour, at half a minute a block.
const MAX_BEHIND: u64 = 60;

/// The source that fills an upstream slot now, with its strikes.
pub(super) struct WatchedSource {
    source: CurrentSource,
    strikes: u32,
}

impl WatchedSource {
    pub(super) const fn new(source: CurrentSource) -> Self {
        Self { source, strikes: 0 }
    }

    /// The number that tells this source from the former ones of the slot.
    pub(super) const fn number(&self) -> u64 {
        self.source.number
    }

    pub(super) fn name(&self) -> &str {
        &self.source.name
    }

    /// Whether no node fills the slot at present, so that failures do not count.
    pub(super) const fn is_vacant(&self) -> bool {
        self.source.vacant
    }

    /// Counts the exchange of synchronization that has just ended.
    pub(super) fn strike(&mut self, shared: &SharedLight, upstream: usize) {
        let state = shared.client.sync().upstreams().into_iter().nth(upstream);
        self.count(state.and_then(|state| state.resting).as_ref().map(|(_, fault)| fault));
    }

    /// Counts an exchange, which failed if there is a fault.
    fn count(&mut self, fault: Option<&SyncFault>) {
        self.strikes = match fault.map(|fault| &fault.cause) {
            None => self.strikes.saturating_sub(1),
            // Requests of callers can use up the rate limit of a source and the memory for responses, so these failures do not count.
            Some(SyncCause::Call(RequestFailure::Busy { .. } | RequestFailure::BudgetUsedUp)) => self.strikes,
            Some(_) => self.strikes.saturating_add(STRIKES_OF_FAILURE),
        };
    }

    /// Why another source should replace this one; `None` if it should stay.
    pub(super) fn dismissal(&self, shared: &SharedLight, upstream: usize) -> Option<Dismissal> {
        let sync = shared.client.sync();
        let state = sync.upstreams().into_iter().nth(upstream)?;
        self.judge(&sync, &state)
    }

    /// As [`Self::dismissal`], with the state of synchronization.
    fn judge(&self, sync: &HeaderSync, state: &UpstreamState) -> Option<Dismissal> {
        if let Some(lie) = state.record.evidence.iter().rev().find(|evidence| evidence.lie) {
            let text = format!("{} {}: {}", lie.request.method, lie.request.params, lie.rule);
            return Some(Dismissal::Lied(text));
        }
        let useless = |why: String| Some(Dismissal::Useless(why));
        if let Some((_, fault)) = &state.resting {
            let gone = match &fault.cause {
                // In a start by work, the source proposes its chain again, which may be the heavier one.
                SyncCause::Unlinked => !sync.is_by_work(),
                SyncCause::TooLittleWork(_) => true,
                _ => false,
            };
            if gone || self.strikes >= MAX_STRIKES {
                return useless(fault.to_string());
            }
        }
        let head = sync.chain().filter(|_| sync.is_synced())?.head().number;
        let behind = head.saturating_sub(state.announced?);
        if behind > MAX_BEHIND { useless(format!("{behind} blocks behind the verified head")) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rootlight::consensus::{Checkpoint, Network};
    use rootlight::light::{Evidence, Now, SyncOptions, SyncStep, UpstreamRequest};

    use super::*;

    fn watched() -> WatchedSource {
        WatchedSource::new(CurrentSource { number: 1, name: "node".into(), vacant: false })
    }

    fn fault(cause: SyncCause) -> SyncFault {
        SyncFault { number: 7, cause }
    }

    fn sync() -> HeaderSync {
        let network = Arc::new(Network::regtest());
        let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
        HeaderSync::with_upstreams(network, checkpoint, 1, SyncOptions::default())
    }

    #[test]
    fn a_source_that_gives_no_headers_is_dismissed_and_one_that_is_busy_is_not() {
        let silent = fault(SyncCause::Call(RequestFailure::Transport("gone".into())));
        let (sync, mut watched) = (sync(), watched());
        let mut state = sync.upstreams().remove(0);
        state.resting = Some((1, silent.clone()));
        let mut failures = 0;
        while watched.judge(&sync, &state).is_none() {
            // Its height is known without asking it, which counts as a good exchange.
            watched.count(None);
            watched.count(Some(&silent));
            failures += 1;
        }
        assert_eq!(failures, 13);
        let mut watched = self::watched();
        let busy = fault(SyncCause::Call(RequestFailure::Busy { seconds: Some(60) }));
        (0..1_000).for_each(|_| watched.count(Some(&busy)));
        assert_eq!(watched.judge(&sync, &state), None);
        // One failure in five exchanges is no reason.
        for exchange in 0..1_000 {
            watched.count(Some(&silent).filter(|_| exchange % 5 == 0));
        }
        assert_eq!(watched.judge(&sync, &state), None);
    }

    #[test]
    fn a_lie_is_reported_with_its_evidence_and_a_source_on_another_chain_is_dropped() {
        let (sync, watched) = (sync(), watched());
        let mut state = sync.upstreams().remove(0);
        assert_eq!(watched.judge(&sync, &state), None);
        state.record.demerits = 256;
        assert_eq!(watched.judge(&sync, &state), None, "callers can cause demerits");
        state.resting = Some((1, fault(SyncCause::Unlinked)));
        assert!(matches!(watched.judge(&sync, &state), Some(Dismissal::Useless(_))));
        let request = UpstreamRequest::new("eth_getCode", "[1]".into());
        state.record.evidence.push_back(Evidence { at: 1, request, rule: "wrong".into(), lie: true });
        assert_eq!(watched.judge(&sync, &state), Some(Dismissal::Lied("eth_getCode [1]: wrong".into())));
    }

    #[test]
    fn a_replaced_source_is_asked_at_once() {
        let mut sync = sync();
        let now = Now { unix: 1, millis: 1_000 };
        sync.next(0, now);
        sync.feed(0, vec![Err(RequestFailure::Transport("gone".into()))], now);
        assert!(matches!(sync.next(0, now), SyncStep::Wait(_)));
        sync.replace(0, "another".into());
        assert!(matches!(sync.next(0, now), SyncStep::Fetch(_)));
    }
}
