//! The counters of an API key in one process: its usage, and how much of its limits is left.

use std::collections::BTreeMap;

use rootlight_limits::unix_time::DAY;
use serde::{Deserialize, Serialize};

use super::gcra::{Gcra, Rate};
use super::rules::KeyRules;

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// What a message counts in a key's limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Charge {
    /// Requests in the message.
    pub requests: u32,
    /// The weight of all calls together.
    pub weight: u64,
    /// The requests by namespace of their methods.
    pub classes: Vec<(&'static str, u32)>,
}

/// The usage of a key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct KeyUsage {
    /// Requests within the limits.
    pub requests: u64,
    /// The weight of the requests.
    pub weight: u64,
    /// Messages that were refused because of a limit.
    pub refused: u64,
    /// The requests by namespace of their methods.
    pub classes: BTreeMap<String, u64>,
    /// The day of [`Self::today`], in days since 1970.
    pub day: u64,
    /// Requests of that day.
    pub today: u64,
}

impl KeyUsage {
    /// Begins a new count if `today` is a later day than that of the count.
    fn begin_day(&mut self, today: u64) {
        let (day, continues) = day_of(self.day, today);
        self.day = day;
        if !continues {
            self.today = 0;
        }
    }
}

/// The day on which requests are counted, and whether the count of the day `counted` continues there. Days are counted since
/// 1970.
///
/// If the clock says that today is the day before `counted`, the count continues on `counted`: a clock that was set back must
/// not give a second quota for one day. If `counted` lies further ahead, the clock was wrong when it was stored; the count
/// then becomes that of today, and ends with today.
pub const fn day_of(counted: u64, today: u64) -> (u64, bool) {
    if counted < today {
        (today, false)
    } else if counted > today.saturating_add(1) {
        (today, true)
    } else {
        (counted, true)
    }
}

/// The period of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitPeriod {
    /// Requests per second.
    Second,
    /// Requests of a day (UTC).
    Day,
}

/// How much of a limit is left, for the `x-ratelimit-*` headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitStatus {
    /// Requests that may come at once, or in a day.
    pub limit: u64,
    /// Requests that may still come.
    pub remaining: u64,
    /// Seconds until the whole limit is available, rounded up.
    pub reset: u64,
}

/// A limit that a message exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exceeded {
    /// Which limit is exceeded.
    pub window: LimitPeriod,
    /// How much of the limit is left.
    pub status: LimitStatus,
    /// Seconds after which the same message fits, rounded up; at least 1.
    pub retry_after: u64,
}

/// The present time.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeterTime {
    /// Nanoseconds of a clock that never goes back.
    pub(super) nanos: u64,
    /// Seconds since 1970.
    pub(super) seconds: u64,
}

/// The counters of a key.
#[derive(Debug, Default)]
pub(super) struct KeyMeter {
    gcra: Gcra,
    usage: KeyUsage,
    /// Whether the usage has changed since it was last stored.
    changed: bool,
}

impl KeyMeter {
    /// Continues from the stored usage.
    pub(super) fn new(usage: KeyUsage) -> Self {
        Self { gcra: Gcra::default(), usage, changed: false }
    }

    /// Starts the limit per second anew after its rate or burst has changed, because the stored time depends on both.
    pub(super) fn forget_rate(&mut self) {
        self.gcra = Gcra::default();
    }

    /// The usage of the key.
    pub(super) fn usage(&self) -> &KeyUsage {
        &self.usage
    }

    /// The usage, if it has changed since the last call.
    pub(super) fn take_changed(&mut self) -> Option<KeyUsage> {
        std::mem::take(&mut self.changed).then(|| self.usage.clone())
    }

    /// Counts a message. Returns how much is left of the limit of requests per second, or else of the limit of a day; `None`
    /// if the key has neither.
    ///
    /// # Errors
    /// The message exceeds a limit. Only the count of refused messages changes then.
    pub(super) fn take(
        &mut self,
        rules: &KeyRules,
        charge: &Charge,
        now: MeterTime,
    ) -> Result<Option<LimitStatus>, Exceeded> {
        self.changed = true;
        let taken = self.admit(rules, charge, now);
        match &taken {
            Ok(_) => self.count(charge),
            Err(_) => self.usage.refused = self.usage.refused.saturating_add(1),
        }
        taken
    }

    /// Takes a message from the limits, without counting its usage.
    fn admit(
        &mut self,
        rules: &KeyRules,
        charge: &Charge,
        now: MeterTime,
    ) -> Result<Option<LimitStatus>, Exceeded> {
        let today = now.seconds / DAY;
        self.usage.begin_day(today);
        let requests = u64::from(charge.requests);
        let mut status = None;
        if let Some(limit) = rules.per_day {
            let reset = DAY.saturating_sub(now.seconds % DAY);
            let left = limit.saturating_sub(self.usage.today);
            let day = |remaining| LimitStatus { limit, remaining, reset };
            if requests > left {
                let (window, status) = (LimitPeriod::Day, day(left));
                return Err(Exceeded { window, status, retry_after: reset });
            }
            status = Some(day(left.saturating_sub(requests)));
        }
        if let Some(per_second) = rules.per_second {
            let rate = Rate::new(per_second, rules.burst());
            let taken = self.gcra.take(rate, charge.weight, now.nanos);
            let left = self.gcra.left(rate, now.nanos);
            let (limit, reset) = (rate.burst(), left.full_in.div_ceil(SECOND));
            let second = LimitStatus { limit, remaining: left.requests, reset };
            if let Err(wait) = taken {
                let retry_after = wait.div_ceil(SECOND).max(1);
                return Err(Exceeded { window: LimitPeriod::Second, status: second, retry_after });
            }
            status = Some(second);
        }
        Ok(status)
    }

