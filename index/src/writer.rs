//! The writer of an index: the lock, the epoch that shuts out older writers, and the transactions that change rows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alloy_primitives::B256;
use deadpool_postgres::Pool;
use rootlight::consensus::Network;
use tokio_postgres::{Client, GenericClient, Transaction};
use tracing::info;

use crate::block::Proof;
use crate::connect::Database;
use crate::error::IndexError;
use crate::source::SourceBlock;
use crate::state::{IndexLayout, PartitionRange, int8, layout, ranges, uint};
use crate::{copy, partition, schema, trace_rows};

/// Key of PostgreSQL's advisory lock, which admits one writer to a database: the first bytes of "rootlight index".
const LOCK_KEY: i64 = 0x726f_6f74_6c69_6768;

/// Most blocks that one reorganisation replaces. If a source wants to replace more, the source is more likely wrong than
/// the index.
pub const MAX_REORGANISATION: u64 = 10_000;

/// How an index is opened for writing.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Number of blocks of a partition, for a new index; `None` takes that of the index, or the default.
    pub partition_blocks: Option<u64>,
    /// The first block, for a new index; `None` takes that of the index, or block 0.
    pub first_block: Option<u64>,
    /// Whether to wait for the end of another indexer.
    pub wait: bool,
    /// Number of connections beside the one that holds the lock.
    pub connections: usize,
    /// Host and process, as another indexer shows them.
    pub name: String,
}

/// Default number of blocks of a partition: five weeks of mainnet.
pub const PARTITION_BLOCKS: u64 = 100_000;

/// Whether [`Writer::append`] has stored the blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Appended {
    /// The blocks are stored.
    Stored {
        /// Number of blocks that were removed because a reorganisation replaced them.
        removed: u64,
        /// Number of blocks whose traces were stored with them.
        traced: u64,
    },
    /// Nothing was stored: the stored block below the first one is not its parent, so the reorganisation is deeper.
    OtherParent,
}

/// The writer of an index. There is one at a time: a second one cannot get the lock, and one that has lost its lock
/// cannot write once another has opened the index.
pub struct Writer {
    /// The connection that holds the lock.
    lock: Client,
    pub(crate) pool: Pool,
    /// The number of this writer: every writer that opens the index takes the next one.
    epoch: i64,
    partition_blocks: u64,
    /// The index has no block below this one.
    floor: AtomicU64,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

impl Writer {
    /// Takes the lock, brings the schema to the newest version, and takes over from the writer before.
    ///
    /// # Errors
    /// [`IndexError::Locked`] if another indexer runs, and those of the schema, the network and the database.
    pub async fn open(database: &Database, network: &Network, setup: &Setup) -> Result<Self, IndexError> {
        Self::open_from(database, network, setup, 0).await
    }

    /// As [`Self::open`]; a new index begins with `default_first_block` if `setup` names no first block.
    pub(crate) async fn open_from(
        database: &Database,
        network: &Network,
        setup: &Setup,
        default_first_block: u64,
    ) -> Result<Self, IndexError> {
        let mut lock = database.connect().await?;
        // A server notices within minutes that the machine of an indexer is gone, and frees its lock.
        lock.batch_execute(
            "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3; SET lock_timeout = 0",
        )
        .await?;
        take_lock(&lock, setup.wait).await?;
        schema::migrate(&mut lock).await?;
        let layout = match layout(&lock, network).await? {
            Some(layout) => check_layout(layout, setup)?,
            None => {
                let first_block = setup.first_block.unwrap_or(default_first_block);
                create_layout(&lock, network, setup, first_block).await?
            }
        };
        let started = "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS UTC')";
        let sql = format!(
            "UPDATE rootlight.state SET epoch = epoch + 1, writer = $1 || ', since ' || {started} RETURNING epoch"
        );
        let epoch = lock.query_one(&sql, &[&setup.name]).await?.try_get(0)?;
        let pool = database.pool(setup.connections)?;
        Ok(Self {
            lock,
            pool,
            epoch,
            partition_blocks: layout.partition_blocks.max(1),
            floor: AtomicU64::new(layout.floor),
        })
    }

