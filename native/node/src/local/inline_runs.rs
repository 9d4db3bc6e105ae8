//! Decides which messages are tried on the thread that serves their connection.
//!
//! Moving a message to another thread and back takes as long as most calls. So a message that may be short runs on
//! the connection's thread for at most [`MAX_INLINE_RUN`]; a message that is not finished by then moves. Inline runs delay the
//! other connections of the thread. So an address whose messages take longer is not tried for a while, and while several addresses send
//! messages, all inline runs together take at most a quarter of the time, and at most [`BURST`] in a row.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rootlight_limits::caller_id::CallerId;
use rootlight_limits::processors::time_used;

/// Longest inline run.
const MAX_INLINE_RUN: Duration = Duration::from_micros(200);

/// After a message that took longer than [`MAX_INLINE_RUN`], no message of its address is tried for this many times as long. Code
/// that hashes megabytes with one instruction takes milliseconds before it can be interrupted. A rest of the same length
/// for every message would let such code take much of a thread's time.
const REST_FACTOR: u64 = 200;

/// The time after a message of another address for which several addresses count as sending messages.
const SHARED_TIME: Duration = Duration::from_secs(1);

/// While several addresses send messages, an inline run uses up this many times its length, so that inline runs take a quarter of the time.
const PRICE: u64 = 4;

/// The time that inline runs may take in a row while several addresses send messages: another client's message waits for that long.
const BURST: Duration = Duration::from_millis(4);

/// The longest time without inline runs because of the time that earlier ones took.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Number of entries for the rests of addresses; bounds memory. Two addresses that share an entry rest together, which only costs
/// speed.
const ENTRIES: u64 = 256;

/// The inline runs of a service. Times are in microseconds since it was made; relaxed atomic numbers suffice, because a
/// lost update only allows or prevents an inline run.
#[derive(Debug)]
pub(super) struct InlineRuns {
    made: Instant,
    /// The longest inline run: [`MAX_INLINE_RUN`], except in tests.
    longest: AtomicU64,
    /// The end of the rest of each address, by entry.
    rest_ends: Vec<AtomicU64>,
    /// The address of the newest message.
    newest: AtomicU64,
    /// The time until which several addresses count as sending messages.
    shared: AtomicU64,
    /// The time at which the time that all inline runs so far used up has passed.
    paid: AtomicU64,
}

/// A message that is being tried.
pub(super) struct InlineRun {
    started: Instant,
    /// The processor time that the thread had used at the begin.
    used: Duration,
}

impl InlineRun {
    /// Begins an inline run now, on this thread.
    pub(super) fn begin() -> Self {
        Self { started: Instant::now(), used: time_used() }
    }
}

impl InlineRuns {
    pub(super) fn new() -> Self {
        let number = || AtomicU64::new(0);
        let rest_ends = (0..ENTRIES).map(|_| number()).collect();
        Self {
            made: Instant::now(),
            longest: AtomicU64::new(micros(MAX_INLINE_RUN)),
            rest_ends,
            newest: number(),
            shared: number(),
            paid: number(),
        }
    }

    /// Notes that this client has sent a message.
    pub(super) fn sent(&self, caller_id: CallerId) {
        self.sent_at(caller_id.quota_owner().number, || self.now());
    }

    /// Whether a message of this client may be tried.
    pub(super) fn allows(&self, caller_id: CallerId) -> bool {
        self.allows_at(caller_id.quota_owner().number, self.now())
    }

    /// Notes how long an inline run took.
    pub(super) fn note_duration(&self, caller_id: CallerId, inline_run: &InlineRun) {
        self.note_duration_at(caller_id.quota_owner().number, self.time_of(inline_run), self.now());
    }

    /// Whether an inline run has taken as long as it may.
    pub(super) fn is_over(&self, inline_run: &InlineRun) -> bool {
        self.time_of(inline_run) > self.longest()
    }

    /// The time that an inline run has taken. Time in which the thread had no processor does not count for the limit, because the work is
    /// nearly finished then and would begin anew on another thread. The processor time of a thread is read
    /// on Linux only.
    fn time_of(&self, inline_run: &InlineRun) -> Duration {
        let time = inline_run.started.elapsed();
        match cfg!(target_os = "linux") && time > self.longest() {
            true => time.min(time_used().saturating_sub(inline_run.used)),
            false => time,
        }
    }

    fn longest(&self) -> Duration {
        Duration::from_micros(self.longest.load(Ordering::Relaxed))
    }

