//! What is known about an upstream's conduct: how fast it is, what it failed at, what it was caught with.

use alloc::{collections::VecDeque, string::String};

use super::{clock::Now, upstream::UpstreamCall};

/// Evidence kept per upstream; older pieces give way.
const MAX_EVIDENCE: usize = 16;

/// Good exchanges that make up for one demerit.
const REDEMPTION: u32 = 64;

/// Demerits of an answer that did not come.
pub(super) const SILENT: u32 = 1;

/// Demerits of an answer that does not verify, though the question left no room for another branch.
pub(super) const REFUTED: u32 = 8;

/// Demerits of an answer that no honest upstream gives.
pub(super) const LIE: u32 = 16;

/// Most demerits an upstream can have.
const MAX_DEMERITS: u32 = 256;

/// What an upstream was caught with: enough to ask the same question again and see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// Wall clock when it was noticed, in seconds since 1970.
    pub at: u64,
    /// The question.
    pub call: UpstreamCall,
    /// What is wrong with the answer: the rule it breaks.
    pub rule: String,
    /// Whether no honest upstream gives such an answer; else it may be late, pruned or less able.
    pub lie: bool,
}

/// An upstream's conduct.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Time of one exchange in milliseconds, smoothed.
    pub latency: u64,
    /// Headers per second during its turns at fetching many.
    pub rate: Option<u64>,
    /// Failures since the last good exchange.
    pub in_row: u32,
    /// Bad marks, from 0; good conduct takes them off.
    pub demerits: u32,
    /// How often it was caught with answers that no honest upstream gives.
    pub lies: u32,
    /// The newest evidence, oldest first.
    pub evidence: VecDeque<Evidence>,
    good: u32,
    /// The part of the demerits that came of answers which do not verify.
    wrong: u32,
}

impl Record {
    /// An exchange went well.
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

    /// Whether so many answers did not verify that the next ones are not worth asking for. What was missing, late or
    /// about another branch does not count, however often: honest upstreams give such answers.
    pub(super) fn is_dishonest(&self) -> bool {
        self.wrong >= LIE.saturating_mul(2)
    }

    /// An answer was missing, late or wrong.
    pub(super) fn bad(&mut self, now: Now, call: UpstreamCall, rule: String, weight: u32) {
        let lie = weight >= LIE;
        self.in_row = self.in_row.saturating_add(1);
        self.lies = self.lies.saturating_add(u32::from(lie));
        self.demerits = self.demerits.saturating_add(weight).min(MAX_DEMERITS);
        if weight >= REFUTED {
            self.wrong = self.wrong.saturating_add(weight).min(MAX_DEMERITS);
        }
        if self.evidence.back().is_some_and(|last| last.call == call && last.rule == rule) {
            return;
        }
        if self.evidence.len() >= MAX_EVIDENCE {
            self.evidence.pop_front();
        }
        self.evidence.push_back(Evidence { at: now.unix, call, rule, lie });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad(record: &mut Record, rule: usize, weight: u32) {
        let call = UpstreamCall::new("eth_getProof", "[]".into());
        record.bad(Now { unix: rule as u64, millis: 0 }, call, alloc::format!("rule {rule}"), weight);
    }

    #[test]
    fn demerits_have_an_end_and_are_made_up_for() {
        let mut record = Record::default();
        (0..20).for_each(|rule| bad(&mut record, rule, LIE));
        assert_eq!((record.demerits, record.lies, record.in_row), (256, 20, 20));
        (0..63).for_each(|_| record.good(10));
        assert_eq!((record.demerits, record.in_row), (256, 0));
        record.good(10);
        assert_eq!(record.demerits, 255);
        (0..64).for_each(|_| record.good(10));
        assert_eq!(record.demerits, 254);
    }

    #[test]
    fn of_evidence_the_newest_is_kept_once() {
        let mut record = Record::default();
        bad(&mut record, 0, SILENT);
        bad(&mut record, 0, SILENT);
        assert_eq!((record.evidence.len(), record.in_row, record.lies), (1, 2, 0));
        (1..=16).for_each(|rule| bad(&mut record, rule, REFUTED));
        assert_eq!((record.evidence.len(), record.evidence[0].at, record.lies), (16, 1, 0));
        assert!(record.evidence.iter().all(|evidence| !evidence.lie));
        bad(&mut record, 17, LIE);
        assert!(record.evidence.back().is_some_and(|evidence| evidence.lie) && record.lies == 1);
        let call = UpstreamCall::new("eth_getCode", "[]".into());
        record.bad(Now::default(), call, "rule 17".into(), SILENT);
        assert_eq!(record.evidence.back().unwrap().call.method, "eth_getCode");
    }

    #[test]
    fn latency_is_smoothed() {
        let mut record = Record::default();
        record.good(100);
        assert_eq!(record.latency, 100);
        record.good(300);
        assert_eq!(record.latency, 150);
    }
}