    /// Whether the connection that holds the lock is open. Without it another indexer may take over.
    pub fn holds_lock(&self) -> bool {
        !self.lock.is_closed()
    }

    /// The index has no block below this one.
    pub fn floor(&self) -> u64 {
        self.floor.load(Ordering::Relaxed)
    }

    /// Number of blocks of a partition.
    pub const fn partition_blocks(&self) -> u64 {
        self.partition_blocks
    }

    /// The loaded blocks of each partition.
    pub async fn ranges(&self) -> Result<Vec<PartitionRange>, IndexError> {
        ranges(&**self.pool.get().await?).await
    }

    /// The hash of a loaded block; `None` if the block is not loaded.
    pub async fn hash(&self, number: u64) -> Result<Option<B256>, IndexError> {
        hash(&**self.pool.get().await?, number).await
    }

    /// Makes the partitions that are missing for blocks up to this one, and the partition after them, so that the loader never
    /// waits for a partition. Returns all ranges.
    pub async fn prepare(&self, head: u64) -> Result<Vec<PartitionRange>, IndexError> {
        let size = self.partition_blocks;
        let present_ends: Vec<u64> = self.ranges().await?.iter().map(|range| range.end).collect();
        let floor = self.floor();
        let (first, last) =
            (partition_of(floor, size), partition_of(head.max(floor), size).saturating_add(1));
        for number in first..=last {
            let end = number.saturating_add(1).saturating_mul(size);
            if present_ends.contains(&end) {
                continue;
            }
            let first = number.saturating_mul(size).max(floor);
            let mut client = self.pool.get().await?;
            let transaction = (**client).transaction().await?;
            self.fence(&transaction).await?;
            partition::create(&transaction, first, end).await?;
            transaction.commit().await?;
        }
        self.ranges().await
    }

    /// Stores blocks that follow each other, in one transaction with the progress. If the first one is below the end of
    /// what is loaded, this is a reorganisation: all blocks from its height on are removed in the same transaction.
    ///
    /// # Errors
    /// [`IndexError::Progress`], [`IndexError::Unconnected`], [`IndexError::TooDeep`], [`IndexError::Fenced`], and those
    /// of the database. Nothing was stored, unless the connection broke during the commit: then [`Self::ranges`] says
    /// whether it was.
    pub async fn append(&self, blocks: &[SourceBlock]) -> Result<Appended, IndexError> {
        let Some((from, last)) = connected(blocks)? else {
            return Ok(Appended::Stored { removed: 0, traced: 0 });
        };
        let mut client = self.pool.get().await?;
        let transaction = (**client).transaction().await?;
        // A batch that a crash of the server loses is lost with its progress, and loaded again.
        transaction.batch_execute("SET LOCAL synchronous_commit = off").await?;
        self.fence(&transaction).await?;
        let range = lock_ranges(&transaction, from, last).await?;
        let parent = blocks.first().map(|first| first.block.header().parent_hash);
        match (parent, hash(&transaction, from.saturating_sub(1)).await?) {
            (Some(parent), Some(before)) if from > 0 && parent != before => return Ok(Appended::OtherParent),
            // Blocks of a partition are loaded in order, so the row below must be there. At the start of a partition the one below
            // may not be loaded yet.
            (_, None) if from > range.first => {
                return Err(IndexError::Damaged { what: "a missing row", number: from.saturating_sub(1) });
            }
            // The parents are equal, block 0 has no parent, or the block below belongs to another partition and is not loaded.
            _ => {}
        }
        let removed = if from < range.next { remove_from(&transaction, from).await? } else { 0 };
        copy::write(&transaction, blocks).await?;
        let sql = "UPDATE rootlight.ranges SET next_block = least(end_block, $2::bigint + 1)
                   WHERE end_block > $1 AND first_block <= $2";
        transaction.execute(sql, &[&int8(from), &int8(last)]).await?;
        let traced = trace_rows::write_continuing(&transaction, blocks, from, last).await?;
        transaction.commit().await?;
        Ok(Appended::Stored { removed, traced })
    }

