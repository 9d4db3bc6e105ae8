//! A fixed state of the chain, for readers.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::entry::{Entry, skip_height};
use super::heights::Heights;
use super::unproven::Unproven;
use crate::consensus::fork_detection::UNCLE_BLOCKS;
use crate::consensus::network::Network;
use crate::consensus::persistent::Map;
use crate::consensus::uncles::VerifiedUncles;
use crate::consensus::verified::VerifiedHeader;
use crate::types::{B256, FORK_DETECTION_LEN, U256};

/// Where a chain starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Block number.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
    /// Total difficulty with all uncles, where it is known.
    pub total_difficulty: Option<U256>,
    /// Work of the headers from the checkpoint, which does not count, up to this block: zero at the checkpoint; not known
    /// while the way from there to a block that was kept is not proven.
    pub work: Option<U256>,
}

/// One state of the chain. Cloning is cheap and pins it: later headers and reorganisations do not show.
#[derive(Debug, Clone)]
pub struct ChainView {
    pub(super) network: Arc<Network>,
    pub(super) base: Base,
    pub(super) head: Arc<Entry>,
    /// Every kept header, canonical or not.
    pub(super) entries: Map<B256, Arc<Entry>>,
    /// Hash of the canonical block of each number, also where the header is not kept any more.
    pub(super) canonical: Heights,
    /// Lowest canonical number whose header is kept.
    pub(super) lowest: u64,
    /// How far down what was read back is proven.
    pub(super) unproven: Option<Unproven>,
}

impl ChainView {
    /// The network.
    #[must_use]
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Where the chain starts.
    #[must_use]
    pub const fn base(&self) -> &Base {
        &self.base
    }

    /// Head of the heaviest chain.
    #[must_use]
    pub fn head(&self) -> &VerifiedHeader {
        &self.head.header
    }

    /// Lowest number whose canonical header is kept.
    #[must_use]
    pub const fn lowest(&self) -> u64 {
        self.lowest
    }

    /// The canonical header of a number, if it is kept.
    #[must_use]
    pub fn by_number(&self, number: u64) -> Option<&VerifiedHeader> {
        self.by_hash(self.canonical.get(&number)?)
    }

    /// The canonical hash of a number; known also below the kept headers as far as this chain has seen them.
    #[must_use]
    pub fn hash_at(&self, number: u64) -> Option<B256> {
        self.canonical.get(&number).copied()
    }

    /// A kept header, canonical or not.
    #[must_use]
    pub fn by_hash(&self, hash: &B256) -> Option<&VerifiedHeader> {
        self.entries.get(hash).map(|entry| &entry.header)
    }

    /// Whether the block of this number and hash is on the heaviest chain.
    #[must_use]
    pub fn is_canonical(&self, number: u64, hash: &B256) -> bool {
        self.canonical.get(&number) == Some(hash)
    }

    /// Number of kept headers, canonical or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Never: a chain has at least the header it started from or a later one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// The proven uncles of a block.
    #[must_use]
    pub fn uncles(&self, hash: &B256) -> Option<&Arc<VerifiedUncles>> {
        self.entries.get(hash)?.uncles.as_ref()
    }

    /// Exact total difficulty: known if the base's is and the uncles of every block above it are proven.
    #[must_use]
    pub fn total_difficulty(&self, hash: &B256) -> Option<U256> {
        let entry = self.entries.get(hash).filter(|entry| entry.number() >= self.base.number)?;
        let unproven = self.unproven.is_some() && entry.number() > self.base.number;
        if unproven || entry.proven.above > self.base.number {
            return None;
        }
        self.base.total_difficulty?.checked_add(entry.work)?.checked_add(entry.proven.work)
    }

    /// Sum of the proven header difficulties above the checkpoint up to a block, without uncles. Not known off the heaviest
    /// chain while headers that were read back are not proven.
    #[must_use]
    pub fn header_work(&self, hash: &B256) -> Option<U256> {
        let entry = self.weighed(hash)?;
        let known = self.base.work.unwrap_or_default();
        if entry.number() < self.base.number {
            // Below a base above the checkpoint is work that is counted for the base as a whole.
            return self.base.work.filter(U256::is_zero);
        }
        match &self.unproven {
            None => Some(known.saturating_add(entry.work)),
            Some(_) if !self.is_canonical(entry.number(), hash) => None,
            Some(unproven) => Some(known.saturating_add(entry.work.saturating_sub(unproven.work))),
        }
    }

    /// Proven difficulty of the headers from a canonical block on up to the head: what whoever made that block up has
    /// mined at least. Of the base and the blocks below it, that of all headers above the base.
    #[must_use]
    pub fn work_from(&self, number: u64) -> Option<U256> {
        let all = self.header_work(&self.head.hash())?;
        if number <= self.base.number {
            return Some(all.saturating_sub(self.base.work.unwrap_or_default()));
        }
        let header = self.by_number(number)?;
        let below = self.header_work(&header.hash())?.saturating_sub(header.difficulty.value());
        Some(all.saturating_sub(below))
    }

    /// A header whose work above the base is known: not one that was dropped and added again.
    fn weighed(&self, hash: &B256) -> Option<&Arc<Entry>> {
        let known = |number: u64| number >= self.lowest || number <= self.base.number;
        self.entries.get(hash).filter(|entry| known(entry.number()))
    }

    /// Work on top of a canonical block: header difficulties, and those of uncles that are proven.
    #[must_use]
    pub fn work_above(&self, number: u64) -> Option<U256> {
        let below = self.weighed(self.canonical.get(&number)?)?;
        Some(self.work_between(self.proven_from(below), &self.head))
    }

