//! The limits of a key as numbers, the demand of a message on them, and the status and refusals that callers see.

use rootlight_limits::unix_time::DAY;
use rootlight_server::keys::{Charge, Exceeded, KeyRules, LimitPeriod, LimitStatus, Rate};

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Highest cost of a message, in nanoseconds of the key's rate: 13 days. The store's scripts compute with floating-point
/// numbers, which are exact up to 2^53.
const MAX_COST: u64 = 1 << 50;

/// Most requests of a day, for the same reason.
const MAX_PER_DAY: u64 = 1 << 52;

/// The limits of a key. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyLimits {
    /// Requests per second, and at once.
    pub(super) rate: Option<Rate>,
    /// Requests of a day (UTC).
    pub(super) per_day: Option<u64>,
}

/// The demand of a message on the limits of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Demand {
    /// Nanoseconds in which the rate makes the weight available again.
    pub(super) cost: u64,
    /// The weight of all calls of the message.
    pub(super) weight: u64,
    pub(super) requests: u64,
}

impl KeyLimits {
    /// The limits of a key; `None` if there are none.
    pub(super) fn of(rules: &KeyRules) -> Option<Self> {
        let rate = rules.per_second.map(|per_second| Rate::new(per_second, rules.burst()));
        let per_day = rules.per_day.map(|most| most.min(MAX_PER_DAY));
        (rate.is_some() || per_day.is_some()).then_some(Self { rate, per_day })
    }

    /// The demand of a message on these limits.
    pub(super) fn demand(&self, charge: &Charge) -> Demand {
        let cost = self.rate.map_or(0, |rate| rate.cost(charge.weight).min(MAX_COST));
        Demand { cost, weight: charge.weight, requests: charge.requests.into() }
    }

    /// What is left of the limits, for HTTP headers: of the limit per second, or of that per day if there is no other. `used`:
    /// nanoseconds until the whole burst is available; `count`: requests of the day; `unix`: seconds since 1970.
    pub(super) fn status(&self, used: u64, count: u64, unix: u64) -> Option<LimitStatus> {
        let per_second = self.rate.map(|rate| {
            let left = rate.left(used);
            LimitStatus { limit: rate.burst(), remaining: left, reset: used.div_ceil(SECOND) }
        });
        per_second.or_else(|| self.day_status(count, unix))
    }

    /// What is left of the day's requests; `reset` is the number of seconds until the next day.
    fn day_status(&self, count: u64, unix: u64) -> Option<LimitStatus> {
        let limit = self.per_day?;
        let reset = DAY.saturating_sub(unix % DAY);
        Some(LimitStatus { limit, remaining: limit.saturating_sub(count), reset })
    }

    /// The refusal of a message that has to wait for some nanoseconds.
    pub(super) fn too_fast(&self, wait: u64, used: u64) -> Exceeded {
        let none = LimitStatus { limit: 0, remaining: 0, reset: 0 };
        let status = self.status(used, 0, 0).unwrap_or(none);
        Exceeded { window: LimitPeriod::Second, status, retry_after: wait.div_ceil(SECOND).max(1) }
    }

    /// The refusal of a message whose requests exceed those that are left of the day.
    pub(super) fn too_many(&self, count: u64, unix: u64) -> Exceeded {
        let none = LimitStatus { limit: 0, remaining: 0, reset: 0 };
        let status = self.day_status(count, unix).unwrap_or(none);
        Exceeded { window: LimitPeriod::Day, status, retry_after: status.reset.max(1) }
    }
}