    /// Makes the secondary indexes of the range that begins at `first`, so that its blocks can be searched.
    ///
    /// # Errors
    /// [`IndexError::Fenced`] and those of the database.
    pub async fn make_searchable(&self, first: u64) -> Result<(), IndexError> {
        let mut client = self.pool.get().await?;
        let transaction = (**client).transaction().await?;
        self.fence(&transaction).await?;
        let sql = "SELECT searchable FROM rootlight.ranges WHERE first_block = $1 FOR UPDATE";
        let searchable: bool = transaction.query_one(sql, &[&int8(first)]).await?.try_get(0)?;
        if !searchable {
            partition::make_searchable(&transaction, first).await?;
            transaction.commit().await?;
        }
        Ok(())
    }

    /// Marks the ancestors of proven blocks as proven: the blocks of a range follow each other by their hashes, so a proven
    /// block proves all blocks below it in its range. It also proves the range below, if that one is full. Ranges that are
    /// not searchable are left out.
    ///
    /// # Errors
    /// [`IndexError::NotAncestors`] if the source gave other blocks, [`IndexError::Fenced`], and those of the database.
    pub async fn mark_ancestors_proven(&self) -> Result<(), IndexError> {
        // The first block of the range above, and the hash of its parent, if that range is proven.
        let mut child: Option<(u64, B256)> = None;
        let ranges = self.ranges().await?;
        // A partition without secondary indexes would be read from end to end. It is marked after it has become searchable.
        let ready = |range: &&PartitionRange| range.searchable && range.next > range.first;
        for range in ranges.iter().rev().filter(ready) {
            let proven = child.filter(|(number, _)| *number == range.next).map(|(_, parent)| parent);
            child = self.mark_range_proven(range, proven).await?;
        }
        Ok(())
    }

    /// Marks the blocks of one range. `proven` is the hash of the last block of the range, if a proven block above names it as
    /// its parent. Returns the first block of the range and the hash of its parent, if the range has a proven block.
    async fn mark_range_proven(
        &self,
        range: &PartitionRange,
        proven: Option<B256>,
    ) -> Result<Option<(u64, B256)>, IndexError> {
        let mut client = self.pool.get().await?;
        let (first, last) = (range.first, range.next.saturating_sub(1));
        let transaction = (**client).transaction().await?;
        self.fence(&transaction).await?;
        if let Some(expected) = proven {
            match hash(&transaction, last).await? {
                Some(found) if found != expected => {
                    return Err(IndexError::NotAncestors { first, last, found, expected });
                }
                // A reorganisation has removed the block meanwhile.
                None => return Ok(None),
                Some(_) => {}
            }
        }
        // The codes are written into the text, so that PostgreSQL uses the partial index.
        let (stated, verified) = (Proof::Stated.code(), Proof::Verified.code());
        let sql = format!(
            "SELECT max(number) FROM rootlight.blocks WHERE number BETWEEN $1 AND $2 AND proof = {verified}"
        );
        let highest: Option<i64> =
            transaction.query_one(&sql, &[&int8(first), &int8(last)]).await?.try_get(0)?;
        let Some(top) = proven.map(|_| int8(last)).or(highest) else { return Ok(None) };
        let sql = format!(
            "UPDATE rootlight.blocks SET proof = {verified} WHERE number BETWEEN $1 AND $2 AND proof = {stated}"
        );
        transaction.execute(&sql, &[&int8(first), &top]).await?;
        let sql = "SELECT parent_hash FROM rootlight.blocks WHERE number = $1";
        let parent = transaction.query_opt(sql, &[&int8(first)]).await?;
        transaction.commit().await?;
        // The loader writes hashes of 32 bytes only. With another one the range below is not marked.
        let parent = parent.map(|row| row.try_get::<_, &[u8]>(0).map(B256::try_from)).transpose()?;
        Ok(parent.and_then(Result::ok).map(|parent| (first, parent)))
    }

