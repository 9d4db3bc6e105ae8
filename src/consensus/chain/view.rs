//! An immutable view of the header chain, for readers. "Kept" headers are those that the chain has in memory; the canonical chain is the
//! heaviest one.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::canonical_hashes::CanonicalHashes;
use super::entry::{ChainEntry, skip_height};
use super::unproven_tip::UnprovenTip;
use crate::consensus::fork_detection::UNCLE_BLOCKS;
use crate::consensus::network::Network;
use crate::consensus::persistent_map::PersistentMap;
use crate::consensus::uncles::VerifiedUncles;
use crate::consensus::verified::VerifiedHeader;
use crate::types::{B256, FORK_DETECTION_LEN, U256};

/// The block at which a chain starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Base {
    /// Block number.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
    /// Sum of the difficulties of all blocks up to this one and of all their uncles; `None` if not available.
    pub total_difficulty: Option<U256>,
    /// Work of the headers above the checkpoint up to this block, zero at the checkpoint. `None` while the headers
    /// between the checkpoint and a restored base are not proven.
    pub work: Option<U256>,
}

/// One state of the chain. Cloning is cheap; a clone does not show later headers and reorganisations.
#[derive(Debug, Clone)]
pub struct ChainView {
    pub(super) network: Arc<Network>,
    pub(super) base: Base,
    pub(super) head: Arc<ChainEntry>,
    /// Every kept header, canonical or not.
    pub(super) entries: PersistentMap<B256, Arc<ChainEntry>>,
    /// Hash of the canonical block of each number, even if its header is no longer kept.
    pub(super) canonical: CanonicalHashes,
    /// Lowest canonical number whose header is kept.
    pub(super) lowest: u64,
    /// The highest restored header that is not proven, if there is one.
    pub(super) unproven: Option<UnprovenTip>,
}

impl ChainView {
    /// The network.
    pub fn network(&self) -> &Arc<Network> {
        &self.network
    }

    /// Where the chain starts.
    pub const fn base(&self) -> &Base {
        &self.base
    }

    /// Head of the heaviest chain.
    pub fn head(&self) -> &VerifiedHeader {
        &self.head.header
    }

    /// Lowest number whose canonical header is kept.
    pub const fn lowest(&self) -> u64 {
        self.lowest
    }

    /// The canonical header of a number, if it is kept.
    pub fn by_number(&self, number: u64) -> Option<&VerifiedHeader> {
        self.by_hash(self.canonical.get(&number)?)
    }

    /// The canonical hash of a number. Also available for headers that were dropped from memory.
    pub fn hash_at(&self, number: u64) -> Option<B256> {
        self.canonical.get(&number).copied()
    }

    /// A kept header, canonical or not.
    pub fn by_hash(&self, hash: &B256) -> Option<&VerifiedHeader> {
        self.entries.get(hash).map(|entry| &entry.header)
    }

    /// Whether the block of this number and hash is on the heaviest chain.
    pub fn is_canonical(&self, number: u64, hash: &B256) -> bool {
        self.canonical.get(&number) == Some(hash)
    }

    /// Number of kept headers, canonical or not.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Always `false`: a chain has at least the header that it started from, or a later one.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// The proven uncles of a block.
    pub fn uncles(&self, hash: &B256) -> Option<&Arc<VerifiedUncles>> {
        self.entries.get(hash)?.uncles.as_ref()
    }

    /// Exact total difficulty of a block: of all blocks up to this one and of all their uncles. `None` unless that of the base is
    /// available and the uncles of every block above the base are proven.
    pub fn total_difficulty(&self, hash: &B256) -> Option<U256> {
        let entry = self.entries.get(hash).filter(|entry| entry.number() >= self.base.number)?;
        let unproven = self.unproven.is_some() && entry.number() > self.base.number;
        if unproven || entry.proven.above > self.base.number {
            return None;
        }
        self.base.total_difficulty?.checked_add(entry.work)?.checked_add(entry.proven.work)
    }

