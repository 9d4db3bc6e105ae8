//! The index of logs of a stored chain, in the chain's own database: for each address and topic, the blocks in which it occurs
//! (`crate::index`).
//!
//! Blocks that were stored without the index are added later, from the top down: `lowest_indexed` is the lowest block from which on,
//! itself included, all canonical blocks are in the index. A row is the bitmap of one term for 65,536 blocks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use redb::{ReadableTable as _, TableDefinition, WriteTransaction};
use roaring::RoaringBitmap;
use rootlight::local::{BlockIndex, ChainSnapshot, StoredBlock, Term};
use rootlight_server::service::IndexProgress;
use tracing::error;

use super::database::{ChainStore, StoreSlot};
use super::error::ChainStoreError;
use super::tables::META;
use crate::index::{
    IndexSearch, RowBitmaps, RowKey, Rows, Table, TermKey, Unreadable, add_terms, decode_row, encode_row,
    read_table, row_key,
};

/// Rows by key; see [`encode_row`].
pub(crate) const INDEX: TableDefinition<'_, &[u8; 24], &[u8]> = TableDefinition::new("index");

/// Name of the index's state in the table `META`: the layout (1 byte), the lowest indexed block (8 bytes, big-endian), and the hash
/// of the chain's head when the state was written.
pub(crate) const STATE: &str = "index";

/// Version of the layout of keys and rows. An index of another version is built again.
const LAYOUT: u8 = 1;

/// Number of older blocks that are added to the index in one transaction. The chain cannot be written meanwhile. Tests use few, so that
/// short chains need several transactions.
const BATCH: u64 = if cfg!(test) { 7 } else { 1_024 };

/// Most rows that wait in memory to be written, some 60 MiB. Rows wait for the end of the message that adds their blocks, or while
/// the disk is full. Beyond this limit the index is not used until it is built again.
const MAX_UNWRITTEN: usize = 1 << 19;

/// The index of a stored chain. A row is written in the same database transaction as the block that it names, so an
/// interrupted program leaves both or neither.
#[derive(Debug)]
pub struct StoredIndex {
    slot: Arc<StoreSlot>,
    /// Canonical blocks from this height on, itself included, are in the index. One above the head means that no block is in the
    /// index, 0 that every block is.
    lowest_indexed: AtomicU64,
    /// Number of blocks of the chain when the store was opened.
    total: u64,
    /// A row could not be decoded, or rows were dropped. The index is not used any more, and is built again when the
    /// store is opened next.
    damaged: AtomicBool,
    /// Rows of blocks that are not stored yet.
    unwritten: Mutex<Table>,
}

impl StoredIndex {
    /// Opens the index of the chain in a store, whose head has this hash and height. Starts anew if there is none, if
    /// it has another layout, or if another version of this program has written blocks without it.
    pub(crate) fn open(slot: Arc<StoreSlot>, head: B256, height: u64) -> Result<Self, ChainStoreError> {
        let lowest_indexed = {
            let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
            let write = slot.as_ref().ok_or(ChainStoreError::Closed)?.write()?;
            let stored =
                read_state(&write)?.filter(|(_, at)| *at == head).map(|(lowest_indexed, _)| lowest_indexed);
            let lowest_indexed = match stored {
                Some(lowest_indexed) => lowest_indexed,
                None => {
                    write.delete_table(INDEX)?;
                    // Block 0 has no transactions, so an index of block 0 alone is complete.
                    if height == 0 { 0 } else { height.saturating_add(1) }
                }
            };
            write.open_table(INDEX)?;
            write_state(&write, lowest_indexed, head)?;
            write.commit()?;
            lowest_indexed
        };
        Ok(Self {
            slot,
            lowest_indexed: AtomicU64::new(lowest_indexed),
            total: height.saturating_add(1),
            damaged: AtomicBool::new(false),
            unwritten: Mutex::default(),
        })
    }

    /// Locks the rows that are not written yet.
    fn unwritten(&self) -> MutexGuard<'_, Table> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the use of the index, and logs the reason once.
    fn damage(&self, reason: &str) {
        if !self.damaged.swap(true, Ordering::Relaxed) {
            error!(
                "index of logs: {reason}: searches read every block until the next start, which builds the index again"
            );
        }
        self.unwritten().clear();
    }

    /// Writes the rows of new blocks as part of the transaction that writes the blocks. `head` is the new head.
    pub(crate) fn write(&self, write: &WriteTransaction, head: B256) -> Result<(), ChainStoreError> {
        let intact = !self.damaged.load(Ordering::Relaxed) && write_rows(write, &self.unwritten())?;
        if !intact {
            self.damage("a stored row is damaged");
            write.open_table(META)?.remove(STATE)?;
            return Ok(());
        }
        write_state(write, self.lowest_indexed.load(Ordering::Relaxed), head)
    }

    /// Forgets the rows that [`Self::write`] has written, once they are committed.
    pub(crate) fn written(&self) {
        *self.unwritten() = Table::default();
    }

    /// The progress of building the index; `None` if it has every block.
    pub fn progress(&self) -> Option<IndexProgress> {
        let lowest_indexed = self.lowest_indexed.load(Ordering::Relaxed);
        (lowest_indexed > 0)
            .then(|| IndexProgress { done: self.total.saturating_sub(lowest_indexed), total: self.total })
    }

