//! The limits of a key at one front end while the hot store, which counts for all front ends, does not answer.

use rootlight_limits::unix_time::DAY;
use rootlight_server::keys::{Exceeded, Gcra, LimitStatus, day_of};

use super::limits::{Demand, KeyLimits};

/// Without the store, all front ends together admit at most 1/`LIMIT_DIVISOR` of the shared limit. Front ends that still reach
/// the store may admit the whole limit meanwhile.
const LIMIT_DIVISOR: u32 = 2;

/// The counters of a key without the store.
#[derive(Debug, Default)]
pub(super) struct Fallback {
    /// The state of the limit per second.
    gcra: Gcra,
    /// The day of the counts below, in days since 1970 (UTC).
    day: u64,
    /// Requests of the day that were admitted without the store.
    admitted: u64,
    /// Those of them that were not reported to the store yet.
    unreported: u64,
}

/// The inputs of a decision without the store, besides the message.
#[derive(Debug, Clone, Copy)]
pub(super) struct FallbackInput {
    /// Number of front ends that share the limit.
    pub(super) front_ends: u32,
    /// Nanoseconds of a clock that never goes back.
    pub(super) nanos: u64,
    /// Seconds since 1970.
    pub(super) unix: u64,
    /// Requests of the day that the store had counted when it last answered.
    pub(super) counted: u64,
}

impl Fallback {
    /// Counts a message, if it is within this front end's share of half the limit.
    pub(super) fn take(
        &mut self,
        limits: &KeyLimits,
        demand: &Demand,
        input: FallbackInput,
    ) -> Result<Option<LimitStatus>, Exceeded> {
        let divisor = input.front_ends.max(1).saturating_mul(LIMIT_DIVISOR);
        let today = input.unix / DAY;
        let (day, same_day) = day_of(self.day, today);
        self.day = day;
        if !same_day {
            (self.admitted, self.unreported) = (0, 0);
        }
        if let Some(most) = limits.per_day {
            let share = most.saturating_sub(input.counted) / u64::from(divisor);
            if demand.requests > share.saturating_sub(self.admitted) {
                // What is left of the share is shown as what is left of the limit.
                let count = most.saturating_sub(share.saturating_sub(self.admitted));
                return Err(limits.too_many(count, input.unix));
            }
        }
        let mut used = 0;
        if let Some(rate) = limits.rate {
            let share = rate.share(divisor);
            let taken = self.gcra.take(share, demand.weight, input.nanos);
            used = self.gcra.left(share, input.nanos).full_in;
            if let Err(wait) = taken {
                return Err(KeyLimits { rate: Some(share), ..*limits }.too_fast(wait, used));
            }
        }
        self.admitted = self.admitted.saturating_add(demand.requests);
        self.unreported = self.unreported.saturating_add(demand.requests);
        let share = limits.rate.map(|rate| rate.share(divisor));
        let count = input.counted.saturating_add(self.admitted);
        Ok(KeyLimits { rate: share, ..*limits }.status(used, count, input.unix))
    }

    /// The requests of this day that are to be reported to the store. They count as reported after this call. `unix` is the time
    /// in seconds since 1970.
    pub(super) fn take_unreported(&mut self, unix: u64) -> u64 {
        let unreported = std::mem::take(&mut self.unreported);
        if day_of(self.day, unix / DAY).1 { unreported } else { 0 }
    }

    /// Notes that the store did not answer a report, so that it is reported again: the store may count these requests twice,
    /// which is better than never.
    pub(super) fn report_failed(&mut self, requests: u64) {
        self.unreported = self.unreported.saturating_add(requests);
    }
}

#[cfg(test)]
mod tests {
    use rootlight_server::keys::{Charge, KeyRules, LimitPeriod};

    use super::super::limits::SECOND;
    use super::*;

    fn limits(per_second: Option<u32>, burst: u32, per_day: Option<u64>) -> KeyLimits {
        KeyLimits::of(&KeyRules { per_second, burst: Some(burst), per_day, ..KeyRules::default() }).unwrap()
    }

    fn moment(nanos: u64) -> FallbackInput {
        FallbackInput { front_ends: 3, nanos, unix: 20_000 * DAY + nanos / SECOND, counted: 40 }
    }

    #[test]
    fn three_front_ends_together_admit_half_of_the_rate() {
        let limits = limits(Some(60), 120, None);
        let demand = limits.demand(&Charge { requests: 1, weight: 1, classes: Vec::new() });
        let admitted = |fallback: &mut Fallback| {
            let tries = (0..10_000_u64).map(|step| moment(step * 1_000_000));
            tries.filter(|at| fallback.take(&limits, &demand, *at).is_ok()).count()
        };
        let sum: usize = (0..3).map(|_| admitted(&mut Fallback::default())).sum();
        // Half of 120 at once and of 60 a second for ten seconds.
        assert!((350..=363).contains(&sum), "{sum}");
    }

    #[test]
    fn a_clock_that_was_ahead_does_not_block_the_days_after() {
        let limits = limits(None, 1, Some(20));
        let demand = limits.demand(&Charge { requests: 1, weight: 1, classes: Vec::new() });
        let mut fallback = Fallback::default();
        let mut count = |day: u64| {
            let at = FallbackInput { front_ends: 1, nanos: 0, unix: day * DAY, counted: 0 };
            (0..50).filter(|_| fallback.take(&limits, &demand, at).is_ok()).count()
        };
        assert_eq!((count(30_000), count(20_000), count(20_001)), (10, 0, 10));
    }

    #[test]
    fn a_day_gives_each_front_end_its_share_of_half_of_what_is_left() {
        let limits = limits(None, 1, Some(100));
        let demand = limits.demand(&Charge { requests: 1, weight: 1, classes: Vec::new() });
        let mut fallback = Fallback::default();
        let count = (0..100).filter(|_| fallback.take(&limits, &demand, moment(0)).is_ok()).count();
        assert_eq!(count, 10);
        assert_eq!(fallback.take(&limits, &demand, moment(0)).unwrap_err().window, LimitPeriod::Day);
        assert_eq!(fallback.take_unreported(20_000 * DAY), 10);
        assert_eq!(fallback.take_unreported(20_000 * DAY), 0);
        fallback.report_failed(10);
        assert_eq!(fallback.take_unreported(20_001 * DAY), 0, "yesterday's requests do not matter any more");
        assert!(fallback.take(&limits, &demand, moment(DAY * SECOND)).is_ok());
    }
}