    /// Sum of the proven header difficulties above the checkpoint up to a block, without uncles. While restored headers are unproven, the
    /// result is `None` for blocks off the heaviest chain.
    pub fn header_work(&self, hash: &B256) -> Option<U256> {
        let entry = self.weighed(hash)?;
        let base_work = self.base.work.unwrap_or_default();
        if entry.number() < self.base.number {
            // The work between the checkpoint and a base above it is available only as one sum, that of the base.
            return self.base.work.filter(U256::is_zero);
        }
        match &self.unproven {
            None => Some(base_work.saturating_add(entry.work)),
            Some(_) if !self.is_canonical(entry.number(), hash) => None,
            Some(unproven) => Some(base_work.saturating_add(entry.work.saturating_sub(unproven.work))),
        }
    }

    /// Sum of the proven difficulties of the headers from a canonical block up to the head: the least work that a forger of this block
    /// has done. For the base and the blocks below it, the sum of all headers above the base.
    pub fn work_from(&self, number: u64) -> Option<U256> {
        let all = self.header_work(&self.head.hash())?;
        if number <= self.base.number {
            return Some(all.saturating_sub(self.base.work.unwrap_or_default()));
        }
        let header = self.by_number(number)?;
        let below = self.header_work(&header.hash())?.saturating_sub(header.difficulty.value());
        Some(all.saturating_sub(below))
    }

    /// An entry whose work above the base is available; `None` for a header that was dropped and then added by
    /// [`Self::add_ancestor`], whose entry has no work.
    fn weighed(&self, hash: &B256) -> Option<&Arc<ChainEntry>> {
        let has_work = |number: u64| number >= self.lowest || number <= self.base.number;
        self.entries.get(hash).filter(|entry| has_work(entry.number()))
    }

    /// Work on top of a canonical block: difficulties of headers, and of uncles that are proven.
    pub fn work_above(&self, number: u64) -> Option<U256> {
        let below = self.weighed(self.canonical.get(&number)?)?;
        Some(self.work_between(self.proven_from(below), &self.head))
    }

    /// The entry at which the proven work of the heaviest chain above `below` begins: `below` itself, or the highest
    /// unproven restored header.
    pub(super) fn proven_from<'a>(&'a self, below: &'a Arc<ChainEntry>) -> &'a Arc<ChainEntry> {
        let unproven = self.unproven.filter(|unproven| unproven.number > below.number());
        unproven.and_then(|unproven| self.entries.get(&unproven.hash)).unwrap_or(below)
    }

    /// The chain as it would be without the blocks above this canonical one. `None` if the block is not canonical or its
    /// header is not kept, or while restored headers are unproven. Headers above the block stay in the view, like those of another
    /// branch. The call takes one step for each block that is left out.
    pub fn ending_at(&self, hash: &B256) -> Option<Self> {
        let head = self.entries.get(hash).filter(|entry| self.is_canonical(entry.number(), hash))?;
        if self.unproven.is_some() || head.number() < self.lowest {
            return None;
        }
        let mut canonical = self.canonical.clone();
        for number in head.number().saturating_add(1)..=self.head.number() {
            canonical.remove(&number);
        }
        Some(Self { head: head.clone(), canonical, ..self.clone() })
    }

    /// Number of blocks on top of a canonical block; `None` off the heaviest chain.
    pub fn depth(&self, number: u64, hash: &B256) -> Option<u64> {
        self.is_canonical(number, hash).then(|| self.head.number().saturating_sub(number))
    }

    /// The ancestor of a kept header at a height, or the header itself.
    pub fn ancestor(&self, hash: &B256, number: u64) -> Option<&VerifiedHeader> {
        self.ancestor_entry(self.entries.get(hash)?, number).map(|entry| &entry.header)
    }

    /// Fork detection data to which a child of the header `parent` must commit (RSKIP-110). Parts about ancestors that the chain lacks
    /// are zero. `None` if the header is not kept.
    pub fn fork_detection_after(&self, parent: &B256) -> Option<[u8; FORK_DETECTION_LEN]> {
        let parent = self.entries.get(parent)?;
        Some(parent.context.data(parent.number().saturating_add(1), self.stated_uncles(parent)))
    }

    /// Sum of the uncle counts that the 32 headers ending at `parent` state; `None` if the chain lacks some of them.
    pub(super) fn stated_uncles(&self, parent: &Arc<ChainEntry>) -> Option<i32> {
        let below = parent.number().checked_sub(UNCLE_BLOCKS).and_then(|n| self.ancestor_entry(parent, n));
        parent.context.uncle_sum(below.map(|entry| &entry.context))
    }

