//! The time of blocks: the host's clock, moved and stopped as tests want it.

use super::error::DevError;

/// Where the time of the next block comes from. All times are in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Clock {
    /// Added to the host's clock.
    offset: i64,
    /// The next block's time, once.
    next: Option<u64>,
    /// Each block comes this many seconds after its parent, whatever the clock says.
    interval: Option<u64>,
}

impl Clock {
    /// The chain's time when the host's clock shows `now`.
    #[must_use]
    pub fn now(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.offset)
    }

    /// The time of a block after a parent of this time.
    #[must_use]
    pub fn block_time(&self, parent: u64, now: u64) -> u64 {
        let earliest = parent.saturating_add(1);
        match (self.next, self.interval) {
            (Some(next), _) => next.max(earliest),
            (None, Some(interval)) => parent.saturating_add(interval.max(1)),
            (None, None) => self.now(now).max(earliest),
        }
    }

    /// A block of this time was mined: a time set for it is used up, and the clock goes on from there.
    pub(super) fn mined(&mut self, time: u64, now: u64) {
        if self.next.take().is_some() {
            self.set(time, now);
        }
    }

    /// Moves the clock ahead; gives by how much it is ahead of the host's now.
    pub fn increase(&mut self, seconds: u64) -> i64 {
        self.offset = self.offset.saturating_add_unsigned(seconds);
        self.offset
    }

    /// Sets the clock; it goes on from there. Gives by how much it is ahead of the host's now.
    pub fn set(&mut self, time: u64, now: u64) -> i64 {
        let (time, now) = (i64::try_from(time).unwrap_or(i64::MAX), i64::try_from(now).unwrap_or(i64::MAX));
        self.offset = time.saturating_sub(now);
        self.offset
    }

    /// Sets the time of the next block, which must come after its parent's.
    ///
    /// # Errors
    /// [`DevError::Timestamp`].
    pub fn set_next(&mut self, time: u64, parent: u64) -> Result<(), DevError> {
        if time <= parent {
            return Err(DevError::Timestamp { time, parent });
        }
        self.next = Some(time);
        Ok(())
    }

    /// Fixes the time between two blocks, or lets the clock decide again.
    pub fn set_interval(&mut self, seconds: Option<u64>) {
        self.interval = seconds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_follow_the_clock_but_never_go_back() {
        let mut clock = Clock::default();
        assert_eq!((clock.block_time(10, 100), clock.block_time(100, 100)), (100, 101));
        assert_eq!(clock.increase(50), 50);
        assert_eq!(clock.increase(10), 60);
        assert_eq!(clock.block_time(10, 100), 160);
        assert_eq!(clock.set(20, 100), -80);
        assert_eq!((clock.block_time(10, 100), clock.block_time(10, 200)), (20, 120));
    }

    #[test]
    fn a_time_set_for_the_next_block_moves_the_clock() {
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
