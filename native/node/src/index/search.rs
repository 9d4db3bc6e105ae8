//! Searches of the index: the blocks that have, of each group of terms, at least one term. A window here is the blocks of the rows that
//! are read together ([`WINDOW`]).

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use rootlight::local::Term;

use super::row::{ROW_BLOCKS, TermKey, position, term_key};

/// Number of rows that a search reads at a time. With 8 KiB for each row, the candidates of a million blocks take at most
/// 128 KiB for each group of terms.
const WINDOW: u64 = 16;

/// Number of terms after which a search checks whether it is interrupted.
const TERMS_PER_CHECK: usize = 64;

/// Positions of blocks by the number of the row.
pub(crate) type RowBitmaps = BTreeMap<u64, RoaringBitmap>;

/// Rows cannot be read, so that every block counts as a candidate.
#[derive(Debug)]
pub(crate) struct Unreadable;

/// The rows of an index, in memory or stored.
pub(crate) trait Rows {
    /// The lowest block from which on, itself included, all canonical blocks are in the rows. Blocks below may be missing, so that
    /// all of them are candidates.
    fn lowest_indexed(&self) -> u64;

    /// Adds the rows `first_row..=last_row` of all these terms to `found`.
    fn read(
        &self,
        terms: &[TermKey],
        first_row: u64,
        last_row: u64,
        found: &mut RowBitmaps,
    ) -> Result<(), Unreadable>;
}

/// The candidates of a search, in ascending order. They are computed for [`WINDOW`] rows at a time.
pub(crate) struct IndexSearch<'a> {
    rows: &'a dyn Rows,
    /// A candidate has at least one term of each group.
    groups: Vec<Vec<TermKey>>,
    /// The first block of the next window.
    next: Option<u64>,
    /// The last block of the search.
    to: u64,
    /// Whether the search has to end, because its time is over.
    interrupt: &'a dyn Fn() -> bool,
    /// The candidates of the present window that were not returned yet.
    window: Box<dyn Iterator<Item = u64>>,
}

impl<'a> IndexSearch<'a> {
    /// Starts a search in a range of blocks, both ends included.
    pub(crate) fn new(
        rows: &'a dyn Rows,
        groups: &[Vec<Term>],
        from: u64,
        to: u64,
        interrupt: &'a dyn Fn() -> bool,
    ) -> Self {
        let keys = |group: &Vec<Term>| {
            let mut keys: Vec<TermKey> = group.iter().map(term_key).collect();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let mut groups: Vec<Vec<TermKey>> =
            groups.iter().filter(|group| !group.is_empty()).map(keys).collect();
        // Short groups first: if one has no block in a window, the others are not read.
        groups.sort_by_key(Vec::len);
        let next = (from <= to).then_some(from);
        Self { rows, groups, next, to, interrupt, window: Box::new(std::iter::empty()) }
    }

    /// The candidates from `from` on, and the last block that they cover.
    fn window(&self, from: u64) -> (Box<dyn Iterator<Item = u64>>, u64) {
        let lowest_indexed = self.rows.lowest_indexed();
        if self.groups.is_empty() || from < lowest_indexed {
            let last =
                if self.groups.is_empty() { self.to } else { self.to.min(lowest_indexed.saturating_sub(1)) };
            return (Box::new(from..=last), last);
        }
        let first_row = position(from).0;
        let last_row = position(self.to).0.min(first_row.saturating_add(WINDOW - 1));
        let last = self.to.min(last_row.saturating_mul(ROW_BLOCKS).saturating_add(ROW_BLOCKS - 1));
        match self.candidates(first_row, last_row) {
            Ok(found) => {
                let numbers = found.into_iter().flat_map(|(row, positions)| {
                    positions
                        .into_iter()
                        .map(move |position| row.saturating_mul(ROW_BLOCKS).saturating_add(position.into()))
                });
                (
                    Box::new(
                        numbers
                            .skip_while(move |number| *number < from)
                            .take_while(move |number| *number <= last),
                    ),
                    last,
                )
            }
            Err(Unreadable) => (Box::new(from..=last), last),
        }
    }

    /// The blocks in the rows `first_row..=last_row` that have a term of every group. An interrupted search fails, so that every block
    /// is a candidate.
    fn candidates(&self, first_row: u64, last_row: u64) -> Result<RowBitmaps, Unreadable> {
        let mut all: Option<RowBitmaps> = None;
        for group in &self.groups {
            let mut found = RowBitmaps::new();
            for terms in group.chunks(TERMS_PER_CHECK) {
                if (self.interrupt)() {
                    return Err(Unreadable);
                }
                self.rows.read(terms, first_row, last_row, &mut found)?;
            }
            if let Some(before) = all.take() {
                found.retain(|row, positions| {
                    let Some(others) = before.get(row) else { return false };
                    *positions &= others;
                    !positions.is_empty()
                });
            }
            if found.is_empty() {
                return Ok(found);
            }
            all = Some(found);
        }
        // `window` calls this only if there are groups.
        Ok(all.unwrap_or_default())
    }
}

impl Iterator for IndexSearch<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        loop {
            if let Some(number) = self.window.next() {
                return Some(number);
            }
            let (window, last) = self.window(self.next?);
            self.window = window;
            self.next = last.checked_add(1).filter(|next| *next <= self.to);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use alloy_primitives::B256;
    use proptest::prelude::*;

