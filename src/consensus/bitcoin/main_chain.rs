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
    tip: Entry,
    /// Times of the highest blocks, the tip's last; zeros where there are fewer.
    newest_times: [u32; MEDIAN_BLOCKS],
    below: VecDeque<Entry>,
    buckets: Vec<u32>,
}

fn bucket_of(hash: &B256) -> usize {
    let [first, second, ..] = hash.0;
    usize::from(u16::from_le_bytes([first, second])) & BUCKETS.saturating_sub(1)
}

impl MainChain {
    pub(super) fn new(lowest: Entry) -> Self {
        let (below, buckets) = (VecDeque::new(), vec![NO_HEIGHT; BUCKETS]);
        let mut chain = Self { tip: lowest, newest_times: [0; MEDIAN_BLOCKS], below, buckets };
        chain.tip.next_in_bucket = chain.put_in_bucket(&lowest);
        chain.find_times();
        chain
    }

    pub(super) const fn tip(&self) -> &Entry {
        &self.tip
    }

    /// Times of the tip and of the ten blocks below it, in seconds since 1970; zeros where there are fewer.
    pub(super) const fn newest_times(&self) -> &[u32; MEDIAN_BLOCKS] {
        &self.newest_times
    }

    fn find_times(&mut self) {
        let mut times = [0; MEDIAN_BLOCKS];
        let newest = self.down_from(self.tip.height).map(|entry| entry.fields().time());
        times.iter_mut().rev().zip(newest).for_each(|(to, time)| *to = time);
        self.newest_times = times;
    }

    /// Number of entries below the tip.
    pub(super) fn len(&self) -> usize {
        self.below.len()
    }

    /// Height of the lowest entry up to which the chain has at least this work.
    pub(super) fn height_of_work(&self, work: U256) -> u32 {
        let lighter = self.below.partition_point(|entry| entry.work < work);
        self.lowest().saturating_add(lighter as u32)
    }

    /// Height of the lowest entry.
    pub(super) fn lowest(&self) -> u32 {
        self.tip.height.saturating_sub(self.below.len() as u32)
    }

    pub(super) fn at(&self, height: u32) -> Option<&Entry> {
        if height == self.tip.height {
            return Some(&self.tip);
        }
        self.below.get(height.checked_sub(self.lowest())? as usize)
    }

    /// The entries from a height down.
    pub(super) fn down_from(&self, height: u32) -> impl Iterator<Item = &Entry> {
        let above = self.tip.height.saturating_sub(height) as usize;
        core::iter::once(&self.tip).chain(self.below.iter().rev()).skip(above)
    }

    pub(super) fn by_hash(&self, hash: &B256) -> Option<&Entry> {
        let mut entry = self.at(*self.buckets.get(bucket_of(hash))?)?;
        while entry.hash != *hash {
            entry = self.at(entry.next_in_bucket)?;
        }
        Some(entry)
    }

    /// Makes an entry the highest of its bucket. Returns the height of the one before.
    fn put_in_bucket(&mut self, entry: &Entry) -> u32 {
        let highest = self.buckets.get_mut(bucket_of(&entry.hash));
        highest.map_or(NO_HEIGHT, |highest| core::mem::replace(highest, entry.height))
    }

    /// Adds an entry on top.
    // Inlined, the entry is made in its place: its copies would take as long as a tenth of its hash.
    #[inline]
    pub(super) fn push(&mut self, entry: Entry) {
        self.newest_times.copy_within(1.., 0);
        if let Some(newest) = self.newest_times.last_mut() {
            *newest = entry.fields().time();
        }
        self.below.push_back(self.tip);
        let next_in_bucket = self.put_in_bucket(&entry);
        self.tip = Entry { next_in_bucket, ..entry };
    }

    /// Removes the tip, unless it is the only entry.
    pub(super) fn pop(&mut self) -> Option<Entry> {
        let below = self.below.pop_back()?;
        let removed = core::mem::replace(&mut self.tip, below);
        if let Some(highest) = self.buckets.get_mut(bucket_of(&removed.hash)) {
            *highest = removed.next_in_bucket;
        }
        self.find_times();
        Some(removed)
    }

    /// Removes the lowest entry, unless it is the tip.
    pub(super) fn drop_lowest(&mut self) {
        self.below.pop_front();
    }
}
