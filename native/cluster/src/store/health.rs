//! Which parts of the store answer.
//!
//! A cluster divides its keys by 16,384 slots, and each server has a range of them. When one server fails, the others
//! answer on, so failures are noted by range of slots.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Slots of a cluster.
const SLOTS: u16 = 16_384;
/// Ranges of slots.
const RANGES: usize = 64;
/// Slots of a range.
const RANGE: u16 = 256;
/// Failures in a row after which a range is not asked for a while.
const FAILURES: u32 = 3;

/// The slot of a key: the part between the first braces, if there is one, decides.
pub(super) fn slot(key: &[u8]) -> u16 {
    let tag = key.iter().position(|byte| *byte == b'{').and_then(|open| {
        let rest = key.get(open.saturating_add(1)..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    });
    crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(key)) % SLOTS
}

#[derive(Default)]
struct SlotRange {
    failures: AtomicU32,
    /// The time, in milliseconds, until which nothing is asked.
    closed_until: AtomicU64,
    /// The time of the first failure in a row; 0 if the last command succeeded.
    failing_since: AtomicU64,
}

/// Which parts of the store answer.
pub(super) struct Health {
    parts: Vec<SlotRange>,
    start: Instant,
    pause: u64,
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl Health {
    pub(super) fn new(pause: Duration) -> Self {
        let parts = std::iter::repeat_with(SlotRange::default).take(RANGES).collect();
        Self { parts, start: Instant::now(), pause: millis(pause).max(1) }
    }

    /// Milliseconds of this clock, from 1.
    fn now(&self) -> u64 {
        millis(self.start.elapsed()).saturating_add(1)
    }

    fn part(&self, slot: u16) -> Option<&SlotRange> {
        self.parts.get(usize::from(slot / RANGE))
    }

    /// Whether a command may be sent. Of those to a part that fails, one in each pause may.
    pub(super) fn admits(&self, slot: u16) -> bool {
        let Some(part) = self.part(slot) else { return false };
        let until = part.closed_until.load(Ordering::Acquire);
        let now = self.now();
        if part.failures.load(Ordering::Acquire) < FAILURES {
            return true;
        }
        let next = now.saturating_add(self.pause);
        until <= now
            && part.closed_until.compare_exchange(until, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    pub(super) fn succeeded(&self, slot: u16) {
        if let Some(part) = self.part(slot) {
            part.failures.store(0, Ordering::Release);
            part.failing_since.store(0, Ordering::Release);
        }
    }

    pub(super) fn failed(&self, slot: u16) {
        let Some(part) = self.part(slot) else { return };
        let now = self.now();
        part.closed_until.store(now.saturating_add(self.pause), Ordering::Release);
        // Saturating: after so many failures one more makes no difference.
        let more = |failures: u32| Some(failures.saturating_add(1));
        let _ = part.failures.fetch_update(Ordering::AcqRel, Ordering::Acquire, more);
        let _ = part.failing_since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Whether every part answers as far as is known.
    pub(super) fn is_up(&self) -> bool {
        self.parts.iter().all(|part| part.failures.load(Ordering::Acquire) < FAILURES)
    }

    /// How long the part that fails longest has failed.
    pub(super) fn failing_for(&self) -> Duration {
        let now = self.now();
        let since = self.parts.iter().map(|part| part.failing_since.load(Ordering::Acquire));
        let longest = since.filter(|since| *since > 0).map(|since| now.saturating_sub(since)).max();
        Duration::from_millis(longest.unwrap_or(0))
    }

    /// Forgets all failures, because there is a new connection.
    pub(super) fn reset(&self) {
        for part in &self.parts {
            part.failures.store(0, Ordering::Release);
            part.failing_since.store(0, Ordering::Release);
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
        for _ in 0..FAILURES {
            assert!(health.admits(5));
            health.failed(5);
        }
        assert!(!health.admits(5) && !health.admits(RANGE - 1) && !health.is_up());
        assert!(health.admits(RANGE) && health.admits(SLOTS - 1));
        health.succeeded(5);
        assert!(health.admits(5) && health.is_up() && health.failing_for().is_zero());
        let health = Health::new(Duration::from_millis(1));
        (0..FAILURES).for_each(|_| health.failed(5));
        std::thread::sleep(Duration::from_millis(5));
        assert!(health.admits(5));
        assert!(!health.failing_for().is_zero());
    }
}