    use super::super::memory::{BlockPositions, Table, read_table};
    use super::super::row::row_key;
    use super::*;

    /// Rows in memory that lack the lowest blocks.
    struct TestRows {
        table: Table,
        lowest_indexed: u64,
        readable: bool,
    }

    impl Rows for TestRows {
        fn lowest_indexed(&self) -> u64 {
            self.lowest_indexed
        }

        fn read(
            &self,
            terms: &[TermKey],
            first_row: u64,
            last_row: u64,
            found: &mut RowBitmaps,
        ) -> Result<(), Unreadable> {
            read_table(&self.table, terms, first_row, last_row, found);
            if self.readable { Ok(()) } else { Err(Unreadable) }
        }
    }

    fn term(which: usize) -> Term {
        Term::Topic(which % 2, B256::with_last_byte(which as u8))
    }

    /// Heights near the ends of rows and windows.
    fn height() -> impl Strategy<Value = u64> {
        (prop::sample::select(vec![0, 1, 2, 15, 16, 17, 33, 500]), 0..5_u64)
            .prop_map(|(row, at)| row * ROW_BLOCKS + (ROW_BLOCKS + at - 2) % ROW_BLOCKS)
    }

    proptest! {
        #[test]
        fn a_search_finds_exactly_the_blocks_with_every_group(
            sets in proptest::collection::vec(proptest::collection::btree_set(height(), 0..40), 6),
            groups in proptest::collection::vec(proptest::collection::vec(0..6_usize, 0..4), 0..4),
            (a, b) in (height(), height()),
            below in 0..100_u64,
        ) {
            let (from, to) = (a.min(b), a.max(b));
            let mut table = Table::new();
            for (which, set) in sets.iter().enumerate() {
                for number in set {
                    let (row, at) = position(*number);
                    let positions = table.entry(row_key(&term_key(&term(which)), row)).or_insert(BlockPositions::One(at));
                    positions.insert(at);
                }
            }
            let lowest_indexed = if below == 0 { 0 } else { from.saturating_add(below) };
            let rows = TestRows { table, lowest_indexed, readable: true };
            let terms: Vec<Vec<Term>> =
                groups.iter().map(|group| group.iter().map(|which| term(*which)).collect()).collect();
            let wanted = |number: &u64| {
                groups.iter().all(|group| group.is_empty() || group.iter().any(|which| sets[*which].contains(number)))
            };
            let searched = IndexSearch::new(&rows, &terms, from, to, &|| false);
            if groups.iter().all(Vec::is_empty) {
                // Every block is a candidate.
                prop_assert_eq!(searched.take(100).collect::<Vec<_>>(), (from..=to).take(100).collect::<Vec<_>>());
            } else {
                let all: BTreeSet<u64> = sets.iter().flatten().copied().filter(wanted).collect();
                let mut expected: BTreeSet<u64> = all.range(from..=to).copied().collect();
                if lowest_indexed > from {
                    expected.extend(from..=to.min(lowest_indexed - 1));
                }
                prop_assert_eq!(searched.collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_interrupted_or_unreadable_search_has_every_block() {
        let mut rows = TestRows { table: Table::new(), lowest_indexed: 0, readable: true };
        let groups = [vec![term(1)]];
        assert_eq!(IndexSearch::new(&rows, &groups, 5, 70_000, &|| false).count(), 0);
        assert!(IndexSearch::new(&rows, &groups, 5, 70_000, &|| true).eq(5..=70_000));
        rows.readable = false;
        assert!(IndexSearch::new(&rows, &groups, 5, 70_000, &|| false).eq(5..=70_000));
        assert!(IndexSearch::new(&rows, &[], 7, 6, &|| false).next().is_none());
        let most = IndexSearch::new(&rows, &groups, u64::MAX - 1, u64::MAX, &|| false);
        assert!(most.eq(u64::MAX - 1..=u64::MAX));
    }
}
