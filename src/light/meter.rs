//! Measures the rate of synchronization and estimates the time left.

use super::clock::Now;

/// Progress of synchronization.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of the block where this client started.
    pub start: u64,
    /// Number of the newest verified block.
    pub head: u64,
    /// Number of the newest block that an upstream in good standing announces; at least `head`.
    pub target: u64,
    /// Headers per second since the start.
    pub rate: u64,
    /// Seconds left at this rate; `None` while the rate is not known.
    pub left: Option<u64>,
}

/// Counts verified headers over time. Times are in milliseconds of the monotonic clock.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SyncMeter {
    /// When the first headers were requested.
    began: Option<u64>,
    /// When headers arrived last.
    last: u64,
    /// Number of headers since `began`.
    headers: u64,
}

impl SyncMeter {
    /// Counts headers that were requested at `asked` and arrived at `now`.
    pub(super) fn count(&mut self, headers: u64, asked: u64, now: Now) {
        self.began.get_or_insert(asked);
        self.last = now.millis;
        self.headers = self.headers.saturating_add(headers);
    }

    /// The progress from the block `start` to the block `target`, at the rate so far. The elapsed time counts as at least 1 ms.
    pub(super) fn progress(&self, start: u64, head: u64, target: u64) -> Progress {
        let elapsed = self.last.saturating_sub(self.began.unwrap_or(self.last)).max(1);
        let rate = self.headers.saturating_mul(1_000).checked_div(elapsed).unwrap_or(0);
        let missing = target.saturating_sub(head);
        let left = missing.saturating_mul(elapsed).checked_div(self.headers).map(|millis| millis / 1_000);
        Progress { start, head, target: target.max(head), rate, left }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_time_left() {
        let mut meter = SyncMeter::default();
        assert_eq!(meter.progress(5, 5, 100).left, None);
        meter.count(50, 1_000, Now { unix: 0, millis: 2_000 });
        let progress = meter.progress(0, 50, 200);
        assert_eq!((progress.rate, progress.left), (50, Some(3)));
        assert_eq!(meter.progress(0, 50, 40).target, 50, "the target is never below the head");
    }
}
