//! Adds traces to blocks that were stored without them, partition by partition.

use std::time::Duration;

use alloy_primitives::B256;

use crate::context::{LoadError, LoadEvent, LoaderContext};
use crate::error::IndexError;
use crate::source::{SourceBlock, SourceError};
use crate::state::{PartitionRange, int8, uint};
use crate::trace_rows::write;
use crate::writer::{Writer, hash};

impl Writer {
    /// Stores the traces of blocks that are stored already, in one transaction with the progress. `first` is the first block of
    /// their partition. `blocks` follow each other, from the first one of the partition that has no traces. Returns their number.
    ///
    /// # Errors
    /// [`IndexError::Progress`] if the blocks do not follow, or a block has no traces; [`IndexError::OtherBranch`] if the index
    /// has other blocks; [`IndexError::Fenced`], and those of the database. Nothing was stored.
    pub async fn append_traces(&self, first: u64, blocks: &[SourceBlock]) -> Result<u64, IndexError> {
        let Some(from) = blocks.first().map(|block| block.block.header().number) else { return Ok(0) };
        let mut client = self.pool.get().await?;
        let transaction = (**client).transaction().await?;
        // Traces that a crash of PostgreSQL loses are lost with their progress, and added again.
        transaction.batch_execute("SET LOCAL synchronous_commit = off").await?;
        self.fence(&transaction).await?;
        let sql = "SELECT next_block, traces_next FROM rootlight.ranges WHERE first_block = $1 FOR UPDATE";
        let row = transaction.query_opt(sql, &[&int8(first)]).await?;
        let Some(row) = row else { return Err(IndexError::Progress { from, next: 0 }) };
        let (stored_end, next) = (uint(row.try_get(0)?), uint(row.try_get(1)?));
        let after = from.saturating_add(blocks.len() as u64);
        if from != next || after > stored_end || blocks.iter().any(|block| block.traces.is_none()) {
            return Err(IndexError::Progress { from, next });
        }
        // The source may have reorganised meanwhile: traces of another branch must not be stored.
        for (block, number) in blocks.iter().zip(from..) {
            let stored_hash: Option<B256> = hash(&transaction, number).await?;
            if block.block.header().number != number || stored_hash != Some(block.block.header().hash()) {
                return Err(IndexError::OtherBranch { number });
            }
        }
        write(&transaction, first, from, blocks).await?;
        transaction.commit().await?;
        Ok(blocks.len() as u64)
    }
}

/// Stores the traces of all stored blocks without traces, newest partitions first. `batch` is the most blocks of one request.
pub(crate) async fn fill(context: &LoaderContext, batch: u64) -> Result<(), LoadError> {
    let gaps: Vec<PartitionRange> =
        context.writer.ranges().await?.into_iter().filter(|range| range.traced < range.next).rev().collect();
    let missing = gaps.iter().map(|range| range.next.saturating_sub(range.traced));
    let missing = missing.fold(0, u64::saturating_add);
    if missing > 0 {
        (context.observer)(LoadEvent::TracesPlanned(missing));
    }
    for range in gaps {
        fill_range(context, range, batch).await?;
    }
    Ok(())
}

/// Stores the traces of one partition. A range that a reorganisation changes meanwhile is left for the next call of [`fill`].
async fn fill_range(context: &LoaderContext, range: PartitionRange, batch: u64) -> Result<(), LoadError> {
    // The first block without traces; `range.next` is the block after the stored ones.
    let mut next = range.traced;
    while next < range.next {
        let last = range.next.min(next.saturating_add(batch.max(1))).saturating_sub(1);
        let blocks = context.source.blocks(next, last).await?;
        if blocks.first().is_none_or(|block| block.traces.is_none()) {
            return Err(SourceError::Permanent(format!("the source gave no traces of block {next}")).into());
        }
        // A source that gives more blocks than were requested must not go beyond the partition.
        let within =
            blocks.len().min(usize::try_from(last.saturating_sub(next)).unwrap_or(0).saturating_add(1));
        let blocks = blocks.get(..within).unwrap_or_default();
        match context.writer.append_traces(range.first, blocks).await {
            Ok(written) => {
                (context.observer)(LoadEvent::Traced(written));
                next = next.saturating_add(written);
            }
            // The blocks do not fit those in the index, as after a reorganisation: the next call of `fill` requests them again.
            Err(IndexError::Progress { .. } | IndexError::OtherBranch { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Repeats [`fill`] after each pause of `poll`, until an error.
pub(crate) async fn follow(context: LoaderContext, batch: u64, poll: Duration) -> Result<(), LoadError> {
    loop {
        fill(&context, batch).await?;
        tokio::time::sleep(poll).await;
    }
}
