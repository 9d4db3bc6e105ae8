//! What a filter selects, and what a poll of it returns.

use alloc::vec::Vec;

use alloy_primitives::B256;

use crate::engine::{BlockHeader, log_filter::LogFilter, logs::FoundLog, view::SyncProgress};

/// The items that a filter selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterSpec {
    /// Logs of a range of blocks. Without `to` the range grows with the chain.
    Logs {
        /// The selection of logs.
        filter: LogFilter,
        /// First block.
        from: u64,
        /// Last block.
        to: Option<u64>,
    },
    /// Logs of one block.
    BlockLogs {
        /// The selection of logs.
        filter: LogFilter,
        /// The block.
        block: B256,
    },
    /// New blocks.
    Blocks,
    /// Transactions that enter the pool.
    Pending,
    /// New blocks, with their headers.
    Heads,
    /// Whether the chain is synchronizing.
    Syncing,
}

/// The changes since the last poll.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterChanges {
    /// Logs, each with a flag that says whether a reorganisation took it back.
    Logs(Vec<(FoundLog, bool)>),
    /// Hashes of blocks or transactions.
    Hashes(Vec<B256>),
    /// Headers, oldest first.
    Heads(Vec<BlockHeader>),
    /// Synchronization has begun, with its progress, or ended (`Some(None)`); `None` if neither happened since the last poll.
    Syncing(Option<Option<SyncProgress>>),
}

/// The logs, all with the same flag that says whether a reorganisation took them back.
pub(super) fn marked(logs: Vec<FoundLog>, removed: bool) -> Vec<(FoundLog, bool)> {
    logs.into_iter().map(|log| (log, removed)).collect()
}
