//! The limit of requests per second: the generic cell rate algorithm (GCRA), which stores one time instead of a count. Each
//! request moves the time at which the whole burst is available again further ahead, and a request that would move it by more
//! than the burst allows is refused.
//!
//! The crates for this algorithm refuse a message that weighs more than the burst for ever. Here a heavy message is admitted when
//! the whole burst is available, and the next messages wait until the rate has made up for it, so that a low limit makes a
//! heavy method rare and not unusable.

/// Nanoseconds of a second.
const SECOND: u64 = 1_000_000_000;

/// A rate with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Nanoseconds after which one request is available again.
    interval: u64,
    /// Requests that may come at once.
    burst: u64,
}

/// How much of the burst is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Remaining {
    /// Whole requests that may come now.
    pub requests: u64,
    /// Nanoseconds until the whole burst is available.
    pub full_in: u64,
}

/// The state of a limit: the time at which the whole burst is available again, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Gcra {
    full_at: u64,
}

impl Rate {
    /// A rate of so many requests per second, of which `burst` may come at once. Zero counts as one.
    pub fn new(per_second: u32, burst: u32) -> Self {
        Self { interval: SECOND / u64::from(per_second.max(1)), burst: burst.max(1).into() }
    }

    /// Requests that may come at once.
    pub fn burst(self) -> u64 {
        self.burst
    }

    /// The cost of a weight, in nanoseconds.
    pub fn cost(self, weight: u64) -> u64 {
        self.interval.saturating_mul(weight)
    }

    /// One of so many equal parts of the rate and of the burst; its burst is at least one request.
    pub fn share(self, parts: u32) -> Self {
        let parts = u64::from(parts.max(1));
        Self { interval: self.interval.saturating_mul(parts), burst: (self.burst / parts).max(1) }
    }

    /// Whole requests that may come at once, so many nanoseconds before the whole burst is available.
    pub fn left(self, full_in: u64) -> u64 {
        // The interval is 0 only above a billion requests per second.
        self.size().saturating_sub(full_in).checked_div(self.interval).unwrap_or(self.burst)
    }

    /// Nanoseconds in which the whole burst becomes available.
    pub fn size(self) -> u64 {
        self.interval.saturating_mul(self.burst)
    }
}

impl Gcra {
    /// Takes a weight at `now` (nanoseconds of a clock that never goes back).
    ///
    /// # Errors
    /// The weight is not available; returns the nanoseconds until it is. Nothing is taken then.
    pub fn take(&mut self, rate: Rate, weight: u64, now: u64) -> Result<Remaining, u64> {
        let used = self.full_at.saturating_sub(now);
        let cost = rate.interval.saturating_mul(weight);
        let late = used.saturating_add(cost.min(rate.size())).saturating_sub(rate.size());
        if late > 0 {
            return Err(late);
        }
        self.full_at = now.saturating_add(used).saturating_add(cost);
        Ok(self.left(rate, now))
    }

    /// How much of the burst is left at `now` (nanoseconds).
    pub fn left(self, rate: Rate, now: u64) -> Remaining {
        let full_in = self.full_at.saturating_sub(now);
        Remaining { requests: rate.left(full_in), full_in }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A bucket of tokens, of which there are `interval` for each request. It may go below empty.
    struct Bucket {
        tokens: i128,
        last: u64,
    }

    impl Bucket {
        fn take(&mut self, rate: Rate, weight: u64, now: u64) -> bool {
            let size = i128::from(rate.interval) * i128::from(rate.burst);
            self.tokens = (self.tokens + i128::from(now - self.last)).min(size);
            self.last = now;
            let cost = i128::from(rate.interval) * i128::from(weight);
            let fits = self.tokens >= cost.min(size);
            if fits {
                self.tokens -= cost;
            }
            fits
        }
    }

    proptest! {
        #[test]
        fn the_limit_admits_what_a_bucket_of_tokens_admits(
            per_second in 1_u32..2_000,
            burst in 1_u32..100,
            steps in prop::collection::vec((0_u64..300_000_000, 0_u64..150), 1..200),
        ) {
            let rate = Rate::new(per_second, burst);
            let (mut gcra, mut now) = (Gcra::default(), 0);
            let mut bucket = Bucket { tokens: i128::from(rate.size()), last: 0 };
            for (pause, weight) in steps {
                now += pause;
                let taken = gcra.take(rate, weight, now);
                prop_assert_eq!(taken.is_ok(), bucket.take(rate, weight, now));
                let tokens = bucket.tokens.max(0) / i128::from(rate.interval);
                prop_assert_eq!(i128::from(gcra.left(rate, now).requests), tokens);
                if let Err(wait) = taken {
                    // The returned time is exact.
                    prop_assert!(gcra.clone().take(rate, weight, now + wait - 1).is_err());
                    prop_assert!(gcra.clone().take(rate, weight, now + wait).is_ok());
                }
            }
        }

        #[test]
        fn over_time_no_more_passes_than_the_burst_and_the_rate(
            per_second in 1_u32..1_000,
            burst in 1_u32..50,
            weight in 1_u64..20,
        ) {
            let rate = Rate::new(per_second, burst);
            let (mut gcra, mut passed) = (Gcra::default(), 0_u64);
            let seconds = 10;
            for step in 0..seconds * 1_000 {
                while gcra.take(rate, weight, step * 1_000_000).is_ok() {
                    passed += weight;
                }
            }
            let most = u64::from(burst) + seconds * SECOND / rate.interval + weight;
            prop_assert!(passed <= most, "{} > {}", passed, most);
        }
    }

    #[test]
    fn numbers_at_the_limits_do_not_overflow() {
        let rate = Rate::new(u32::MAX, u32::MAX);
        assert!(Gcra::default().take(rate, u64::MAX, u64::MAX).is_ok());
        let rate = Rate::new(0, 0);
        let mut gcra = Gcra::default();
        assert!(gcra.take(rate, u64::MAX, 0).is_ok());
        assert!(gcra.take(rate, 1, 1).is_err());
    }
}
