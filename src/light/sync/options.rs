//! Settings of synchronization, which hosts set, and the steps that the machine returns to hosts.

use alloc::vec::Vec;

use crate::{light::upstream::UpstreamRequest, types::U256};

/// Number of ancestors of the checkpoint that the backfill fetches by default. The fork detection data (RSKIP-110) of
/// a block depends on up to 449 of its ancestors.
pub(super) const FORK_WINDOW: u64 = 449;

/// Times and limits of synchronization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncOptions {
    /// Pause between two checks for new blocks, in milliseconds; 0 counts as 1.
    pub poll: u64,
    /// First pause after a failure, in milliseconds; each further consecutive failure doubles it. 0 counts as 1.
    pub retry: u64,
    /// Longest pause after failures, in milliseconds; 0 counts as 1.
    pub longest_retry: u64,
    /// Most headers that are requested from an upstream at a time (a header window); 0 counts as 1.
    pub batch: usize,
    /// Number of ancestors of the checkpoint to fetch; each is verified only by the hash in its child.
    pub backfill: u64,
    /// The difficulty from which the work floor computes the promised work, if it is not the checkpoint's.
    pub promised: Option<U256>,
    /// The share, in percent, of the work promised by the checkpoint's difficulty that every stretch of 2, 6 and 24
    /// hours must show. 0 requires none, but counts as 1 in a start by work; more than 100 counts as 100.
    pub work_floor: u64,
    /// Whether the trusted checkpoint is the block 0 that the upstreams show, on a chain of which no block is known in
    /// advance. `rootlight_syncStatus` and `rootlight_verification` then call the start `upstream`.
    pub shown_start: bool,
}

impl Default for SyncOptions {
    fn default() -> Self {
        Self {
            poll: 5_000,
            retry: 5_000,
            longest_retry: 600_000,
            batch: 200,
            backfill: FORK_WINDOW,
            promised: None,
            work_floor: 50,
            shown_start: false,
        }
    }
}

/// The host's next step for an upstream.
#[derive(Debug)]
pub enum SyncStep {
    /// Send these requests and [`HeaderSync::feed`](super::HeaderSync::feed) the responses in the same order.
    Fetch(Vec<UpstreamRequest>),
    /// Nothing to do now: call again after this many milliseconds.
    Wait(u64),
}

impl SyncOptions {
    /// The options with pauses of at least a millisecond, so that hosts do not ask again without any pause, and with a floor of at
    /// most 100 percent.
    pub(super) fn bounded(self) -> Self {
        Self {
            poll: self.poll.max(1),
            retry: self.retry.max(1),
            longest_retry: self.longest_retry.max(1),
            work_floor: self.work_floor.min(100),
            ..self
        }
    }
}
