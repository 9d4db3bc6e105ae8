//! Decides when a round of requests is sent to a second upstream (the spare), because the first is slower than usual, and which of
//! the two is asked first. All times are in microseconds.

use alloc::vec::Vec;

/// The usual time of an upstream that has not answered yet.
const FIRST: u64 = 100_000;

/// Bounds of the usual time: the spare is asked 10 ms after the first upstream at the earliest, and 2 s after it at the latest.
const LEAST: u64 = 10_000;
const MOST: u64 = 2_000_000;

/// Points that each round of requests adds to the budget. With [`COST`], at most a tenth of all rounds is sent twice without gain.
const EARNED: u32 = 100;
/// Points that a second round costs.
const COST: u32 = 1_000;
/// Points that are given back if the second round was answered first. With [`EARNED`] the second round then costs nothing, so that
/// every round may be sent twice while an upstream does not respond.
const REFUND: u32 = 900;

/// The largest budget, in points: 32 second rounds in a row.
const FULL: u32 = 32_000;

/// How many times as long as the spare an upstream must take before the spare is asked first.
const SLOWER: u64 = 4;
/// How long the spare is asked first, before the upstream is tried again.
const DEMOTION_TIME: u64 = 60_000_000;

/// The measured speed of each upstream, and how many rounds may be sent twice.
#[derive(Debug)]
pub struct Hedges {
    /// By the number of the upstream.
    upstreams: Vec<LatencyEstimate>,
    /// Points for second rounds.
    budget: u32,
}

/// The usual time of an upstream.
#[derive(Debug, Clone)]
struct LatencyEstimate {
    /// The time within which the upstream answers 19 of 20 rounds.
    usual: u64,
    /// Since when the spare is asked first; `None` if the upstream is.
    demoted_since: Option<u64>,
}

impl LatencyEstimate {
    /// Whether a spare with the usual time `spare_usual` is asked before this upstream. After [`DEMOTION_TIME`] this upstream counts
    /// as only twice as slow as the spare, so that it is asked first again and new measurements decide.
    fn is_demoted(&mut self, spare_usual: u64, now: u64) -> bool {
        let is_slow = self.usual >= spare_usual.saturating_mul(SLOWER);
        let since = self.demoted_since.filter(|_| is_slow).unwrap_or(now);
        let is_demoted = is_slow && now.saturating_sub(since) < DEMOTION_TIME;
        self.demoted_since = is_demoted.then_some(since);
        if is_slow && !is_demoted {
            self.usual = spare_usual.saturating_mul(2).clamp(LEAST, MOST);
        }
        is_demoted
    }
}

impl Hedges {
    /// The speed of upstreams that have not answered yet.
    pub fn new(upstreams: usize) -> Self {
        let unknown = LatencyEstimate { usual: FIRST, demoted_since: None };
        Self { upstreams: alloc::vec![unknown; upstreams], budget: FULL }
    }

    /// Begins a round of requests at `now`, by any monotonic clock. Returns whether the spare is asked first, because the upstream is
    /// much slower, and the usual time of the one that is asked first. After this time, the other one may be asked too.
    pub fn begin(&mut self, upstream: usize, spare: usize, now: u64) -> (bool, u64) {
        self.add(EARNED);
        let usual = |index: usize| self.upstreams.get(index).map_or(MOST, |upstream| upstream.usual);
        let [own, of_spare] = [upstream, spare].map(usual);
        let is_demoted =
            self.upstreams.get_mut(upstream).is_some_and(|first| first.is_demoted(of_spare, now));
        (is_demoted, if is_demoted { of_spare } else { own })
    }

    /// Whether the budget allows a second round now; if so, its cost is deducted.
    pub fn take_second_round(&mut self) -> bool {
        let left = self.budget.checked_sub(COST);
        self.budget = left.unwrap_or(self.budget);
        left.is_some()
    }

    /// Notes that a second round was answered first, by this upstream, and how long it took.
    pub fn note_second_won(&mut self, upstream: usize, took: u64) {
        self.add(REFUND);
        self.note(upstream, took);
    }

    /// Notes how long a round took at an upstream, or how long it had taken so far when the other one answered. The usual time
    /// rises by 19 parts (of 200) if the round took longer than usual, and falls by one part otherwise, so that it settles where one
    /// round in twenty takes longer.
    pub fn note(&mut self, upstream: usize, took: u64) {
        let Some(LatencyEstimate { usual, .. }) = self.upstreams.get_mut(upstream) else { return };
        let part = *usual / 200;
        let next = if took > *usual {
            usual.saturating_add(part.saturating_mul(19))
        } else {
            usual.saturating_sub(part)
        };
        *usual = next.clamp(LEAST, MOST);
    }

    fn add(&mut self, points: u32) {
        self.budget = self.budget.saturating_add(points).min(FULL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_much_slower_than_its_spare_is_passed_over_for_a_minute() {
        let mut hedges = Hedges::new(2);
        let is_passed_over = |hedges: &mut Hedges, upstream, now| hedges.begin(upstream, 1 - upstream, now).0;
        assert!(!is_passed_over(&mut hedges, 0, 0) && !is_passed_over(&mut hedges, 1, 0));
        (0..20).for_each(|_| hedges.note(0, u64::MAX));
        assert!(is_passed_over(&mut hedges, 0, 5) && !is_passed_over(&mut hedges, 1, 5));
        assert!(is_passed_over(&mut hedges, 0, DEMOTION_TIME + 4));
        assert!(!is_passed_over(&mut hedges, 0, DEMOTION_TIME + 5), "it is tried again");
        (0..20).for_each(|_| hedges.note(0, u64::MAX));
        assert!(is_passed_over(&mut hedges, 0, DEMOTION_TIME + 6), "it is no quicker");
    }

    #[test]
    fn a_tenth_of_all_rounds_is_sent_twice_in_vain_but_each_that_is_of_use() {
        let mut hedges = Hedges::new(2);
        let in_vain = (0..1_000).filter(|_| {
            hedges.begin(0, 1, 0);
            hedges.take_second_round()
        });
        assert_eq!(in_vain.count(), 31 + 100);
        let of_use = (0..1_000).filter(|_| {
            hedges.begin(0, 1, 0);
            hedges.note_second_won(1, 0);
            hedges.take_second_round()
        });
        assert_eq!(of_use.count(), 1_000);
    }

    #[test]
    fn the_usual_time_is_one_that_nineteen_of_twenty_rounds_keep() {
        let mut hedges = Hedges::new(1);
        for round in 0..20_000_u64 {
            hedges.note(0, 1_000 * (1 + round * 7 % 100));
        }
        let usual = |hedges: &mut Hedges, upstream| hedges.begin(upstream, upstream, 0).1;
        assert!((80_000..110_000).contains(&usual(&mut hedges, 0)));
        (0..2_000).for_each(|_| hedges.note(0, 0));
        assert_eq!(usual(&mut hedges, 0), LEAST);
        (0..2_000).for_each(|_| hedges.note(0, u64::MAX));
        assert_eq!((usual(&mut hedges, 0), usual(&mut hedges, 1)), (MOST, MOST));
    }
}