    /// Drops the partitions whose blocks are all below this one. Returns how many were dropped.
    ///
    /// # Errors
    /// [`IndexError::Fenced`] and those of the database. A partition that readers use for long is dropped by a later call.
    pub async fn drop_below(&self, block: u64) -> Result<usize, IndexError> {
        let floor = partition_of(block, self.partition_blocks).saturating_mul(self.partition_blocks);
        if floor > self.floor() {
            let mut client = self.pool.get().await?;
            let transaction = (**client).transaction().await?;
            self.fence(&transaction).await?;
            transaction
                .execute("DELETE FROM rootlight.ranges WHERE end_block <= $1", &[&int8(floor)])
                .await?;
            transaction
                .execute("DELETE FROM rootlight.untraced WHERE block_number < $1", &[&int8(floor)])
                .await?;
            transaction.execute("UPDATE rootlight.state SET floor_block = $1", &[&int8(floor)]).await?;
            transaction.commit().await?;
            self.floor.store(floor, Ordering::Relaxed);
        }
        let mut client = self.pool.get().await?;
        let old = partition::existing(&**client).await?;
        let mut dropped = 0_usize;
        for first in old.into_iter().filter(|first| *first < self.floor()) {
            let transaction = (**client).transaction().await?;
            self.fence(&transaction).await?;
            partition::remove(&transaction, first).await?;
            transaction.commit().await?;
            dropped = dropped.saturating_add(1);
        }
        Ok(dropped)
    }

    /// Refuses to write if a newer indexer has taken over. `FOR SHARE` keeps another indexer from taking over until the
    /// transaction ends.
    pub(crate) async fn fence(&self, transaction: &Transaction<'_>) -> Result<(), IndexError> {
        let found =
            transaction.query_one("SELECT epoch FROM rootlight.state FOR SHARE", &[]).await?.try_get(0)?;
        if found == self.epoch { Ok(()) } else { Err(IndexError::Fenced { own: self.epoch, found }) }
    }
}

/// A writer that the tasks of a loader share.
pub type SharedWriter = Arc<Writer>;

/// The number of the partition that holds a block, counted from 0; `size` is the number of blocks of a partition.
fn partition_of(block: u64, size: u64) -> u64 {
    block.checked_div(size).unwrap_or(0)
}

/// Takes the lock of the index on this connection, which holds it until it is closed.
async fn take_lock(client: &Client, wait: bool) -> Result<(), IndexError> {
    let taken: bool = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK_KEY]).await?.try_get(0)?;
    if taken {
        return Ok(());
    }
    let writer = writer_name(client).await?;
    if !wait {
        return Err(IndexError::Locked { writer });
    }
    info!("another indexer writes to this index ({writer}); waiting for its end");
    client.query_one("SELECT pg_advisory_lock($1)", &[&LOCK_KEY]).await?;
    Ok(())
}

/// The indexer that opened the index last.
async fn writer_name(client: &Client) -> Result<String, IndexError> {
    // Continues the texts of `Locked` and of the log, which say "another indexer".
    let unnamed = || "which has just started".to_owned();
    if schema::found_version(client).await? == 0 {
        return Ok(unnamed());
    }
    let row = client.query_opt("SELECT writer FROM rootlight.state", &[]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?.unwrap_or_else(unnamed))
}

/// Refuses settings that differ from those of the index.
fn check_layout(layout: IndexLayout, setup: &Setup) -> Result<IndexLayout, IndexError> {
    match (setup.partition_blocks, setup.first_block) {
        (Some(asked), _) if asked != layout.partition_blocks => {
            let found = layout.partition_blocks;
            Err(IndexError::OtherLayout { what: "blocks of a partition", found, asked })
        }
        // An index that begins lower has all wanted blocks.
        (_, Some(asked)) if asked < layout.floor => {
            Err(IndexError::OtherLayout { what: "first block", found: layout.floor, asked })
        }
        _ => Ok(layout),
    }
}

/// Writes the layout of a new index, which begins at the block `floor`.
async fn create_layout(
    client: &Client,
    network: &Network,
    setup: &Setup,
    floor: u64,
) -> Result<IndexLayout, IndexError> {
    let partition_blocks = setup.partition_blocks.unwrap_or(PARTITION_BLOCKS).max(1);
    let sql = "INSERT INTO rootlight.state (network, chain_id, genesis_hash, partition_blocks, floor_block)
               VALUES ($1, $2, $3, $4, $5)";
    let genesis = network.genesis_hash;
    client
        .execute(
            sql,
            &[
                &network.name.as_str(),
                &int8(network.chain_id),
                &genesis.as_slice(),
                &int8(partition_blocks),
                &int8(floor),
            ],
        )
        .await?;
    Ok(IndexLayout { partition_blocks, floor })
}