    /// Adds the next blocks that are not in the index, from the top down. `chain` is the chain as it was opened. Returns whether more
    /// blocks are missing.
    pub(crate) fn build_some(&self, chain: &ChainSnapshot) -> Result<bool, ChainStoreError> {
        let lowest_indexed = self.lowest_indexed.load(Ordering::Relaxed);
        if lowest_indexed == 0 || self.damaged.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let (new_lowest, mut table) = (lowest_indexed.saturating_sub(BATCH), Table::default());
        for number in new_lowest..lowest_indexed {
            // Without a hash, zeros give the error of a missing block.
            let hash = chain.headers().hash_at(number).unwrap_or_default();
            let block = chain.block(&hash).ok_or(ChainStoreError::MissingBlock { number, hash })?;
            add_terms(&mut table, number, block);
        }
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        let write = slot.as_ref().ok_or(ChainStoreError::Closed)?.write()?;
        // `damage` has removed the state of a damaged index.
        let Some((_, head)) = read_state(&write)? else { return Ok(false) };
        if !write_rows(&write, &table)? {
            self.damage("a stored row is damaged");
            write.open_table(META)?.remove(STATE)?;
            write.commit()?;
            return Ok(false);
        }
        write_state(&write, new_lowest, head)?;
        write.commit()?;
        self.lowest_indexed.store(new_lowest, Ordering::Relaxed);
        Ok(new_lowest > 0)
    }

    /// Adds the stored rows `first_row..=last_row` of these terms to `found`. Returns `false` if a row cannot be decoded.
    fn read_stored(
        store: &ChainStore,
        terms: &[TermKey],
        (first_row, last_row): (u64, u64),
        found: &mut RowBitmaps,
    ) -> Result<bool, ChainStoreError> {
        let table = store.read()?.open_table(INDEX)?;
        for term in terms {
            let (lowest_key, highest_key) = (row_key(term, first_row), row_key(term, last_row));
            for entry in table.range::<&RowKey>(&lowest_key..=&highest_key)? {
                let (key, bytes) = entry?;
                let Some(row) = decode_row(key.value(), bytes.value()) else { return Ok(false) };
                *found.entry(row_of(key.value())).or_default() |= row;
            }
        }
        Ok(true)
    }
}

/// The number of the row with this key: its last eight bytes.
fn row_of(key: &RowKey) -> u64 {
    key[16..].iter().fold(0, |row, byte| row << 8 | u64::from(*byte))
}

/// Reads the lowest indexed block and the head for which the state was written; `None` without an index of this layout.
fn read_state(write: &WriteTransaction) -> Result<Option<(u64, B256)>, ChainStoreError> {
    let meta = write.open_table(META)?;
    let state = meta.get(STATE)?;
    let Some(&[LAYOUT, ref rest @ ..]) = state.as_ref().map(|state| state.value()) else { return Ok(None) };
    let Some((lowest_indexed, head)) = rest.split_first_chunk::<8>() else { return Ok(None) };
    Ok(B256::try_from(head).ok().map(|head| (u64::from_be_bytes(*lowest_indexed), head)))
}

/// Writes the state of the index; see [`STATE`].
fn write_state(write: &WriteTransaction, lowest_indexed: u64, head: B256) -> Result<(), ChainStoreError> {
    let state = [&[LAYOUT][..], &lowest_indexed.to_be_bytes(), head.as_slice()].concat();
    write.open_table(META)?.insert(STATE, state.as_slice())?;
    Ok(())
}

/// Adds rows to the stored ones. Returns `false` if a stored row cannot be decoded.
fn write_rows(write: &WriteTransaction, rows: &Table) -> Result<bool, ChainStoreError> {
    let mut table = write.open_table(INDEX)?;
    // Rows are written in the order of their keys, so that each page of the database is visited once.
    let mut keys: Vec<&RowKey> = rows.keys().collect();
    keys.sort_unstable();
    for key in keys {
        let stored = table.get(key)?.map(|bytes| decode_row(key, bytes.value()));
        let mut row = match stored {
            None => RoaringBitmap::new(),
            Some(Some(row)) => row,
            Some(None) => return Ok(false),
        };
        rows[key].add_to(&mut row);
        row.optimize();
        table.insert(key, encode_row(key, &row).as_slice())?;
    }
    Ok(true)
}

impl Rows for StoredIndex {
    fn lowest_indexed(&self) -> u64 {
        if self.damaged.load(Ordering::Relaxed) {
            return u64::MAX;
        }
        self.lowest_indexed.load(Ordering::Relaxed)
    }

    /// Reads unwritten rows first, because they may move to the database between the two reads.
    fn read(
        &self,
        terms: &[TermKey],
        first_row: u64,
        last_row: u64,
        found: &mut RowBitmaps,
    ) -> Result<(), Unreadable> {
        let unwritten = self.unwritten();
        if !unwritten.is_empty() {
            read_table(&unwritten, terms, first_row, last_row, found);
        }
        drop(unwritten);
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        let store = slot.as_ref().ok_or(Unreadable)?;
        match Self::read_stored(store, terms, (first_row, last_row), found) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.damage("a stored row is damaged");
                Err(Unreadable)
            }
            // An error of the database is not reported here: the next write reports it.
            Err(_) => Err(Unreadable),
        }
    }
}

impl BlockIndex for StoredIndex {
    fn add(&self, number: u64, block: &StoredBlock) {
        if self.damaged.load(Ordering::Relaxed) {
            return;
        }
        let mut unwritten = self.unwritten();
        add_terms(&mut unwritten, number, block);
        let too_many = unwritten.len() > MAX_UNWRITTEN;
        drop(unwritten);
        if too_many {
            self.damage("too many rows wait to be written");
        }
    }

    fn blocks<'a>(
        &'a self,
        groups: &[Vec<Term>],
        from: u64,
        to: u64,
        interrupt: &'a dyn Fn() -> bool,
    ) -> Box<dyn Iterator<Item = u64> + 'a> {
        Box::new(IndexSearch::new(self, groups, from, to, interrupt))
    }

    /// Returns 0, so that the host does not make a new index: blocks that leave a stored chain stay stored, with their entries.
    fn added(&self) -> u64 {
        0
    }
}
