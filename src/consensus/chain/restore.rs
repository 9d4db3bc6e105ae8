//! Restores a chain from headers that an earlier run has stored (restored headers).
//!
//! The headers are linked first, oldest first, by the rules that need no proof of work. The difficulty that they state counts as no work
//! until their proofs of work are checked, from the newest header down.

use alloc::sync::Arc;

use super::entry::{ChainEntry, ProvenUncleWork};
use super::unproven_tip::UnprovenTip;
use super::{ChainError, ChainView, HeaderChain};
use crate::consensus::candidate::HeaderCandidate;
use crate::consensus::network::Network;
use crate::consensus::pow::Seal;
use crate::consensus::rules::RuleInput;
use crate::consensus::verified::{Origin, VerifiedHeader};
use crate::types::{B256, Header, SealedHeader, U256};

impl ChainView {
    /// Number of the highest restored header that is not proven yet; `None` if all are proven.
    pub fn unproven(&self) -> Option<u64> {
        self.unproven.map(|unproven| unproven.number)
    }

    /// The work that the headers above the base up to a block state, and the unproven part of the heaviest chain's work. `None` if the
    /// chain does not keep the block's header.
    pub fn stated_work(&self, hash: &B256) -> Option<(U256, U256)> {
        let unproven = self.unproven.map_or(U256::ZERO, |unproven| unproven.work);
        self.entries.get(hash).map(|entry| (entry.work, unproven))
    }

    /// Work of the headers above the base, and of their uncles if all uncles are proven. `None` until all headers are
    /// proven.
    pub fn whole_work(&self) -> Option<(U256, Option<U256>)> {
        let ProvenUncleWork { above, work } = self.head.proven;
        let uncles = (above <= self.base.number).then_some(work);
        self.unproven.is_none().then_some((self.head.work, uncles))
    }
}

impl HeaderChain {
    /// Starts at a header in the middle of a stored chain. The header is accepted because the headers above commit to it, and those
    /// headers because their proofs of work are checked. [`Self::record_proven_base`] records that the headers from the checkpoint
    /// up to this one are proven too.
    #[must_use]
    pub fn from_restored(network: Arc<Network>, header: SealedHeader) -> Self {
        let mut chain = Self::start(network, header, Origin::HashLinked, None);
        chain.view.base.work = None;
        chain
    }

    /// Records that the chain from the checkpoint up to the base was checked by every rule, with its work, and its
    /// total difficulty if that can be computed.
    pub fn record_proven_base(&mut self, work: U256, total_difficulty: Option<U256>) {
        (self.view.base.work, self.view.base.total_difficulty) = (Some(work), total_difficulty);
    }

    /// Records the hashes of canonical blocks below the base: those of `stretch`, a chain that ends at or below the base.
    pub fn record_hashes_below(&mut self, stretch: &ChainView) {
        for number in stretch.base.number..=stretch.head.number() {
            if let Some(hash) = stretch.hash_at(number) {
                self.view.canonical.insert(number, hash);
            }
        }
    }

    /// Inserts a child of the head by every header rule except proof of work and clock. Its work counts once
    /// [`Self::prove`] has checked its proof.
    ///
    /// # Errors
    /// The rule that it breaks. A header that is not the head's child has an unknown parent.
    pub fn insert_linked(&mut self, candidate: HeaderCandidate) -> Result<VerifiedHeader, ChainError> {
        let (number, parent) = (candidate.header().number, candidate.header().parent_hash);
        if parent != self.head().hash() {
            return Err(ChainError::UnknownParent { number, parent });
        }
        if self.stale_contexts {
            self.refresh_contexts();
        }
        let entry = self.check_by(candidate, number, None, |input| {
            input.linked().map(|fork_detection| (Origin::HashLinked, fork_detection))
        })?;
        self.view.unproven = Some(UnprovenTip::at(&entry));
        Ok(self.insert_checked(entry).header)
    }

    /// Checks the proofs of work of up to `count` restored headers, newest first, and their uncles by every rule. Returns whether
    /// unproven headers are left.
    ///
    /// # Errors
    /// The first rule that is broken: the stored chain is forged.
    pub fn prove(&mut self, count: usize) -> Result<bool, ChainError> {
        for _ in 0..count {
            let Some(unproven) = self.view.unproven else { return Ok(false) };
            let entry = self.entry(&unproven.hash)?.clone();
            let header = entry.header.with_seal(self.seal(entry.header.sealed())?);
            let proven = ChainEntry { header, ..ChainEntry::clone(&entry) };
            if let Some(uncles) = &entry.uncles {
                let (number, checked) = (unproven.number, self.view.check_uncles(&proven, uncles, None));
                checked.map_err(|error| ChainError::Uncles { number, error })?;
            }
            self.record_proven(unproven, entry.header.header());
            self.replace(proven);
        }
        Ok(self.view.unproven.is_some())
    }

    /// Records that the highest unproven header is proven. Its parent comes next, unless that is the base.
    fn record_proven(&mut self, unproven: UnprovenTip, header: &Header) {
        let parent = UnprovenTip {
            number: unproven.number.saturating_sub(1),
            hash: header.parent_hash,
            work: unproven.work.saturating_sub(header.difficulty.value()),
        };
        self.view.unproven = Some(parent).filter(|parent| parent.number > self.view.base.number);
    }

    /// Checks the proof of work of a header, and returns its kind.
    fn seal(&self, header: &SealedHeader) -> Result<Seal, ChainError> {
        let (number, hash) = (header.number, header.hash());
        let candidate = HeaderCandidate::from(header.clone());
        let mined = RuleInput::new(&candidate, &self.view.network, None).mined();
        mined.map_err(|rule| ChainError::Rule { number, hash, rule })
    }

    /// Called when the head leaves a restored branch at the block `ancestor`. If the branch is unproven above this block, the whole
    /// branch above it is dropped; proofs continue with `ancestor`.
    pub(super) fn abandon_unproven(&mut self, ancestor: &ChainEntry, removed: &[Arc<ChainEntry>]) {
        if self.view.unproven.is_none_or(|unproven| unproven.number <= ancestor.number()) {
            return;
        }
        let remaining = UnprovenTip::at(ancestor);
        self.view.unproven = Some(remaining).filter(|left| left.number > self.view.base.number);
        if let Some(first) = removed.first() {
            self.unlink(&first.hash());
            self.drop_branch(first.hash());
        }
    }
}