/// Checks that blocks follow each other; returns the first and the last number.
fn connected(blocks: &[SourceBlock]) -> Result<Option<(u64, u64)>, IndexError> {
    let mut before: Option<(u64, B256)> = None;
    for SourceBlock { block, .. } in blocks {
        let header = block.header();
        let follows = before.is_none_or(|(number, hash)| {
            number.checked_add(1) == Some(header.number) && hash == header.parent_hash
        });
        if !follows {
            return Err(IndexError::Unconnected { number: header.number });
        }
        before = Some((header.number, header.hash()));
    }
    let first = blocks.first().map(|first| first.block.header().number);
    Ok(first.zip(before.map(|(last, _)| last)))
}

/// Blocks of one partition, and how many of them are loaded.
#[derive(Debug, Clone, Copy)]
struct LoadedRange {
    first: u64,
    /// The first block that is not loaded.
    next: u64,
}

/// Locks the ranges of the blocks from `from` to `last`, and returns the lowest. Higher ones must be empty, or this is a
/// reorganisation, which empties them.
async fn lock_ranges(transaction: &Transaction<'_>, from: u64, last: u64) -> Result<LoadedRange, IndexError> {
    let sql = "SELECT first_block, end_block, next_block FROM rootlight.ranges
               WHERE end_block > $1 AND first_block <= $2 ORDER BY first_block FOR UPDATE";
    let rows = transaction.query(sql, &[&int8(from), &int8(last)]).await?;
    let mut lowest: Option<LoadedRange> = None;
    let mut end = from;
    for row in &rows {
        let (first, until, next) = (uint(row.try_get(0)?), uint(row.try_get(1)?), uint(row.try_get(2)?));
        let is_reorganisation = lowest.is_some_and(|lowest| from < lowest.next);
        if lowest.is_some() && first != next && !is_reorganisation {
            return Err(IndexError::Progress { from: first, next });
        }
        end = until;
        lowest = lowest.or(Some(LoadedRange { first, next }));
    }
    match lowest {
        Some(range) if range.first <= from && from <= range.next && last < end => Ok(range),
        Some(range) => Err(IndexError::Progress { from, next: range.next }),
        None => Err(IndexError::Progress { from, next: 0 }),
    }
}

/// Removes all blocks from this one on; returns how many.
async fn remove_from(transaction: &Transaction<'_>, from: u64) -> Result<u64, IndexError> {
    let sql = "SELECT coalesce(sum(next_block - greatest(first_block, $1)), 0)::bigint FROM rootlight.ranges WHERE next_block > $1";
    let depth = uint(transaction.query_one(sql, &[&int8(from)]).await?.try_get(0)?);
    if depth > MAX_REORGANISATION {
        return Err(IndexError::TooDeep { depth, most: MAX_REORGANISATION });
    }
    // The bound is written into the text and not a parameter, so that the planner leaves out older partitions.
    for (table, key) in [
        ("traces", "block_number"),
        ("untraced", "block_number"),
        ("logs", "block_number"),
        ("receipts", "block_number"),
        ("transactions", "block_number"),
        ("blocks", "number"),
    ] {
        transaction.batch_execute(&format!("DELETE FROM rootlight.{table} WHERE {key} >= {from}")).await?;
    }
    let sql = "UPDATE rootlight.ranges SET next_block = greatest(first_block, $1),
               traces_next = least(traces_next, greatest(first_block, $1)) WHERE next_block > $1";
    transaction.execute(sql, &[&int8(from)]).await?;
    Ok(depth)
}

/// The hash of a loaded block; `None` if the block is not loaded.
pub(crate) async fn hash(client: &impl GenericClient, number: u64) -> Result<Option<B256>, IndexError> {
    let row =
        client.query_opt("SELECT hash FROM rootlight.blocks WHERE number = $1", &[&int8(number)]).await?;
    let Some(row) = row else { return Ok(None) };
    let bytes: &[u8] = row.try_get(0)?;
    B256::try_from(bytes).map(Some).map_err(|_| IndexError::Damaged { what: "the hash", number })
}