    /// Changes the length of inline runs, and forgets what earlier ones took: on a busy machine any message may take longer
    /// than [`MAX_INLINE_RUN`].
    #[cfg(test)]
    pub(super) fn start_again(&self, longest: Duration) {
        self.longest.store(micros(longest), Ordering::Relaxed);
        self.paid.store(0, Ordering::Relaxed);
        self.rest_ends.iter().for_each(|end| end.store(0, Ordering::Relaxed));
    }

    /// Microseconds since the service was made.
    fn now(&self) -> u64 {
        micros(self.made.elapsed())
    }

    /// As [`Self::sent`], with the number of the quota owner and the time.
    fn sent_at(&self, owner: u64, now: impl FnOnce() -> u64) {
        if self.newest.swap(owner, Ordering::Relaxed) != owner {
            self.shared.store(now().saturating_add(micros(SHARED_TIME)), Ordering::Relaxed);
        }
    }

    /// As [`Self::allows`], with the number of the quota owner and the time.
    fn allows_at(&self, owner: u64, now: u64) -> bool {
        let is_shared = now < self.shared.load(Ordering::Relaxed);
        // Inline runs have used up the time until `paid`; up to a burst of it may lie in the future.
        let ahead = self.paid.load(Ordering::Relaxed).saturating_sub(now);
        let is_used_up = ahead >= micros(BURST).saturating_mul(PRICE);
        let rests = self.rest_end_of(owner).is_some_and(|end| now < end.load(Ordering::Relaxed));
        !(rests || is_shared && is_used_up)
    }

    /// As [`Self::note_duration`], with the number of the quota owner and the times.
    fn note_duration_at(&self, owner: u64, time: Duration, now: u64) {
        let paid = self.paid.load(Ordering::Relaxed).max(now);
        let paid = paid.saturating_add(micros(time).saturating_mul(PRICE));
        self.paid.store(paid.min(now.saturating_add(micros(LONGEST_PAUSE))), Ordering::Relaxed);
        if let (true, Some(end)) = (time > self.longest(), self.rest_end_of(owner)) {
            end.store(now.saturating_add(micros(time).saturating_mul(REST_FACTOR)), Ordering::Relaxed);
        }
    }

    /// The entry of a quota owner.
    fn rest_end_of(&self, owner: u64) -> Option<&AtomicU64> {
        // Neighbouring addresses and networks differ in their low bits.
        let entry = owner.wrapping_add(owner >> 8) % ENTRIES;
        self.rest_ends.get(usize::try_from(entry).ok()?)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_rests_after_a_message_that_took_too_long() {
        let runs = InlineRuns::new();
        runs.note_duration_at(7, MAX_INLINE_RUN, 10);
        assert!(runs.allows_at(7, 10));
        for long in [MAX_INLINE_RUN + Duration::from_micros(1), Duration::from_millis(10)] {
            runs.note_duration_at(7, long, 20);
            let end = 20 + micros(long) * REST_FACTOR;
            assert!(!runs.allows_at(7, 20) && !runs.allows_at(7, end - 1));
            assert!(runs.allows_at(8, 20), "another address");
            assert!(runs.allows_at(7, end));
        }
    }

    /// The time that inline runs of 100 µs take from `from` on, for as long as they are allowed one after the other until `to`.
    fn taken(runs: &InlineRuns, owner: u64, from: u64, to: u64) -> u64 {
        let (mut now, mut taken) = (from, 0);
        while now < to {
            if runs.allows_at(owner, now) {
                (now, taken) = (now + 100, taken + 100);
                runs.note_duration_at(owner, Duration::from_micros(100), now);
            } else {
                now += 10;
            }
        }
        taken
    }

    #[test]
    fn attempts_take_a_quarter_of_the_time_while_several_addresses_send_messages() {
        let runs = InlineRuns::new();
        let start = 10_000_000;
        runs.sent_at(7, || start - micros(SHARED_TIME));
        assert_eq!(taken(&runs, 7, start, start + 500_000), 500_000, "no other client waits");
        runs.sent_at(8, || start + 500_000);
        let pause = start + 500_000 + micros(LONGEST_PAUSE);
        assert_eq!(taken(&runs, 8, start + 500_000, pause - micros(BURST) * PRICE), 0);
        runs.sent_at(7, || pause);
        let mut most = 0;
        for window in 0..80 {
            let from = pause + window * 10_000;
            most = most.max(taken(&runs, 7, from, from + 10_000));
        }
        assert!(most <= micros(BURST) + 2_600, "{most} of 10,000");
        let second = taken(&runs, 8, pause + 800_000, pause + 990_000);
        assert!((40_000..=52_000).contains(&second), "{second} of 190,000");
    }
}
