//! A limit on messages or bytes over any minute.

/// Number of slots, one for each second. There is one more than a minute has, because an amount is removed only when a whole minute has
/// passed after its second.
const SLOTS: usize = 61;

/// Counts amounts, whose sum in any 60 seconds is at most a limit. The count is by whole seconds, which can only make the limit
/// stricter.
///
/// The reference counts by minutes of its own clock, which peers cannot read. A limit over every span of 60 seconds also holds in each
/// of those minutes.
#[derive(Debug, Clone)]
pub struct RateWindow {
    limit: u64,
    /// The sum of the slots.
    total: u64,
    /// The latest second seen.
    second: u64,
    /// The amount of each of the last seconds up to `second`, at the position of the second modulo [`SLOTS`].
    slots: [u64; SLOTS],
}

impl RateWindow {
    /// At most `limit` in any minute.
    pub const fn new(limit: u64) -> Self {
        Self { limit, total: 0, second: 0, slots: [0; SLOTS] }
    }

    /// Counts `amount` at the time `now_ms` (milliseconds of any clock that does not go back).
    ///
    /// # Errors
    /// The amount exceeds the limit and was not counted. The error is the number of milliseconds after which it may be
    /// counted; an amount that exceeds the limit by itself never is.
    pub fn take(&mut self, now_ms: u64, amount: u64) -> Result<(), u64> {
        self.advance(now_ms / 1000);
        let total = self.total.saturating_add(amount);
        if total > self.limit {
            return Err(self.wait(now_ms, total.saturating_sub(self.limit)));
        }
        self.total = total;
        if let Some(slot) = self.slots.get_mut(slot(self.second)) {
            *slot = slot.saturating_add(amount);
        }
        Ok(())
    }

    /// How much may be counted at this time.
    pub fn left(&mut self, now_ms: u64) -> u64 {
        self.advance(now_ms / 1000);
        self.limit.saturating_sub(self.total)
    }

    /// Removes the amounts of seconds that are more than a minute ago.
    fn advance(&mut self, second: u64) {
        let Some(passed) = second.checked_sub(self.second) else { return };
        if passed >= SLOTS as u64 {
            (self.total, self.slots) = (0, [0; SLOTS]);
            self.second = second;
            return;
        }
        while self.second < second {
            self.second = self.second.saturating_add(1);
            if let Some(slot) = self.slots.get_mut(slot(self.second)) {
                self.total = self.total.saturating_sub(*slot);
                *slot = 0;
            }
        }
    }

    /// Milliseconds until amounts of at least `excess` have been removed; at most 61 seconds, also for an amount above the limit.
    fn wait(&self, now_ms: u64, mut excess: u64) -> u64 {
        let oldest = self.second.saturating_add(1);
        let mut end = oldest;
        for age in 0..SLOTS as u64 {
            end = oldest.saturating_add(age);
            let amount = self.slots.get(slot(end)).copied().unwrap_or(0);
            excess = excess.saturating_sub(amount);
            if excess == 0 {
                break;
            }
        }
        end.saturating_mul(1000).saturating_sub(now_ms)
    }
}

/// The position of the slot of a second.
fn slot(second: u64) -> usize {
    // The remainder is below 61, so the conversion loses nothing.
    second.checked_rem(SLOTS as u64).unwrap_or(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limit_holds_for_a_minute() {
        let mut window = RateWindow::new(10);
        for at in 0..10 {
            assert_eq!(window.take(at * 100, 1), Ok(()));
        }
        assert_eq!(window.take(1000, 1), Err(60_000));
        assert_eq!(window.take(60_999, 1), Err(1));
        assert_eq!(window.take(61_000, 1), Ok(()));
        assert_eq!(window.left(61_000), 9);
        assert!(window.take(61_000, 11).is_err());
    }

    proptest! {
        #[test]
        fn no_minute_holds_more_than_the_limit(
            limit in 1u64..50, steps in proptest::collection::vec((0u64..20_000, 1u64..10), 1..200),
        ) {
            let mut window = RateWindow::new(limit);
            let (mut now, mut taken) = (0, Vec::new());
            for (step, amount) in steps {
                now += step;
                match window.take(now, amount) {
                    Ok(()) => taken.push((now, amount)),
                    Err(wait) => {
                        let before: u64 = taken.iter().filter(|(at, _)| at + 61_000 > now).map(|(_, amount)| amount).sum();
                        prop_assert!(before + amount > limit);
                        prop_assert!(wait > 0 && wait <= 61_000);
                        if amount <= limit {
                            prop_assert!(window.clone().take(now + wait, amount).is_ok());
                            prop_assert!(window.clone().take(now + wait - 1, amount).is_err());
                        }
                    }
                }
                let minute: u64 = taken.iter().filter(|(at, _)| at + 60_000 > now).map(|(_, amount)| amount).sum();
                prop_assert!(minute <= limit);
            }
        }

        #[test]
        fn a_clock_that_goes_back_frees_nothing(back in 0u64..100_000) {
            let mut window = RateWindow::new(1);
            prop_assert_eq!(window.take(100_000, 1), Ok(()));
            prop_assert!(window.take(100_000 - back, 1).is_err());
        }
    }
}