    /// Adds a message to the usage.
    fn count(&mut self, charge: &Charge) {
        let usage = &mut self.usage;
        let requests = u64::from(charge.requests);
        usage.requests = usage.requests.saturating_add(requests);
        usage.today = usage.today.saturating_add(requests);
        usage.weight = usage.weight.saturating_add(charge.weight);
        for (class, requests) in &charge.classes {
            match usage.classes.get_mut(*class) {
                Some(count) => *count = count.saturating_add(u64::from(*requests)),
                None => _ = usage.classes.insert((*class).to_owned(), u64::from(*requests)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn charge(requests: u32) -> Charge {
        Charge { requests, weight: requests.into(), classes: vec![("eth", requests)] }
    }

    fn at(seconds: u64) -> MeterTime {
        MeterTime { nanos: seconds * SECOND, seconds }
    }

    #[test]
    fn a_day_ends_at_midnight_utc_and_a_batch_that_does_not_fit_takes_nothing() {
        let rules = KeyRules { per_day: Some(10), ..KeyRules::default() };
        let mut meter = KeyMeter::default();
        let noon = at(20_000 * DAY + DAY / 2);
        let status = meter.take(&rules, &charge(8), noon).unwrap().unwrap();
        assert_eq!(status, LimitStatus { limit: 10, remaining: 2, reset: DAY / 2 });
        let refused = meter.take(&rules, &charge(3), noon).unwrap_err();
        assert_eq!(
            (refused.window, refused.retry_after, refused.status.remaining),
            (LimitPeriod::Day, DAY / 2, 2)
        );
        assert!(meter.take(&rules, &charge(2), noon).is_ok());
        assert!(meter.take(&rules, &charge(1), at(20_000 * DAY + DAY - 1)).is_err());
        assert!(meter.take(&rules, &charge(10), at(20_001 * DAY)).is_ok());
        assert!(meter.take(&rules, &charge(1), noon).is_err(), "the clock was set back");
        let usage = meter.usage();
        assert_eq!((usage.requests, usage.refused, usage.classes["eth"], usage.today), (20, 3, 20, 10));
    }

    #[test]
    fn a_clock_that_was_ahead_blocks_a_quota_until_the_end_of_the_day_at_most() {
        let rules = KeyRules { per_day: Some(10), ..KeyRules::default() };
        for ahead in [1, 2, 3, 365, 100_000] {
            let mut meter = KeyMeter::default();
            let today = 20_000;
            assert!(meter.take(&rules, &charge(7), at((today + ahead) * DAY)).is_ok());
            // The clock is right again, and the program may be started anew.
            let mut meter = KeyMeter::new(meter.usage().clone());
            assert!(meter.take(&rules, &charge(3), at(today * DAY)).is_ok(), "{ahead} days");
            assert!(meter.take(&rules, &charge(1), at(today * DAY + 1)).is_err(), "{ahead} days");
            let healed = if ahead == 1 { today + 2 } else { today + 1 };
            assert!(meter.take(&rules, &charge(10), at(healed * DAY)).is_ok(), "{ahead} days");
            assert!(meter.take(&rules, &charge(1), at(healed * DAY + 1)).is_err(), "{ahead} days");
        }
    }

    #[test]
    fn requests_over_the_rate_do_not_count_for_the_day() {
        let rules = KeyRules { per_day: Some(3), per_second: Some(1), burst: Some(1), ..KeyRules::default() };
        let mut meter = KeyMeter::default();
        assert!(meter.take(&rules, &charge(1), at(DAY)).is_ok());
        for _ in 0..10 {
            let refused = meter.take(&rules, &charge(1), at(DAY)).unwrap_err();
            assert_eq!((refused.window, refused.retry_after), (LimitPeriod::Second, 1));
        }
        assert!(meter.take(&rules, &charge(1), at(DAY + 1)).is_ok());
        assert!(meter.take(&rules, &charge(1), at(DAY + 2)).is_ok());
        assert_eq!(meter.take(&rules, &charge(1), at(DAY + 3)).unwrap_err().window, LimitPeriod::Day);
    }

    #[test]
    fn usage_is_stored_only_when_it_has_changed() {
        let mut meter = KeyMeter::default();
        assert!(meter.take_changed().is_none());
        meter.take(&KeyRules::default(), &charge(2), at(DAY)).unwrap();
        assert_eq!(meter.take_changed().unwrap().requests, 2);
        assert!(meter.take_changed().is_none());
    }
}
