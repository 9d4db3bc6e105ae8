//! Writes rows of traces together with their progress: the column `traces_next` of `rootlight.ranges`, the first block of a
//! partition that has no traces yet.

use tokio_postgres::Transaction;

use crate::copy;
use crate::error::IndexError;
use crate::source::SourceBlock;
use crate::state::{int8, uint};

/// Writes the traces of the blocks `from` to `last`, which are stored in the same transaction, as far as they continue the
/// traces of their partitions. Returns the number of blocks whose traces were written.
pub(crate) async fn write_continuing(
    transaction: &Transaction<'_>,
    blocks: &[SourceBlock],
    from: u64,
    last: u64,
) -> Result<u64, IndexError> {
    if blocks.iter().all(|block| block.traces.is_none()) {
        return Ok(0);
    }
    let sql = "SELECT first_block, end_block, traces_next FROM rootlight.ranges
               WHERE end_block > $1 AND first_block <= $2 ORDER BY first_block";
    let mut written = 0_u64;
    for row in transaction.query(sql, &[&int8(from), &int8(last)]).await? {
        let (first, end, next) = (uint(row.try_get(0)?), uint(row.try_get(1)?), uint(row.try_get(2)?));
        let run = continuing(blocks, from, next, end);
        // If no block continues the traces, blocks below have none yet; `traced.rs` adds all of them in their order.
        if !run.is_empty() {
            write(transaction, first, next, run).await?;
            written = written.saturating_add(run.len() as u64);
        }
    }
    Ok(written)
}

/// The blocks of a batch, which begins at the height `from`, from `next` (the first without stored traces) to the one before
/// `end` (the end of the partition), as far as they have traces.
fn continuing(blocks: &[SourceBlock], from: u64, next: u64, end: u64) -> &[SourceBlock] {
    let offset = |number: u64| number.checked_sub(from).and_then(|at| usize::try_from(at).ok());
    let (Some(start), Some(stop)) = (offset(next), offset(end)) else { return &[] };
    // In range: a partition has traces of loaded blocks only, and a reorganisation has removed those of the replaced blocks.
    let rest = blocks.get(start..stop.min(blocks.len())).unwrap_or_default();
    let count = rest.iter().take_while(|block| block.traces.is_some()).count();
    rest.get(..count).unwrap_or_default()
}

/// Writes the traces of consecutive blocks of one partition, and the progress. `first` is the first block of the partition, and
/// `from` that of `run`.
pub(crate) async fn write(
    transaction: &Transaction<'_>,
    first: u64,
    from: u64,
    run: &[SourceBlock],
) -> Result<(), IndexError> {
    copy::traces(transaction, run).await?;
    let next = from.saturating_add(run.len() as u64);
    let sql = "UPDATE rootlight.ranges SET traces_next = $2 WHERE first_block = $1";
    transaction.execute(sql, &[&int8(first), &int8(next)]).await?;
    Ok(())
}
