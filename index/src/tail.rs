//! Loads the newest partitions in ascending order and keeps them at the source's head: new blocks, reorganisations, and
//! dropping partitions that are too old.

use std::time::Duration;

use tracing::warn;

use crate::context::{LoadError, LoadEvent, LoaderContext, LoaderOptions};
use crate::error::IndexError;
use crate::source::SourceError;
use crate::state::PartitionRange;
use crate::writer::MAX_REORGANISATION;

/// First step back, in blocks, when blocks are on another branch and the source does not know where that branch begins; the
/// step doubles each time.
const FIRST_REWIND: u64 = 8;

/// Follows the head of a source.
pub(crate) struct Tail {
    context: LoaderContext,
    batch: u64,
    retain: Option<u64>,
    poll: Duration,
    once: bool,
    /// The height of the next block.
    next: u64,
    /// Partitions exist for blocks below this one.
    prepared: u64,
    /// The first block of the partition that was made searchable last.
    searchable: Option<u64>,
    /// The next step back, in blocks.
    rewind: u64,
}

impl Tail {
    /// A tail that has not begun; [`Self::run`] sets the height at which it begins.
    pub(crate) fn new(context: LoaderContext, options: &LoaderOptions) -> Self {
        Self {
            context,
            batch: options.batch.max(1),
            retain: options.retain,
            poll: options.poll,
            once: options.once,
            next: 0,
            prepared: 0,
            searchable: None,
            rewind: FIRST_REWIND,
        }
    }

    /// Follows the head, from the first of these ranges that is not full; they are in ascending order. Ends only with `once`, or by
    /// an error.
    pub(crate) async fn run(&mut self, newest: &[PartitionRange]) -> Result<(), LoadError> {
        // An earlier run may have ended between the last batch of a partition and its indexes.
        for range in newest.iter().filter(|range| range.is_full() && !range.searchable) {
            self.context.writer.make_searchable(range.first).await?;
        }
        let Some(range) = newest.iter().find(|range| !range.is_full()).or(newest.last()) else {
            return Err(
                SourceError::Transient("the head is below the first block of the index".into()).into()
            );
        };
        self.next = range.next;
        self.prepared = range.end;
        self.searchable = range.searchable.then_some(range.first);
        loop {
            let head = self.context.source.head().await?;
            self.find_fork(head).await?;
            if self.next > head {
                self.at_head(head).await?;
                if self.once {
                    return Ok(());
                }
                tokio::time::sleep(self.poll).await;
                if !self.context.writer.holds_lock() {
                    return Err(
                        IndexError::Pool("the connection that holds the lock has ended".into()).into()
                    );
                }
                continue;
            }
            self.advance(head).await?;
        }
    }

    /// Stores the next blocks. If their parent is on another branch than the stored block below them, goes back.
    async fn advance(&mut self, head: u64) -> Result<(), LoadError> {
        let next = self.next;
        if head >= self.prepared {
            let ranges = self.context.writer.prepare(head).await?;
            self.prepared = ranges.last().map_or(self.prepared, |range| range.end);
        }
        let last = head.min(next.saturating_add(self.batch).saturating_sub(1));
        let blocks = self.context.source.blocks(next, last).await?;
        if blocks.is_empty() {
            return Err(SourceError::Transient(format!("the source gave no block {next}")).into());
        }
        match self.context.store(&blocks).await? {
            Some(after) => {
                self.next = after;
                self.rewind = FIRST_REWIND;
                self.index_filled(next).await?;
            }
            None => {
                self.next = next.saturating_sub(self.rewind).max(self.context.writer.floor());
                self.rewind = self.rewind.saturating_mul(2);
            }
        }
        Ok(())
    }

    /// Makes partitions searchable that the last batch, which began at `before`, filled.
    async fn index_filled(&mut self, before: u64) -> Result<(), IndexError> {
        let size = self.context.writer.partition_blocks();
        let partition = |block: u64| block.checked_div(size);
        if partition(before) == partition(self.next) {
            return Ok(());
        }
        let ranges = self.context.writer.ranges().await?;
        for range in ranges.iter().filter(|range| range.first <= self.next && before < range.end) {
            if range.is_full() && !range.searchable {
                self.context.writer.make_searchable(range.first).await?;
            }
        }
        Ok(())
    }

    /// Sets the next height to the one above the newest stored block that the source's chain still has, as far as the source
    /// knows the hashes of its chain without requests.
    async fn find_fork(&mut self, head: u64) -> Result<(), LoadError> {
        let floor = self.context.writer.floor();
        let top = self.next.saturating_sub(1).min(head);
        let lowest = top.saturating_sub(MAX_REORGANISATION);
        let mut number = top;
        while number >= floor && number > lowest {
            let Some(theirs) = self.context.source.hash(number) else { break };
            match self.context.writer.hash(number).await? {
                Some(ours) if ours != theirs => {}
                // The chains agree on this block, or the index has no block here to compare.
                _ => break,
            }
            let Some(below) = number.checked_sub(1) else { break };
            number = below;
        }
        if number < top {
            self.next = number.saturating_add(1);
        }
        Ok(())
    }

    /// Makes the newest partition searchable if it is not yet, and drops old ones then.
    async fn at_head(&mut self, head: u64) -> Result<(), LoadError> {
        let newest = self.next.saturating_sub(1);
        let ranges = self.context.writer.ranges().await?;
        let range = ranges.iter().find(|range| range.first <= newest && newest < range.end);
        if let Some(range) = range.filter(|range| self.searchable != Some(range.first)) {
            self.context.writer.make_searchable(range.first).await?;
            self.context.writer.mark_ancestors_proven().await?;
            self.searchable = Some(range.first);
            self.drop_old(head).await?;
        }
        (self.context.observer)(LoadEvent::AtHead(newest));
        Ok(())
    }

    /// Drops the partitions below the blocks that are retained. If readers use one for long, a later call drops it.
    pub(crate) async fn drop_old(&self, head: u64) -> Result<(), LoadError> {
        let Some(retain) = self.retain else { return Ok(()) };
        match self.context.writer.drop_below(head.saturating_add(1).saturating_sub(retain)).await {
            Ok(0) => Ok(()),
            Ok(dropped) => {
                (self.context.observer)(LoadEvent::Dropped(dropped));
                Ok(())
            }
            Err(error) if error.is_transient() => {
                warn!("old partitions are dropped later: {error}");
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}
