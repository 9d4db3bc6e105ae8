//! Headers off the heaviest chain (the main chain, [`MainChain`]): the chain moves a branch into the main chain when the branch has
//! more work.

use alloc::vec::Vec;

use alloy_primitives::map::B256Map;

use super::entry::Entry;
use super::main_chain::MainChain;
use crate::types::B256;

/// Most headers on branches. A branch of a whole retarget period (2,016 blocks) fits, and memory stays below 2 MB.
pub(super) const MAX_BRANCH_HEADERS: usize = 3_072;
/// Most headers that stay once [`MAX_BRANCH_HEADERS`] is exceeded: whole branches, those with the most work. A quarter becomes free,
/// so that the branches are not sorted again for each further header.
const KEPT_BRANCH_HEADERS: usize = MAX_BRANCH_HEADERS / 4 * 3;

/// A header on a branch.
#[derive(Debug, Clone)]
pub(super) struct BranchHeader {
    pub(super) entry: Entry,
    /// Height of the highest block that the branch shares with the heaviest chain.
    pub(super) fork: u32,
    /// Marks the headers that [`Branches::limit`] keeps; `false` outside of that function.
    kept: bool,
}

/// The headers of all branches, by hash.
#[derive(Debug, Clone, Default)]
pub(super) struct Branches(B256Map<BranchHeader>);

impl Branches {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get(&self, hash: &B256) -> Option<&BranchHeader> {
        self.0.get(hash)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &BranchHeader> {
        self.0.values()
    }

    /// Adds a header whose branch leaves the main chain after the height `fork`.
    pub(super) fn insert(&mut self, entry: Entry, fork: u32) {
        self.0.insert(entry.hash, BranchHeader { entry, fork, kept: false });
    }

    /// Removes the header `tip` and all below it on its branch, and returns them from the top down.
    fn take(&mut self, tip: &B256) -> Vec<Entry> {
        let mut taken = Vec::new();
        let mut next = *tip;
        while let Some(branched) = self.0.remove(&next) {
            next = branched.entry.fields().previous();
            taken.push(branched.entry);
        }
        taken
    }

    /// Exchanges the branch that ends at `tip` with the blocks of the main chain above its fork. Returns how many blocks left the
    /// main chain.
    pub(super) fn exchange(&mut self, tip: &B256, fork: u32, main: &mut MainChain) -> u32 {
        let added = self.take(tip);
        let mut removed = Vec::new();
        while main.tip().height > fork {
            let Some(entry) = main.pop() else { break };
            removed.push(entry);
        }
        added.into_iter().rev().for_each(|entry| main.push(entry));
        let count = removed.len() as u32;
        removed.into_iter().for_each(|entry| self.insert(entry, fork));
        self.find_forks(main);
        count
    }

    /// Finds anew where each branch leaves the main chain.
    fn find_forks(&mut self, main: &MainChain) {
        let mut upward: Vec<(u32, B256)> = self.iter().map(|b| (b.entry.height, b.entry.hash)).collect();
        // From the lowest height up, so that the fork of a parent is found before those of its children.
        upward.sort_unstable();
        for (_, hash) in upward {
            let Some(previous) = self.get(&hash).map(|branched| branched.entry.fields().previous()) else {
                continue;
            };
            let on_main = main.by_hash(&previous).map(|entry| entry.height);
            let fork = on_main.or_else(|| self.get(&previous).map(|parent| parent.fork));
            if let (Some(fork), Some(branched)) = (fork, self.0.get_mut(&hash)) {
                branched.fork = fork;
            }
        }
    }

    /// Drops branches that leave the main chain below the height `lowest_fork`, and those with the least work if there are too many
    /// headers. The branch of the header `newest` is kept first, and may be as long as all branches together may be, so that a long
    /// branch can arrive whole, header by header.
    pub(super) fn limit(&mut self, lowest_fork: u32, newest: &B256) {
        self.0.retain(|_, branched| branched.fork >= lowest_fork);
        if self.0.len() <= MAX_BRANCH_HEADERS {
            return;
        }
        let mut downward: Vec<_> = self.iter().map(|b| (b.entry.weight(), b.entry.hash)).collect();
        downward.sort_unstable_by(|a, b| b.cmp(a));
        let length = self.keep(newest, MAX_BRANCH_HEADERS);
        let mut left = match length <= MAX_BRANCH_HEADERS {
            true => KEPT_BRANCH_HEADERS.saturating_sub(length),
            false => KEPT_BRANCH_HEADERS,
        };
        for hash in downward.iter().map(|(_, hash)| hash) {
            match left.checked_sub(self.keep(hash, left)) {
                Some(fewer) => left = fewer,
                // The branch does not fit; it and all lighter ones are dropped.
                None => break,
            }
        }
        self.0.retain(|_, branched| core::mem::take(&mut branched.kept));
    }

    /// Marks a header and the headers below it on its branch to be kept, if at most `most` of them were not marked before. Returns how
    /// many were not marked before, also if there are more than `most`.
    fn keep(&mut self, hash: &B256, most: usize) -> usize {
        let mut branch = Vec::new();
        let mut next = *hash;
        while let Some(branched) = self.0.get(&next).filter(|branched| !branched.kept) {
            branch.push(next);
            next = branched.entry.fields().previous();
        }
        for hash in branch.iter().filter(|_| branch.len() <= most) {
            if let Some(branched) = self.0.get_mut(hash) {
                branched.kept = true;
            }
        }
        branch.len()
    }
}
