//! The record of an upstream: how fast it is, how often it failed, and evidence of wrong responses.

use alloc::{collections::VecDeque, string::String};

use super::{clock::Now, upstream::UpstreamRequest};

/// Most pieces of evidence kept per upstream; the oldest is dropped first.
const MAX_EVIDENCE: usize = 16;

/// Number of good exchanges that cancel one demerit.
const REDEMPTION: u32 = 64;

/// Demerits for a response that did not arrive, or that an honest upstream may give too: it is late, or on another branch.
pub(super) const SILENT: u32 = 1;

/// Demerits for a response that does not verify, and that an honest upstream on another branch would not give either.
pub(super) const REFUTED: u32 = 8;

/// Demerits for a response that no honest upstream gives.
pub(super) const LIE: u32 = 16;

/// Most demerits an upstream can have: [`REDEMPTION`] times as many good exchanges always restore it.
const MAX_DEMERITS: u32 = 256;

/// A missing or wrong response of an upstream, with the request that led to it, so that users can repeat it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// When the response was noticed: wall clock, in seconds since 1970.
    pub at: u64,
    /// The request.
    pub request: UpstreamRequest,
    /// The rule that the response breaks.
    pub rule: String,
    /// Whether no honest upstream gives such a response. Otherwise the upstream may only be late, pruned or less
    /// capable.
    pub lie: bool,
}

/// The record of an upstream.
#[derive(Debug, Clone, Default)]
pub struct UpstreamRecord {
    /// Smoothed time of one exchange, in milliseconds.
    pub latency: u64,
    /// Headers per second during the upstream's last lease, in which it fetched many headers.
    pub rate: Option<u64>,
    /// Failures of synchronization since the last good exchange; each doubles the next pause. Failures of requests for callers'
    /// messages do not count.
    pub in_row: u32,
    /// Demerits, from 0; good exchanges remove them.
    pub demerits: u32,
    /// Number of responses that no honest upstream gives.
    pub lies: u32,
    /// The newest evidence, oldest first.
    pub evidence: VecDeque<Evidence>,
    /// Good exchanges since the last demerit was cancelled.
    good: u32,
    /// The part of the demerits that came from responses that do not verify.
    wrong: u32,
}

impl UpstreamRecord {
    /// Records a good exchange, which took `elapsed` milliseconds.
    pub(super) fn good(&mut self, elapsed: u64) {
        self.in_row = 0;
        self.latency = if self.latency == 0 {
            elapsed.max(1)
        } else {
            self.latency.saturating_mul(3).saturating_add(elapsed) / 4
        };
        self.good = self.good.saturating_add(1);
        if self.good >= REDEMPTION {
            (self.good, self.demerits) = (0, self.demerits.saturating_sub(1));
            self.wrong = self.wrong.saturating_sub(1);
        }
    }

    /// Whether so many responses failed verification, such as two lies, that the upstream is no longer asked. Responses that were
    /// missing, late or about another branch do not count, however many: honest upstreams give such responses.
    pub(super) fn is_dishonest(&self) -> bool {
        self.wrong >= LIE.saturating_mul(2)
    }

    /// Counts a failure of synchronization.
    pub(super) fn failed(&mut self) {
        self.in_row = self.in_row.saturating_add(1);
    }

    /// Records a response that was missing, late or wrong. `weight` is the number of demerits. The same evidence twice in a row is
    /// kept once.
    pub(super) fn bad(&mut self, now: Now, request: UpstreamRequest, rule: String, weight: u32) {
        let lie = weight >= LIE;
        self.lies = self.lies.saturating_add(u32::from(lie));
        self.demerits = self.demerits.saturating_add(weight).min(MAX_DEMERITS);
        if weight >= REFUTED {
            self.wrong = self.wrong.saturating_add(weight).min(MAX_DEMERITS);
        }
        if self.evidence.back().is_some_and(|last| last.request == request && last.rule == rule) {
            return;
        }
        if self.evidence.len() >= MAX_EVIDENCE {
            self.evidence.pop_front();
        }
        self.evidence.push_back(Evidence { at: now.unix, request, rule, lie });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(record: &mut UpstreamRecord, rule: usize, weight: u32) {
        let request = UpstreamRequest::new("eth_getProof", "[]".into());
        record.bad(Now { unix: rule as u64, millis: 0 }, request, alloc::format!("rule {rule}"), weight);
    }

    #[test]
    fn demerits_are_limited_and_good_exchanges_remove_them() {
        let mut record = UpstreamRecord::default();
        (0..20).for_each(|rule| bad(&mut record, rule, LIE));
        (0..20).for_each(|_| record.failed());
        assert_eq!((record.demerits, record.lies, record.in_row), (256, 20, 20));
        (0..63).for_each(|_| record.good(10));
        assert_eq!((record.demerits, record.in_row), (256, 0));
        record.good(10);
        assert_eq!(record.demerits, 255);
        (0..64).for_each(|_| record.good(10));
        assert_eq!(record.demerits, 254);
    }

    #[test]
    fn the_newest_evidence_is_kept_without_repetition() {
        let mut record = UpstreamRecord::default();
        bad(&mut record, 0, SILENT);
        bad(&mut record, 0, SILENT);
        assert_eq!((record.evidence.len(), record.in_row, record.lies), (1, 0, 0));
        (1..=16).for_each(|rule| bad(&mut record, rule, REFUTED));
        assert_eq!((record.evidence.len(), record.evidence[0].at, record.lies), (16, 1, 0));
        assert!(record.evidence.iter().all(|evidence| !evidence.lie));
        bad(&mut record, 17, LIE);
        assert!(record.evidence.back().is_some_and(|evidence| evidence.lie) && record.lies == 1);
        let request = UpstreamRequest::new("eth_getCode", "[]".into());
        record.bad(Now::default(), request, "rule 17".into(), SILENT);
        assert_eq!(record.evidence.back().unwrap().request.method, "eth_getCode");
    }

    #[test]
    fn latency_is_smoothed() {
        let mut record = UpstreamRecord::default();
        record.good(100);
        assert_eq!(record.latency, 100);
        record.good(300);
        assert_eq!(record.latency, 150);
    }
}
