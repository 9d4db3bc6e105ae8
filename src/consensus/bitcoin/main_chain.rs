//! The heaviest chain: consecutive entries, found by height and by hash.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::entry::{Entry, NO_HEIGHT};
use crate::types::{B256, U256};

/// Number of buckets that hashes fall into; 32 kB stay in a core's own cache.
const BUCKETS: usize = 1 << 13;

/// Blocks whose median time a header must be above.
pub(super) const MEDIAN_BLOCKS: usize = 11;

/// The entries of the heaviest chain, from the lowest that is held to the tip. There is always one entry.
///
/// A bucket has the height of its highest entry, and each entry that of the next lower one. So the highest entry is removed
/// in one step, and the lowest needs none: a height below all kept ones ends its bucket.
#[derive(Debug, Clone)]
pub(super) struct MainChain {
    lowest: Entry,
    /// The entries above the lowest, the tip last.
    above: VecDeque<Entry>,
    /// Times of the highest blocks, at the rest of their heights by [`MEDIAN_BLOCKS`]; zeros where there are fewer.
    newest_times: [u32; MEDIAN_BLOCKS],
    buckets: Vec<u32>,
}

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
    pub(super) const fn lowest(&self) -> u32 {
        self.lowest.height
    }

    pub(super) fn at(&self, height: u32) -> Option<&Entry> {
        match height.checked_sub(self.lowest.height)?.checked_sub(1) {
            None => Some(&self.lowest),
            Some(index) => self.above.get(index as usize),
        }
    }

    pub(super) fn down_from(&self, height: u32) -> impl Iterator<Item = &Entry> {
        let above = self.tip().height.saturating_sub(height) as usize;
        self.above.iter().rev().chain([&self.lowest]).skip(above)
    }

    pub(super) fn by_hash(&self, hash: &B256) -> Option<&Entry> {
        let mut entry = self.at(*self.buckets.get(bucket_of(hash))?)?;
        while entry.hash != *hash {
            entry = self.at(entry.next_in_bucket)?;
        }
        Some(entry)
    }

    /// Makes an entry the highest of its bucket. Returns the height of the one before.
    #[inline]
    fn put_in_bucket(&mut self, entry: &Entry) -> u32 {
        let highest = self.buckets.get_mut(bucket_of(&entry.hash));
        highest.map_or(NO_HEIGHT, |highest| core::mem::replace(highest, entry.height))
    }

    /// Adds an entry on top.
    // Inlined, the entry is made in its place: its copies would take as long as a tenth of its hash.
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

/// Notes the time of an entry in place of the one that is [`MEDIAN_BLOCKS`] below it.
#[inline]
fn note_time(times: &mut [u32; MEDIAN_BLOCKS], entry: &Entry) {
    if let Some(time) = times.get_mut(entry.height as usize % MEDIAN_BLOCKS) {
        *time = entry.fields().time();
    }
}
