//! The timestamps of blocks: the host's clock, which tests can move and stop.

use serde::{Deserialize, Serialize};

use super::error::DevError;
use super::limits::LAST_TIME;

/// Determines the timestamp of the next block. All times are in seconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    pub fn now(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.offset)
    }

    /// The timestamp of a block whose parent has the timestamp `parent`.
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
            self.continue_from(time, now);
        }
    }

    /// Moves the clock ahead: the next block is at least `seconds` later than its parent, which has the timestamp
    /// `parent` and may be ahead of the clock. Returns by how many seconds the clock is now ahead of the host's; where the clock does
    /// not determine the next timestamp, by how many that timestamp is.
    ///
    /// # Errors
    /// [`DevError::Time`] beyond [`LAST_TIME`].
    pub fn increase(&mut self, seconds: u64, parent: u64, now: u64) -> Result<i64, DevError> {
        if self.next.is_none() && self.interval.is_none() {
            let time = checked_time(self.now(now).max(parent).saturating_add(seconds))?;
            return Ok(self.continue_from(time, now));
        }
        // The clock does not determine the next timestamp here, so that timestamp itself moves.
        let time = checked_time(self.block_time(parent, now).saturating_add(seconds))?;
        self.next = Some(time);
        Ok(ahead(time, now))
    }

    /// Sets the clock, which continues from `time`. Returns by how many seconds it is now ahead of the host's clock.
    ///
    /// # Errors
    /// [`DevError::Time`] beyond [`LAST_TIME`].
    pub fn set(&mut self, time: u64, now: u64) -> Result<i64, DevError> {
        let time = checked_time(time)?;
        // With a fixed interval the clock does not determine the next timestamp.
        self.next = self.interval.map(|_| time);
        Ok(self.continue_from(time, now))
    }

    /// Sets the offset so that the clock shows `time` when the host's time is `now`. Returns the offset.
    fn continue_from(&mut self, time: u64, now: u64) -> i64 {
        self.offset = ahead(time, now);
        self.offset
    }

    /// Sets the timestamp of the next block, which must be later than its parent's.
    ///
    /// # Errors
    /// [`DevError::Timestamp`] if it is not later, [`DevError::Time`] beyond [`LAST_TIME`].
    pub fn set_next(&mut self, time: u64, parent: u64) -> Result<(), DevError> {
        if time <= parent {
            return Err(DevError::Timestamp { time, parent });
        }
        self.next = Some(checked_time(time)?);
        Ok(())
    }

    /// Sets the timestamp of the next block: `seconds` after its parent's, or the clock's time if that is later. A timestamp
    /// that was set for the next block stays.
    ///
    /// # Errors
    /// [`DevError::Time`] beyond [`LAST_TIME`].
    pub(super) fn space(&mut self, seconds: u64, parent: u64, now: u64) -> Result<(), DevError> {
        let time = checked_time(parent.saturating_add(seconds.max(1)))?;
        // With a fixed interval the clock does not determine timestamps.
        let earliest = if self.interval.is_some() { time } else { time.max(self.now(now)) };
        self.next.get_or_insert(earliest);
        Ok(())
    }

    /// The timestamp of the next block, if blocks after it can have later ones.
    ///
    /// # Errors
    /// [`DevError::Time`] from twice [`LAST_TIME`] on. Methods set no such time; blocks with a long fixed interval reach it.
    pub(super) fn next_time(&self, parent: u64, now: u64) -> Result<u64, DevError> {
        let time = self.block_time(parent, now);
        if time >= LAST_TIME.saturating_mul(2) { Err(DevError::Time(time)) } else { Ok(time) }
    }

    /// Sets the number of seconds between two blocks; with `None` the clock determines timestamps again.
    pub fn set_interval(&mut self, seconds: Option<u64>) {
        self.interval = seconds;
    }
}

/// Returns a time that methods may set; an error beyond [`LAST_TIME`].
fn checked_time(time: u64) -> Result<u64, DevError> {
    if time > LAST_TIME { Err(DevError::Time(time)) } else { Ok(time) }
}

