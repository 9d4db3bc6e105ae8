//! The index of a stored chain, in the chain's own database.

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

/// Name of the index's state in the table `META`: the layout, the floor (8 bytes, big-endian), and the head of the chain
/// when it was written.
pub(crate) const STATE: &str = "index";

/// Version of the layout of keys and rows. An index of another version is built again.
const LAYOUT: u8 = 1;

/// Number of blocks that are added to the index of an older store at a time. The chain cannot be written meanwhile.
const BATCH: u64 = if cfg!(test) { 7 } else { 1_024 };

/// Most rows that wait to be written, some 60 MiB. They wait for the end of the message that adds their blocks, or for
/// as long as the disk is full. Beyond this the index is not used until it is built again.
const MAX_UNWRITTEN: usize = 1 << 19;

/// The index of a stored chain. A row is written in the same database transaction as the block that it names, so an
/// interrupted program leaves both or neither.
#[derive(Debug)]
pub struct StoredIndex {
    slot: Arc<StoreSlot>,
    /// Canonical blocks from this height on are in the index; those below are added from the top down.
    floor: AtomicU64,
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
        let floor = {
            let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
            let write = slot.as_ref().ok_or(ChainStoreError::Closed)?.write()?;
            let stored = read_state(&write)?.filter(|(_, at)| *at == head).map(|(floor, _)| floor);
            let floor = match stored {
                Some(floor) => floor,
                None => {
                    write.delete_table(INDEX)?;
                    // Block 0 has no transactions.
                    if height == 0 { 0 } else { height.saturating_add(1) }
                }
            };
            write.open_table(INDEX)?;
            write_state(&write, floor, head)?;
            write.commit()?;
            floor
        };
        Ok(Self {
            slot,
            floor: AtomicU64::new(floor),
            total: height.saturating_add(1),
            damaged: AtomicBool::new(false),
            unwritten: Mutex::default(),
        })
    }

    fn unwritten(&self) -> MutexGuard<'_, Table> {
        self.unwritten.lock().unwrap_or_else(PoisonError::into_inner)
    }

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
        write_state(write, self.floor.load(Ordering::Relaxed), head)
    }

    /// Forgets the rows that [`Self::write`] has written, once they are committed.
    pub(crate) fn written(&self) {
        *self.unwritten() = Table::default();
    }

    /// The progress of building the index; `None` if it has every block.
    pub fn progress(&self) -> Option<IndexProgress> {
        let floor = self.floor.load(Ordering::Relaxed);
        (floor > 0).then(|| IndexProgress { done: self.total.saturating_sub(floor), total: self.total })
    }

    /// Adds the next blocks of an older store, from the top down. `chain` is the chain as it was opened. Returns whether
    /// more are missing.
    pub(crate) fn build_some(&self, chain: &ChainSnapshot) -> Result<bool, ChainStoreError> {
        let floor = self.floor.load(Ordering::Relaxed);
        if floor == 0 || self.damaged.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let (first, mut table) = (floor.saturating_sub(BATCH), Table::default());
        for number in first..floor {
            let hash = chain.headers().hash_at(number).unwrap_or_default();
            let block = chain.block(&hash).ok_or(ChainStoreError::MissingBlock { number, hash })?;
            add_terms(&mut table, number, block);
        }
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        let write = slot.as_ref().ok_or(ChainStoreError::Closed)?.write()?;
        // Without a state the index was found to be damaged.
        let Some((_, head)) = read_state(&write)? else { return Ok(false) };
        if !write_rows(&write, &table)? {
            self.damage("a stored row is damaged");
            write.open_table(META)?.remove(STATE)?;
            write.commit()?;
            return Ok(false);
        }
        write_state(&write, first, head)?;
        write.commit()?;
        self.floor.store(first, Ordering::Relaxed);
        Ok(first > 0)
    }

    /// Adds the stored rows from `first` to `last` of these terms. Returns `false` if a row cannot be decoded.
    fn read_stored(
        store: &ChainStore,
        terms: &[TermKey],
        (first, last): (u64, u64),
        found: &mut RowBitmaps,
    ) -> Result<bool, ChainStoreError> {
        let table = store.read()?.open_table(INDEX)?;
        for term in terms {
            let (first, last) = (row_key(term, first), row_key(term, last));
            for entry in table.range::<&RowKey>(&first..=&last)? {
                let (key, bytes) = entry?;
                let Some(row) = decode_row(key.value(), bytes.value()) else { return Ok(false) };
                *found.entry(row_of(key.value())).or_default() |= row;
            }
        }
        Ok(true)
    }
}

/// The number of the row with this key. The blocks of a row are consecutive.
fn row_of(key: &RowKey) -> u64 {
    key[16..].iter().fold(0, |row, byte| row << 8 | u64::from(*byte))
}

/// Reads the floor of the index and the head for which it was written; `None` without an index of this layout.
fn read_state(write: &WriteTransaction) -> Result<Option<(u64, B256)>, ChainStoreError> {
    let meta = write.open_table(META)?;
    let state = meta.get(STATE)?;
    let Some(&[LAYOUT, ref rest @ ..]) = state.as_ref().map(|state| state.value()) else { return Ok(None) };
    let Some((floor, head)) = rest.split_first_chunk::<8>() else { return Ok(None) };
    Ok(B256::try_from(head).ok().map(|head| (u64::from_be_bytes(*floor), head)))
}

fn write_state(write: &WriteTransaction, floor: u64, head: B256) -> Result<(), ChainStoreError> {
    let state = [&[LAYOUT][..], &floor.to_be_bytes(), head.as_slice()].concat();
    write.open_table(META)?.insert(STATE, state.as_slice())?;
    Ok(())
}

/// Adds rows to the stored ones. Returns `false` if a stored row cannot be decoded.
fn write_rows(write: &WriteTransaction, rows: &Table) -> Result<bool, ChainStoreError> {
    let mut table = write.open_table(INDEX)?;
    // The order of the keys keeps neighbouring pages together.
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
    fn floor(&self) -> u64 {
        if self.damaged.load(Ordering::Relaxed) { u64::MAX } else { self.floor.load(Ordering::Relaxed) }
    }

    /// Unwritten rows are read first, because they may be written and forgotten meanwhile.
    fn read(
        &self,
        terms: &[TermKey],
        first: u64,
        last: u64,
        found: &mut RowBitmaps,
    ) -> Result<(), Unreadable> {
        let unwritten = self.unwritten();
        if !unwritten.is_empty() {
            read_table(&unwritten, terms, first, last, found);
        }
        drop(unwritten);
        let slot = self.slot.read().unwrap_or_else(PoisonError::into_inner);
        let store = slot.as_ref().ok_or(Unreadable)?;
        match Self::read_stored(store, terms, (first, last), found) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.damage("a stored row is damaged");
                Err(Unreadable)
            }
            // The next write reports a failing database.
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

    /// 0, since nobody has to make this index again: blocks that leave a stored chain stay stored, and so do their entries.
    fn added(&self) -> u64 {
        0
    }
}