    /// Where the proven work of the heaviest chain above one of its headers begins: there, or at the highest header that
    /// was read back and is not proven.
    pub(super) fn proven_from<'a>(&'a self, below: &'a Arc<Entry>) -> &'a Arc<Entry> {
        let unproven = self.unproven.filter(|unproven| unproven.number > below.number());
        unproven.and_then(|unproven| self.entries.get(&unproven.hash)).unwrap_or(below)
    }

    /// Blocks on top of a canonical block.
    #[must_use]
    pub fn depth(&self, number: u64, hash: &B256) -> Option<u64> {
        self.is_canonical(number, hash).then(|| self.head.number().saturating_sub(number))
    }

    /// The last `count` canonical headers, newest first.
    pub fn recent(&self, count: usize) -> impl Iterator<Item = &VerifiedHeader> {
        let numbers = (self.lowest..=self.head.number()).rev().take(count);
        numbers.filter_map(|number| self.by_number(number))
    }

    /// The ancestor of a kept header at a height, or the header itself.
    #[must_use]
    pub fn ancestor(&self, hash: &B256, number: u64) -> Option<&VerifiedHeader> {
        self.ancestor_entry(self.entries.get(hash)?, number).map(|entry| &entry.header)
    }

    /// Fork detection data that a child of this header has to commit to (RSKIP-110); `None` if it is not kept.
    #[must_use]
    pub fn fork_detection_after(&self, parent: &B256) -> Option<[u8; FORK_DETECTION_LEN]> {
        let parent = self.entries.get(parent)?;
        Some(parent.context.data(parent.number().saturating_add(1), self.stated_uncles(parent)))
    }

    /// Uncles that the 32 headers ending at `parent` state, as far as they are known.
    pub(super) fn stated_uncles(&self, parent: &Arc<Entry>) -> Option<i32> {
        let below = parent.number().checked_sub(UNCLE_BLOCKS).and_then(|n| self.ancestor_entry(parent, n));
        parent.context.uncle_sum(below.map(|entry| &entry.context))
    }

    pub(super) fn ancestor_entry<'a>(&'a self, from: &'a Arc<Entry>, number: u64) -> Option<&'a Arc<Entry>> {
        if from.number() == number {
            return Some(from);
        }
        self.ancestor_of(from, number)
    }

    /// The ancestor of an entry at a lower height.
    fn ancestor_of(&self, from: &Entry, number: u64) -> Option<&Arc<Entry>> {
        let mut at = self.entries.get(&from.hash())?;
        while at.number() > number {
            // A canonical block's ancestors are canonical.
            if self.is_canonical(at.number(), &at.hash()) {
                return self.entries.get(self.canonical.get(&number)?);
            }
            let skip = skip_height(at.number());
            let parents_skip = skip_height(at.number().saturating_sub(1));
            // The parent's skip may reach further without passing the target.
            let better_by_parent = parents_skip >= number && parents_skip.saturating_add(2) < skip;
            let by_skip = skip == number || (skip > number && !better_by_parent);
            at = self.entries.get(&if by_skip { at.skip } else { at.parent() })?;
        }
        (at.number() == number).then_some(at)
    }

    /// The highest common ancestor of two kept headers.
    pub(super) fn common_ancestor<'a>(
        &'a self,
        a: &'a Arc<Entry>,
        b: &'a Arc<Entry>,
    ) -> Option<&'a Arc<Entry>> {
        let level = a.number().min(b.number());
        let (mut a, mut b) = (self.ancestor_entry(a, level)?, self.ancestor_entry(b, level)?);
        while a.hash() != b.hash() {
            (a, b) = match (self.entries.get(&a.skip), self.entries.get(&b.skip)) {
                // Links of one height may differ in theirs: a header gets the one that is kept when it comes.
                (Some(x), Some(y)) if x.number() == y.number() && x.hash() != y.hash() => (x, y),
                _ => (self.entries.get(&a.parent())?, self.entries.get(&b.parent())?),
            };
        }
        Some(a)
    }

    /// Headers from above `ancestor` up to `tip`, oldest first.
    pub(super) fn path(&self, ancestor: &Entry, tip: &Arc<Entry>) -> Vec<Arc<Entry>> {
        let mut path = Vec::new();
        let mut at = Some(tip);
        while let Some(entry) = at.filter(|entry| entry.number() > ancestor.number()) {
            path.push(entry.clone());
            at = self.entries.get(&entry.parent());
        }
        path.reverse();
        path
    }

    /// Work of `tip` above its ancestor `below`: of all headers, and of those uncles that are proven. It is a lower
    /// bound where some are not. Such sums add up along a branch, so all branches stand in one order, whichever two of
    /// them are compared; nobody takes work from one branch by withholding something of another.
    pub(super) fn work_between(&self, below: &Entry, tip: &Entry) -> U256 {
        tip.work.saturating_sub(below.work).saturating_add(self.uncle_work_between(below, tip))
    }

    /// Proven uncle work of `tip` above its ancestor `below`, stretch by stretch between blocks without proven uncles.
    fn uncle_work_between(&self, below: &Entry, tip: &Entry) -> U256 {
        let (mut work, mut at) = (U256::ZERO, tip);
        while at.number() > below.number() {
            if at.proven.above <= below.number() {
                // The stretch goes on below; it contains `below`, or `below` is the block without proven uncles.
                return work.saturating_add(at.proven.work.saturating_sub(below.proven.work));
            }
            work = work.saturating_add(at.proven.work);
            // On from the parent of the block without proven uncles.
            let next = at.proven.above.saturating_sub(1);
            let Some(parent) = self.ancestor_of(at, next) else { break };
            at = parent;
        }
        work
    }
}
