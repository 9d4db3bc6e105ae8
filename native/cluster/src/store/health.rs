//! Notes which parts of the hot store answer, and holds commands back from parts that fail.
//!
//! A cluster divides its keys by 16,384 slots, and each server has a range of them. When one server fails, the others
//! still answer, so failures are noted by range of slots. A part of the store is such a range here, whatever the ranges of
//! the servers are.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;
/// Number of ranges of slots.
const RANGES: usize = 64;
/// Slots in a range: `SLOTS / RANGES`.
const RANGE_SLOTS: u16 = 256;
/// Failures in a row after which a range gets no commands for a while.
const MAX_FAILURES: u32 = 3;

/// The slot of a key, as Redis Cluster defines it: of the text between the first braces if it is not empty, else of the whole key.
pub(super) fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open.saturating_add(1)..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(key)) % SLOTS
}

/// The failures of a range of slots. Times are those of [`Health::now`].
#[derive(Default)]
struct SlotRange {
    /// Failures in a row.
    failures: AtomicU32,
    /// The time until which the range gets no commands, once it has failed [`MAX_FAILURES`] times.
    closed_until: AtomicU64,
    /// The time of the first failure in a row; 0 if the last command succeeded.
    failing_since: AtomicU64,
}

/// Which parts of the store answer.
pub(super) struct Health {
    ranges: Vec<SlotRange>,
    start: Instant,
    /// Milliseconds for which a range that fails gets no commands.
    pause: u64,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Health {
    pub(super) fn new(pause: Duration) -> Self {
        let ranges = std::iter::repeat_with(SlotRange::default).take(RANGES).collect();
        Self { ranges, start: Instant::now(), pause: millis(pause).max(1) }
    }

    /// Milliseconds since the start, plus 1: 0 stands for no time.
    fn now(&self) -> u64 {
        millis(self.start.elapsed()).saturating_add(1)
    }

    /// The range of a slot.
    fn range(&self, slot: u16) -> Option<&SlotRange> {
        self.ranges.get(usize::from(slot / RANGE_SLOTS))
    }

    /// Whether a command about this slot may be sent. To a range that fails, one command may be sent in each pause, to find out
    /// whether it answers again.
    pub(super) fn admits(&self, slot: u16) -> bool {
        let Some(range) = self.range(slot) else { return false };
        let until = range.closed_until.load(Ordering::Acquire);
        let now = self.now();
        if range.failures.load(Ordering::Acquire) < MAX_FAILURES {
            return true;
        }
        let next = now.saturating_add(self.pause);
        // The exchange succeeds for one of several commands at a time.
        until <= now
            && range.closed_until.compare_exchange(until, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Notes that a command was answered.
    pub(super) fn succeeded(&self, slot: u16) {
        if let Some(range) = self.range(slot) {
            range.failures.store(0, Ordering::Release);
            range.failing_since.store(0, Ordering::Release);
        }
    }

    /// Notes that a command failed.
    pub(super) fn failed(&self, slot: u16) {
        let Some(range) = self.range(slot) else { return };
        let now = self.now();
        range.closed_until.store(now.saturating_add(self.pause), Ordering::Release);
        let more = |failures: u32| Some(failures.saturating_add(1));
        let _ = range.failures.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        let _ = range.failing_since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether no part has failed [`MAX_FAILURES`] times in a row.
    pub(super) fn is_up(&self) -> bool {
        self.ranges.iter().all(|range| range.failures.load(Ordering::Acquire) < MAX_FAILURES)
    }

    /// How long the part that fails longest has failed.
    pub(super) fn failing_for(&self) -> Duration {
        let now = self.now();
        let since = self.ranges.iter().map(|range| range.failing_since.load(Ordering::Acquire));
        let longest = since.filter(|since| *since > 0).map(|since| now.saturating_sub(since)).max();
        Duration::from_millis(longest.unwrap_or(0))
    }

    /// Forgets all failures, because there is a new connection.
    pub(super) fn reset(&self) {
        for range in &self.ranges {
            range.failures.store(0, Ordering::Release);
            range.failing_since.store(0, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_cluster_specification() {
        // The check value of CRC-16/XMODEM, and the examples of the specification of Redis Cluster.
        assert_eq!(slot(b"123456789"), 0x31c3 % SLOTS);
        assert_eq!(slot(b"{user1000}.following"), slot(b"{user1000}.followers"));
        assert_eq!(slot(b"foo{}{bar}"), crc16::State::<crc16::XMODEM>::calculate(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
    }

    #[test]
    fn a_part_that_fails_is_asked_once_in_a_pause_and_the_others_go_on() {
        let health = Health::new(Duration::from_secs(3_600));
        for _ in 0..MAX_FAILURES {
            assert!(health.admits(5));
            health.failed(5);
        }
        assert!(!health.admits(5) && !health.admits(RANGE_SLOTS - 1) && !health.is_up());
        assert!(health.admits(RANGE_SLOTS) && health.admits(SLOTS - 1));
        health.succeeded(5);
        assert!(health.admits(5) && health.is_up() && health.failing_for().is_zero());
        let health = Health::new(Duration::from_millis(1));
        (0..MAX_FAILURES).for_each(|_| health.failed(5));
        std::thread::sleep(Duration::from_millis(5));
        assert!(health.admits(5));
        assert!(!health.failing_for().is_zero());
    }
}
