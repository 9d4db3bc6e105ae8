//! Reads the state of the index from the database: its network and layout, and which blocks are loaded.

use rootlight::consensus::Network;
use tokio_postgres::{GenericClient, Row};

use crate::error::IndexError;

/// Converts a block number, time or gas to a `bigint`. All are far below 2^63; a greater number becomes the largest `bigint`.
pub(crate) fn int8(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a `bigint` that is never negative; a negative one becomes 0.
pub(crate) fn uint(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The number of blocks of a partition, and where the index begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IndexLayout {
    pub(crate) partition_blocks: u64,
    /// The index has no block below this one.
    pub(crate) floor: u64,
}

/// The blocks of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionRange {
    /// The first block.
    pub first: u64,
    /// The first block after the partition.
    pub end: u64,
    /// Blocks from `first` to the one before this one are loaded.
    pub next: u64,
    /// Whether the partition has its secondary indexes.
    pub searchable: bool,
    /// Blocks from `first` to the one before this one have their traces.
    pub traced: u64,
}

impl PartitionRange {
    /// Whether all blocks are loaded.
    pub const fn is_full(&self) -> bool {
        self.next == self.end
    }
}

/// Reads a row with the columns of [`ranges`].
fn range(row: &Row) -> Result<PartitionRange, IndexError> {
    let number = |at: usize| row.try_get(at).map(uint);
    Ok(PartitionRange {
        first: number(0)?,
        end: number(1)?,
        next: number(2)?,
        searchable: row.try_get(3)?,
        traced: number(4)?,
    })
}

/// Reads all ranges, in ascending order.
pub(crate) async fn ranges(client: &impl GenericClient) -> Result<Vec<PartitionRange>, IndexError> {
    let rows = client
        .query(
            "SELECT first_block, end_block, next_block, searchable, traces_next FROM rootlight.ranges ORDER BY first_block",
            &[],
        )
        .await?;
    rows.iter().map(range).collect()
}

/// Runs of consecutive blocks that are loaded and searchable, as first and last block, in ascending order.
pub(crate) fn covered(ranges: &[PartitionRange]) -> Vec<(u64, u64)> {
    runs(ranges, |range| range.next)
}

/// Runs of consecutive blocks that are searchable and have their traces, as first and last block, in ascending order.
pub(crate) fn traced(ranges: &[PartitionRange]) -> Vec<(u64, u64)> {
    runs(ranges, |range| range.traced)
}

/// Runs of consecutive searchable blocks, in each range up to the block before `next`. Runs of neighbouring ranges are joined.
fn runs(ranges: &[PartitionRange], next: impl Fn(&PartitionRange) -> u64) -> Vec<(u64, u64)> {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for range in ranges.iter().filter(|range| range.searchable && next(range) > range.first) {
        let last = next(range).saturating_sub(1);
        match runs.last_mut() {
            Some((_, end)) if end.saturating_add(1) == range.first => *end = last,
            _ => runs.push((range.first, last)),
        }
    }
    runs
}

/// Whether all blocks from `from` to `to`, both included, are loaded and searchable.
pub(crate) fn covers(ranges: &[PartitionRange], from: u64, to: u64) -> bool {
    covered(ranges).iter().any(|(first, last)| *first <= from && to <= *last)
}

/// Name, chain id and genesis of a network, as errors show them.
fn describe(name: &str, chain_id: u64, genesis: &str) -> String {
    format!("{name} (chain id {chain_id}, genesis {genesis})")
}

/// Reads the layout, and checks that the index is of this network. `None` if the index has no state yet.
pub(crate) async fn layout(
    client: &impl GenericClient,
    network: &Network,
) -> Result<Option<IndexLayout>, IndexError> {
    let row = client
        .query_opt(
            "SELECT network, chain_id, encode(genesis_hash, 'hex'), partition_blocks, floor_block FROM rootlight.state",
            &[],
        )
        .await?;
    let Some(row) = row else { return Ok(None) };
    let (name, genesis): (String, String) = (row.try_get(0)?, row.try_get(2)?);
    let chain_id = uint(row.try_get(1)?);
    let genesis = format!("0x{genesis}");
    if chain_id != network.chain_id || genesis != network.genesis_hash.to_string() {
        let expected = describe(&network.name, network.chain_id, &network.genesis_hash.to_string());
        return Err(IndexError::OtherNetwork { found: describe(&name, chain_id, &genesis), expected });
    }
    Ok(Some(IndexLayout { partition_blocks: uint(row.try_get(3)?), floor: uint(row.try_get(4)?) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(first: u64, end: u64, next: u64, searchable: bool) -> PartitionRange {
        PartitionRange { first, end, next, searchable, traced: first.midpoint(next) }
    }

    #[test]
    fn neighbouring_ranges_are_one_run_and_gaps_divide() {
        let ranges = [
            range(5, 10, 10, true),
            range(10, 20, 20, true),
            range(20, 30, 25, true),
            range(30, 40, 40, true),
            range(40, 50, 50, false),
            range(50, 60, 50, true),
        ];
        assert_eq!(covered(&ranges), [(5, 24), (30, 39)]);
        assert!(covers(&ranges, 5, 24) && covers(&ranges, 9, 10) && covers(&ranges, 30, 30));
        assert!(!covers(&ranges, 4, 6) && !covers(&ranges, 24, 25) && !covers(&ranges, 24, 30));
        assert!(!covers(&ranges, 40, 40) && !covers(&ranges, 50, 50));
        assert_eq!(traced(&ranges), [(5, 6), (10, 14), (20, 21), (30, 34)]);
    }
}
