//! Time limits for the blocks that a local chain mines or imports; the core asks the [`Watchdog`] while it executes a block.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rootlight::exec::Watchdog;

/// Time limits for executing blocks.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockLimits {
    /// Limit of one block; `None` for a follower, which must import the blocks of its chain however long they take.
    pub(super) block: Option<Duration>,
    /// Limit of all blocks that one message mines.
    pub(super) message: Option<Duration>,
}

/// Measures the time of the blocks of one message, and interrupts them when the program stops.
pub(super) struct BlockClock {
    limits: BlockLimits,
    /// When the message began.
    message: Instant,
    /// When the present block began.
    block: Mutex<Instant>,
    stopping: Arc<AtomicBool>,
}

impl BlockClock {
    pub(super) fn start(limits: BlockLimits, stopping: Arc<AtomicBool>) -> Self {
        let now = Instant::now();
        Self { limits, message: now, block: Mutex::new(now), stopping }
    }
}

/// Whether more time than the limit has passed.
fn over(since: Instant, limit: Option<Duration>) -> bool {
    limit.is_some_and(|limit| since.elapsed() > limit)
}

impl Watchdog for BlockClock {
    fn next_block(&self) -> bool {
        *self.block.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        !over(self.message, self.limits.message)
    }

    fn is_due(&self) -> bool {
        let since = *self.block.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_stopping() || over(since, self.limits.block)
    }

    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}