/// By how many seconds a time is ahead of the host's time `now`; negative if it is behind.
fn ahead(time: u64, now: u64) -> i64 {
    let signed = |seconds: u64| i64::try_from(seconds).unwrap_or(i64::MAX);
    signed(time).saturating_sub(signed(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_follow_the_clock_and_always_increase() {
        let mut clock = Clock::default();
        assert_eq!((clock.block_time(10, 100), clock.block_time(100, 100)), (100, 101));
        assert_eq!(clock.increase(50, 10, 100), Ok(50));
        assert_eq!(clock.increase(10, 10, 100), Ok(60));
        assert_eq!(clock.block_time(10, 100), 160);
        assert_eq!(clock.set(20, 100), Ok(-80));
        assert_eq!((clock.block_time(10, 100), clock.block_time(10, 200)), (20, 120));
    }

    #[test]
    fn an_increase_starts_at_a_parent_that_is_ahead_of_the_clock() {
        let mut clock = Clock::default();
        assert_eq!(clock.increase(61, 250, 100), Ok(211));
        assert_eq!(clock.block_time(250, 100), 311);
        assert_eq!(clock.increase(9, 250, 100), Ok(220), "increases add up before a block is mined");
        assert_eq!(clock.block_time(250, 100), 320);
        // A clock that was set back.
        clock.set(20, 100).unwrap();
        clock.increase(5, 320, 100).unwrap();
        assert_eq!(clock.block_time(320, 100), 325);
    }

    #[test]
    fn an_increase_moves_a_timestamp_that_was_set_and_one_of_a_fixed_interval() {
        let mut clock = Clock::default();
        clock.set_next(300, 250).unwrap();
        assert_eq!(clock.increase(60, 250, 100), Ok(260));
        assert_eq!(clock.block_time(250, 100), 360);
        clock.mined(360, 100);
        clock.set_interval(Some(30));
        clock.increase(1_000, 360, 100).unwrap();
        clock.increase(1, 360, 100).unwrap();
        assert_eq!(clock.block_time(360, 100), 1_391);
        clock.mined(1_391, 100);
        assert_eq!(clock.block_time(1_391, 100), 1_421, "the interval applies again");
        clock.set(5_000, 100).unwrap();
        assert_eq!(clock.block_time(1_391, 100), 5_000);
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

    #[test]
    fn a_spaced_block_is_never_behind_the_clock_and_keeps_a_timestamp_that_was_set() {
        let mut clock = Clock::default();
        clock.space(60, 100, 103).unwrap();
        assert_eq!(clock.block_time(100, 103), 160);
        clock.mined(160, 103);
        clock.space(60, 160, 1_000).unwrap();
        assert_eq!(clock.block_time(160, 1_000), 1_057, "the clock is 57 s ahead of the host's");
        clock.mined(1_057, 1_000);
        clock.set_next(2_000, 1_057).unwrap();
        clock.space(60, 1_057, 1_000).unwrap();
        assert_eq!(clock.block_time(1_057, 1_000), 2_000);
        clock.mined(2_000, 1_000);
        clock.set_interval(Some(5));
        clock.space(60, 100, 1_000).unwrap();
        assert_eq!(clock.block_time(100, 1_000), 160, "with a fixed interval the clock does not count");
    }

    #[test]
    fn times_that_leave_no_room_for_later_blocks_are_refused_and_change_nothing() {
        let (now, parent) = (1_800_000_000, 1_700_000_000);
        for seconds in [u64::MAX, u64::MAX - now, LAST_TIME, i64::MAX as u64] {
            for interval in [None, Some(7)] {
                let mut clock = Clock { interval, ..Clock::default() };
                let before = clock;
                assert!(matches!(clock.increase(seconds, parent, now), Err(DevError::Time(_))), "{seconds}");
                assert!(matches!(clock.space(seconds, parent, now), Err(DevError::Time(_))));
                for time in [LAST_TIME + 1, u64::MAX] {
                    assert_eq!(clock.set(time, now), Err(DevError::Time(time)));
                    assert_eq!(clock.set_next(time, parent), Err(DevError::Time(time)));
                }
                assert_eq!(clock, before);
            }
        }
        // The latest time has later ones after it.
        let mut clock = Clock::default();
        clock.increase(LAST_TIME - now, parent, now).unwrap();
        assert_eq!(clock.next_time(parent, now), Ok(LAST_TIME));
        assert_eq!(clock.next_time(LAST_TIME, now + 9), Ok(LAST_TIME + 9));
        clock.set_interval(Some(u64::MAX));
        assert_eq!(clock.next_time(LAST_TIME, now), Err(DevError::Time(u64::MAX)));
        clock.set_interval(None);
        assert_eq!(clock.next_time(LAST_TIME, now), Ok(LAST_TIME + 1));
    }
}
