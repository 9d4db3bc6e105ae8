//! Progress of a long import: a bar on a terminal, log lines elsewhere.

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use tracing::info;

use crate::progress::{WORTH_A_BAR, progress_bar};

/// Interval between log lines.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// Progress from a first block to a target, which moves as the upstream's chain grows.
pub(super) struct Progress {
    bar: Option<ProgressBar>,
    started: Instant,
    first: u64,
    target: u64,
    last_line: Instant,
    /// Highest block reported so far.
    reached: u64,
    /// Whether the target was reached once. From then on each block has a line of its own.
    done: bool,
}

impl Progress {
    /// Starts at block `first`, with nothing imported.
    pub(super) fn start(first: u64) -> Self {
        let now = Instant::now();
        Self { bar: None, started: now, first, target: first, last_line: now, reached: first, done: false }
    }

    /// Sets the height to reach.
    pub(super) fn set_target(&mut self, target: u64) {
        self.target = target;
        let worth = !self.done && target.saturating_sub(self.first) >= WORTH_A_BAR;
        if self.bar.is_none() && worth && std::io::stderr().is_terminal() {
            self.bar = Some(progress_bar(self.first, target, "blocks"));
        }
        if let Some(bar) = &self.bar {
            bar.set_length(target);
        }
    }

    /// Reports that the blocks up to this one are imported.
    pub(super) fn at(&mut self, block: u64) {
        if block == self.reached {
            return;
        }
        self.reached = block;
        if let Some(bar) = &self.bar {
            bar.set_position(block);
        } else if self.done {
            info!("block {block} executed, all roots match");
        } else if self.last_line.elapsed() >= LINE_INTERVAL {
            let rate = block.saturating_sub(self.first) as f64 / self.started.elapsed().as_secs_f64();
            let left = self.target.saturating_sub(block) as f64 / rate.max(f64::MIN_POSITIVE);
            info!("block {block} of {}, {rate:.0} blocks per second, about {left:.0} s left", self.target);
            self.last_line = Instant::now();
        }
    }

    /// Reports that the target is reached.
    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        if !self.done {
            let count = self.target.saturating_sub(self.first);
            info!(
                "{count} blocks executed in {:.1} s, all roots match",
                self.started.elapsed().as_secs_f64()
            );
        }
        self.done = true;
    }
}
