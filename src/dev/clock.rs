//! The timestamps of blocks: the host's clock, which tests can move and stop.

use super::error::DevError;

/// Determines the timestamp of the next block. All times are in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// Seconds added to the host's clock.
    offset: i64,
    /// Timestamp of the next block only.
    next: Option<u64>,
    /// Fixed number of seconds between a block and its parent, independent of the clock.
    interval: Option<u64>,
}

impl Clock {
    /// The chain's time when the host's time is `now`.
    #[must_use]
    pub fn now(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.offset)
    }

    /// The timestamp of a block whose parent has the timestamp `parent`.
    #[must_use]
    pub fn block_time(&self, parent: u64, now: u64) -> u64 {
        let earliest = parent.saturating_add(1);
        match (self.next, self.interval) {
            (Some(next), _) => next.max(earliest),
            (None, Some(interval)) => parent.saturating_add(interval.max(1)),
            (None, None) => self.now(now).max(earliest),
        }
    }

    /// Notes that a block with this timestamp was mined. If [`Self::set_next`] set it, the clock continues from it.
    pub(super) fn mined(&mut self, time: u64, now: u64) {
        if self.next.take().is_some() {
            self.set(time, now);
        }
    }

    /// Moves the clock ahead. Returns by how many seconds it is now ahead of the host's clock.
    pub fn increase(&mut self, seconds: u64) -> i64 {
        self.offset = self.offset.saturating_add_unsigned(seconds);
        self.offset
    }

    /// Sets the clock, which continues from `time`. Returns by how many seconds it is now ahead of the host's clock.
    pub fn set(&mut self, time: u64, now: u64) -> i64 {
        let (time, now) = (i64::try_from(time).unwrap_or(i64::MAX), i64::try_from(now).unwrap_or(i64::MAX));
        self.offset = time.saturating_sub(now);
        self.offset
    }

    /// Sets the timestamp of the next block, which must be later than its parent's.
    ///
    /// # Errors
    /// [`DevError::Timestamp`] if it is not later.
    pub fn set_next(&mut self, time: u64, parent: u64) -> Result<(), DevError> {
        if time <= parent {
            return Err(DevError::Timestamp { time, parent });
        }
        self.next = Some(time);
        Ok(())
    }

    /// Sets the number of seconds between two blocks; with `None` the clock determines timestamps again.
    pub fn set_interval(&mut self, seconds: Option<u64>) {
        self.interval = seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_follow_the_clock_and_always_increase() {
        let mut clock = Clock::default();
        assert_eq!((clock.block_time(10, 100), clock.block_time(100, 100)), (100, 101));
        assert_eq!(clock.increase(50), 50);
        assert_eq!(clock.increase(10), 60);
        assert_eq!(clock.block_time(10, 100), 160);
        assert_eq!(clock.set(20, 100), -80);
        assert_eq!((clock.block_time(10, 100), clock.block_time(10, 200)), (20, 120));
    }

    #[test]
    fn a_timestamp_set_for_the_next_block_moves_the_clock() {
        let mut clock = Clock::default();
        assert!(clock.set_next(10, 10).is_err());
        clock.set_next(5_000, 10).unwrap();
        assert_eq!(clock.block_time(10, 100), 5_000);
        clock.mined(5_000, 100);
        assert_eq!(clock.block_time(5_000, 107), 5_007);
        clock.set_interval(Some(30));
        assert_eq!(clock.block_time(5_000, 107), 5_030);
        clock.set_interval(None);
        assert_eq!(clock.block_time(5_000, 107), 5_007);
    }
}
