//! The index of a chain that is not stored, and the rows in memory, which the index of a stored chain also uses for rows that are
//! not written yet.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use roaring::RoaringBitmap;
use rootlight::local::{BlockIndex, ChainSnapshot, StoredBlock, Term};

use super::row::{RowKey, TermKey, position, row_key, term_key};
use super::search::{IndexSearch, RowBitmaps, Rows, Unreadable};

/// A row in memory: the positions, in the row, of the blocks in which a term occurs. Most terms occur in a single block, for which
/// a bitmap would take ten times the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BlockPositions {
    One(u16),
    /// Several blocks.
    Many(RoaringBitmap),
}

impl BlockPositions {
    /// Adds the position of a block.
    pub(crate) fn insert(&mut self, position: u16) {
        match self {
            Self::One(one) if *one == position => {}
            Self::One(one) => *self = Self::Many([*one, position].map(u32::from).into_iter().collect()),
            Self::Many(many) => drop(many.insert(position.into())),
        }
    }

    /// Adds all positions to a bitmap.
    pub(crate) fn add_to(&self, sum: &mut RoaringBitmap) {
        match self {
            Self::One(position) => drop(sum.insert(u32::from(*position))),
            Self::Many(many) => *sum |= many,
        }
    }
}

/// Rows in memory, by key.
pub(crate) type Table = HashMap<RowKey, BlockPositions>;

/// Adds a block to the rows of all its terms.
pub(crate) fn add_terms(table: &mut Table, number: u64, block: &StoredBlock) {
    let (row, at) = position(number);
    block.for_each_term(&mut |term| {
        table.entry(row_key(&term_key(&term), row)).or_insert(BlockPositions::One(at)).insert(at);
    });
}

/// Adds the rows `first_row..=last_row` of terms in a table to `found`.
pub(crate) fn read_table(
    table: &Table,
    terms: &[TermKey],
    first_row: u64,
    last_row: u64,
    found: &mut RowBitmaps,
) {
    for term in terms {
        for row in first_row..=last_row {
            if let Some(positions) = table.get(&row_key(term, row)) {
                positions.add_to(found.entry(row).or_default());
            }
        }
    }
}

/// An index in memory. Entries of blocks that left the chain stay until the host makes a new index.
#[derive(Debug, Default)]
pub struct MemoryIndex {
    table: RwLock<Table>,
    /// Number of blocks that were added, those that have left the chain included.
    added: AtomicU64,
}

impl MemoryIndex {
    /// Makes an index of the canonical blocks of a chain.
    #[must_use]
    pub fn of(chain: &ChainSnapshot) -> Self {
        let index = Self::default();
        for number in 0..=chain.head().number {
            let block = chain.headers().hash_at(number).and_then(|hash| chain.block(&hash));
            if let Some(block) = block {
                index.add(number, block);
            }
        }
        index
    }

    /// Whether most entries may be of blocks that left the chain, so that a new index would be smaller. `head` is the
    /// height of the chain.
    #[must_use]
    pub(crate) fn is_bloated(index: &dyn BlockIndex, head: u64) -> bool {
        index.added() > head.saturating_mul(2).saturating_add(FREE_ADDED)
    }
}

/// Number of blocks that may leave the chain before a short chain gets a new index; without it, a chain of few blocks would get a
/// new index at every reorganization.
const FREE_ADDED: u64 = 4_096;

impl Rows for MemoryIndex {
    fn lowest_indexed(&self) -> u64 {
        0
    }

    fn read(
        &self,
        terms: &[TermKey],
        first_row: u64,
        last_row: u64,
        found: &mut RowBitmaps,
    ) -> Result<(), Unreadable> {
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        read_table(&table, terms, first_row, last_row, found);
        Ok(())
    }
}

impl BlockIndex for MemoryIndex {
    fn add(&self, number: u64, block: &StoredBlock) {
        self.added.fetch_add(1, Ordering::Relaxed);
        add_terms(&mut self.table.write().unwrap_or_else(PoisonError::into_inner), number, block);
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

    fn added(&self) -> u64 {
        self.added.load(Ordering::Relaxed)
    }
}
