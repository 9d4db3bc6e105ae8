//! Time limits of blocks that are mined or imported here.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rootlight::exec::Watchdog;

/// How long blocks may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockLimits {
    /// One block; nothing for blocks that must be taken whatever they cost, as a follower's.
    pub(super) block: Option<Duration>,
    /// All blocks of one message.
    pub(super) message: Option<Duration>,
}

/// Measures the blocks of one message, and ends them when the program stops.
pub(super) struct BlockClock {
    limits: BlockLimits,
    message: Instant,
    block: Mutex<Instant>,
    stopping: Arc<AtomicBool>,
}

impl BlockClock {
    /// A clock that starts now.
    pub(super) fn start(limits: BlockLimits, stopping: Arc<AtomicBool>) -> Self {
        let now = Instant::now();
        Self { limits, message: now, block: Mutex::new(now), stopping }
    }
}

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
