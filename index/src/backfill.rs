//! Fills the partitions that end well below the head, several at a time, newest first. The newest partitions, whose
//! blocks may be reorganised, are loaded by `tail.rs` meanwhile. (A light client's backfill, of headers, is something else.)

use std::collections::VecDeque;
use std::sync::{Arc, Mutex as SyncMutex, PoisonError};

use tokio::sync::Mutex;

use crate::context::{LoadError, LoaderContext};
use crate::error::IndexError;
use crate::source::SourceError;
use crate::state::PartitionRange;

/// The partitions that no task has begun to fill yet.
pub(crate) struct Backfill {
    /// The newest range is in front.
    ranges: SyncMutex<VecDeque<PartitionRange>>,
    /// Locked by the task that marks ancestors as proven, so that two tasks do not mark them at the same time.
    marking: Mutex<()>,
}

impl Backfill {
    /// Queues those of the ranges that lack blocks or secondary indexes. `ranges` is in ascending order.
    pub(crate) fn new(ranges: Vec<PartitionRange>) -> Self {
        let left = ranges.into_iter().filter(|range| !range.is_full() || !range.searchable);
        Self { ranges: SyncMutex::new(left.rev().collect()), marking: Mutex::new(()) }
    }

    /// Takes the newest range out of the queue.
    fn next_range(&self) -> Option<PartitionRange> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

/// Fills ranges until none is left. Several tasks run this at a time. `batch` is the most blocks of one transaction.
pub(crate) async fn fill(
    context: LoaderContext,
    backfill: Arc<Backfill>,
    batch: u64,
) -> Result<(), LoadError> {
    while let Some(range) = backfill.next_range() {
        fill_range(&context, range, batch).await?;
        context.writer.make_searchable(range.first).await?;
        let _marking = backfill.marking.lock().await;
        context.writer.mark_ancestors_proven().await?;
    }
    Ok(())
}

/// Loads the blocks that a range lacks. The next batch is fetched while one is stored.
async fn fill_range(context: &LoaderContext, range: PartitionRange, batch: u64) -> Result<(), LoadError> {
    let last = range.end.saturating_sub(1);
    let batch_end = |next: u64| last.min(next.saturating_add(batch.max(1)).saturating_sub(1));
    let mut next = range.next;
    if next > last {
        return Ok(());
    }
    let mut blocks = context.source.blocks(next, batch_end(next)).await?;
    loop {
        // A source may give fewer blocks than were requested, and at least one.
        let after = blocks.last().map(|block| block.block.header().number.saturating_add(1));
        let Some(after) = after.filter(|after| *after > next && *after <= range.end) else {
            return Err(SourceError::Permanent(format!("the source gave no block {next}")).into());
        };
        let store = async { context.store(&blocks).await.map_err(LoadError::from) };
        let fetch_next = async {
            if after > last {
                Ok(Vec::new())
            } else {
                context.source.blocks(after, batch_end(after)).await.map_err(LoadError::from)
            }
        };
        let (stored, fetched) = tokio::join!(store, fetch_next);
        if stored?.is_none() {
            return Err(IndexError::Unconnected { number: next }.into());
        }
        next = after;
        if next > last {
            return Ok(());
        }
        blocks = fetched?;
    }
}
