//! The heaviest chain of a [`BitcoinChain`](super::BitcoinChain): consecutive entries, found by height and by hash.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::entry::{Entry, NO_HEIGHT};
use crate::types::{B256, U256};

/// Number of buckets that hashes fall into. Their 32 kB fit the cache of one processor core.
const BUCKETS: usize = 1 << 13;

/// Number of blocks below a header whose median time the header's time must exceed, a rule of Bitcoin.
pub(super) const MEDIAN_BLOCKS: usize = 11;

/// The entries of the heaviest chain, from the lowest one in memory to the tip. There is always at least one entry.
///
/// Hashes are found through buckets: a bucket has the height of its highest entry, and each entry the height of the next lower one of
/// its bucket. So the highest entry is removed in one step, and the removal of the lowest changes no bucket: a search ends at a height
/// that is below the lowest entry.
#[derive(Debug, Clone)]
pub(super) struct MainChain {
    lowest: Entry,
    /// The entries above the lowest, the tip last.
    above: VecDeque<Entry>,
    /// Times of the newest blocks, each at the index `height % MEDIAN_BLOCKS`; zeros where there are fewer blocks.
    newest_times: [u32; MEDIAN_BLOCKS],
    /// Height of the highest entry of each bucket, or [`NO_HEIGHT`].
    buckets: Vec<u32>,
}

/// The bucket of a hash in internal byte order: proof of work makes its last bytes zero, so the first two are used.
#[inline]
fn bucket_of(hash: &B256) -> usize {
    let [first, second, ..] = hash.0;
    usize::from(u16::from_le_bytes([first, second])) & BUCKETS.saturating_sub(1)
}

impl MainChain {
    pub(super) fn new(lowest: Entry) -> Self {
        let (above, buckets) = (VecDeque::new(), vec![NO_HEIGHT; BUCKETS]);
        let mut chain = Self { lowest, above, newest_times: [0; MEDIAN_BLOCKS], buckets };
        chain.lowest.next_in_bucket = chain.put_in_bucket(&lowest);
        chain.find_times();
        chain
    }

    #[inline]
    pub(super) fn tip(&self) -> &Entry {
        self.above.back().unwrap_or(&self.lowest)
    }

    /// Times of the tip and of the ten blocks below it, in any order, in seconds since 1970; zeros where there are fewer.
    pub(super) const fn newest_times(&self) -> &[u32; MEDIAN_BLOCKS] {
        &self.newest_times
    }

    /// Fills `newest_times` anew from the entries.
    fn find_times(&mut self) {
        self.newest_times = [0; MEDIAN_BLOCKS];
        let newest = self.above.iter().rev().chain([&self.lowest]).take(MEDIAN_BLOCKS);
        newest.for_each(|entry| note_time(&mut self.newest_times, entry));
    }

    /// Number of entries above the lowest.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.above.len()
    }

    /// Height of the lowest entry up to which the chain has at least this work; above the tip if it has less.
    pub(super) fn height_of_work(&self, work: U256) -> u32 {
        if self.lowest.work >= work {
            return self.lowest.height;
        }
        let lighter = self.above.partition_point(|entry| entry.work < work);
        self.lowest.height.saturating_add(1).saturating_add(lighter as u32)
    }

    /// Height of the lowest entry.
    #[inline]
    pub(super) const fn lowest_height(&self) -> u32 {
        self.lowest.height
    }

    /// The entry at a height.
    pub(super) fn at(&self, height: u32) -> Option<&Entry> {
        match height.checked_sub(self.lowest.height)?.checked_sub(1) {
            None => Some(&self.lowest),
            Some(index) => self.above.get(index as usize),
        }
    }

    /// The entries from a height down to the lowest.
    pub(super) fn down_from(&self, height: u32) -> impl Iterator<Item = &Entry> {
        let above = self.tip().height.saturating_sub(height) as usize;
        self.above.iter().rev().chain([&self.lowest]).skip(above)
    }

    /// The entry with this hash. The search goes down its bucket, and ends below the lowest entry.
    pub(super) fn by_hash(&self, hash: &B256) -> Option<&Entry> {
        let mut entry = self.at(*self.buckets.get(bucket_of(hash))?)?;
        while entry.hash != *hash {
            entry = self.at(entry.next_in_bucket)?;
        }
        Some(entry)
    }

    /// Makes an entry the highest of its bucket. Returns the height of the entry that was the highest before.
    #[inline]
    fn put_in_bucket(&mut self, entry: &Entry) -> u32 {
        let highest = self.buckets.get_mut(bucket_of(&entry.hash));
        highest.map_or(NO_HEIGHT, |highest| core::mem::replace(highest, entry.height))
    }

    /// Adds an entry on top.
    // Inlined, so that the entry is built where it is stored: copying it would take a tenth of the time of its hash.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        note_time(&mut self.newest_times, &entry);
        let next_in_bucket = self.put_in_bucket(&entry);
        self.above.push_back(Entry { next_in_bucket, ..entry });
    }

    /// Removes the tip, unless it is the only entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let removed = self.above.pop_back()?;
        if let Some(highest) = self.buckets.get_mut(bucket_of(&removed.hash)) {
            *highest = removed.next_in_bucket;
        }
        self.find_times();
        Some(removed)
    }

    /// Removes the lowest entry, unless it is the tip.
    pub(super) fn drop_lowest(&mut self) {
        if let Some(next) = self.above.pop_front() {
            self.lowest = next;
        }
    }
}

/// Writes the time of an entry over the time of the block that is [`MEDIAN_BLOCKS`] below it.
#[inline]
fn note_time(times: &mut [u32; MEDIAN_BLOCKS], entry: &Entry) {
    if let Some(time) = times.get_mut(entry.height as usize % MEDIAN_BLOCKS) {
        *time = entry.fields().time();
    }
}