    /// The ancestor of an entry at a height, or the entry itself.
    pub(super) fn ancestor_entry<'a>(
        &'a self,
        from: &'a Arc<ChainEntry>,
        number: u64,
    ) -> Option<&'a Arc<ChainEntry>> {
        if from.number() == number {
            return Some(from);
        }
        self.ancestor_of(from, number)
    }

    /// The ancestor of an entry at a lower height.
    fn ancestor_of(&self, from: &ChainEntry, number: u64) -> Option<&Arc<ChainEntry>> {
        let mut at = self.entries.get(&from.hash())?;
        while at.number() > number {
            // A canonical block's ancestors are canonical.
            if self.is_canonical(at.number(), &at.hash()) {
                return self.entries.get(self.canonical.get(&number)?);
            }
            let skip = skip_height(at.number());
            let parents_skip = skip_height(at.number().saturating_sub(1));
            // The parent's skip link may lead further without passing the target. The step to the parent is worth it if that link leads
            // more than two blocks further.
            let better_by_parent = parents_skip >= number && parents_skip.saturating_add(2) < skip;
            let by_skip = skip == number || (skip > number && !better_by_parent);
            at = self.entries.get(&if by_skip { at.skip } else { at.parent() })?;
        }
        (at.number() == number).then_some(at)
    }

    /// The highest common ancestor of two kept headers.
    pub(super) fn common_ancestor<'a>(
        &'a self,
        a: &'a Arc<ChainEntry>,
        b: &'a Arc<ChainEntry>,
    ) -> Option<&'a Arc<ChainEntry>> {
        let level = a.number().min(b.number());
        let (mut a, mut b) = (self.ancestor_entry(a, level)?, self.ancestor_entry(b, level)?);
        while a.hash() != b.hash() {
            (a, b) = match (self.entries.get(&a.skip), self.entries.get(&b.skip)) {
                // Entries of one height may have skip links of different heights: a link leads to the parent if its usual target was
                // not kept when the entry was inserted.
                (Some(x), Some(y)) if x.number() == y.number() && x.hash() != y.hash() => (x, y),
                _ => (self.entries.get(&a.parent())?, self.entries.get(&b.parent())?),
            };
        }
        Some(a)
    }

    /// Entries above `ancestor` up to `tip`, oldest first.
    pub(super) fn path(&self, ancestor: &ChainEntry, tip: &Arc<ChainEntry>) -> Vec<Arc<ChainEntry>> {
        let mut path = Vec::new();
        let mut at = Some(tip);
        while let Some(entry) = at.filter(|entry| entry.number() > ancestor.number()) {
            path.push(entry.clone());
            at = self.entries.get(&entry.parent());
        }
        path.reverse();
        path
    }

    /// Work of `tip` above its ancestor `below`: of all headers, and of the uncles that are proven. If some uncles are not proven, the
    /// result is a lower bound. Such sums add up along a branch, so they order all branches, whichever two are compared: an upstream that
    /// withholds uncles of one branch takes no work from another.
    pub(super) fn work_between(&self, below: &ChainEntry, tip: &ChainEntry) -> U256 {
        tip.work.saturating_sub(below.work).saturating_add(self.uncle_work_between(below, tip))
    }

    /// Proven uncle work of `tip` above its ancestor `below`. Blocks without proven uncles divide the way down into stretches, each of
    /// which has one sum.
    fn uncle_work_between(&self, below: &ChainEntry, tip: &ChainEntry) -> U256 {
        let (mut work, mut at) = (U256::ZERO, tip);
        while at.number() > below.number() {
            if at.proven.above <= below.number() {
                // The stretch continues below: it contains `below`, or `below` is the block without proven uncles.
                return work.saturating_add(at.proven.work.saturating_sub(below.proven.work));
            }
            work = work.saturating_add(at.proven.work);
            // Continue from the parent of the block without proven uncles.
            let next = at.proven.above.saturating_sub(1);
            let Some(parent) = self.ancestor_of(at, next) else { break };
            at = parent;
        }
        work
    }
}
