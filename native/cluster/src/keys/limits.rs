//! The limits of a key in numbers, and what a message asks of them.

use rootlight_limits::unix_time::DAY;
use rootlight_server::keys::{Charge, Exceeded, KeyRules, LimitPeriod, LimitStatus, Rate};

/// Nanoseconds of a second.
pub(super) const SECOND: u64 = 1_000_000_000;

/// Highest cost of a message, in nanoseconds of its rate: 13 days, so that numbers of the store's scripts are exact.
const MAX_COST: u64 = 1 << 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeyLimits {
    pub(super) rate: Option<Rate>,
    pub(super) per_day: Option<u64>,
}

/// The demand of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Demand {
    /// Nanoseconds of the rate.
    pub(super) cost: u64,
    pub(super) weight: u64,
    pub(super) requests: u64,
}

impl KeyLimits {
    /// The limits of a key; `None` if there are none.
    pub(super) fn of(rules: &KeyRules) -> Option<Self> {
        let rate = rules.per_second.map(|per_second| Rate::new(per_second, rules.burst()));
        let per_day = rules.per_day.map(|most| most.min(1 << 52));
        (rate.is_some() || per_day.is_some()).then_some(Self { rate, per_day })
    }

    /// The demand of a message on them.
    pub(super) fn demand(&self, charge: &Charge) -> Demand {
        let cost = self.rate.map_or(0, |rate| rate.cost(charge.weight).min(MAX_COST));
        Demand { cost, weight: charge.weight, requests: charge.requests.into() }
    }

    /// The rest of the limits, for headers: requests per second matter most, else those of the day.
    pub(super) fn status(&self, used: u64, count: u64, unix: u64) -> Option<LimitStatus> {
        let second = self.rate.map(|rate| {
            let left = rate.left(used);
            LimitStatus { limit: rate.burst(), remaining: left, reset: used.div_ceil(SECOND) }
        });
        second.or_else(|| self.day(count, unix))
    }

    fn day(&self, count: u64, unix: u64) -> Option<LimitStatus> {
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

    /// The refusal of a message for which the day has no room.
    pub(super) fn too_many(&self, count: u64, unix: u64) -> Exceeded {
        let none = LimitStatus { limit: 0, remaining: 0, reset: 0 };
        let status = self.day(count, unix).unwrap_or(none);
        Exceeded { window: LimitPeriod::Day, status, retry_after: status.reset.max(1) }
    }
}
