//! A chain read back from where it was kept.
//!
//! Headers are linked first. What they state of their difficulty counts for nothing until their proofs of work are
//! checked, from the newest one down.

use alloc::sync::Arc;

use super::entry::Entry;
use super::{ChainError, ChainView, HeaderChain};
use crate::consensus::network::UNCLE_GENERATIONS;
use crate::consensus::pow::Seal;
use crate::consensus::rules::Check;
use crate::consensus::verified::{Candidate, Origin, VerifiedHeader};
use crate::types::{uncles_hash, Header, SealedHeader, B256, U256};

/// The highest header that was read back and whose proof of work was not checked in this run. It is canonical, and
/// nothing from the base up to it counts as work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unproven {
    pub(super) number: u64,
    pub(super) hash: B256,
    /// Sum of the difficulties that the headers above the base up to this one state.
    pub(super) work: U256,
}

impl Unproven {
    pub(super) fn at(entry: &Entry) -> Self {
        Self { number: entry.number(), hash: entry.hash(), work: entry.work }
    }
}

impl ChainView {
    /// Number of the highest header that was read back and is not proven yet; none when all are.
    #[must_use]
    pub fn unproven(&self) -> Option<u64> {
        self.unproven.map(|unproven| unproven.number)
    }
}

impl HeaderChain {
    /// Takes in the child of the head by every header rule but work and clock. Its work counts when [`Self::prove`] has
    /// checked its proof.
    ///
    /// # Errors
    /// The rule it breaks; anything but the head's child is an unknown parent.
    pub fn insert_linked(&mut self, header: SealedHeader) -> Result<VerifiedHeader, ChainError> {
        let (number, parent) = (header.number, header.parent_hash);
        if parent != self.head().hash() {
            return Err(ChainError::UnknownParent { number, parent });
        }
        if self.stale_contexts {
            self.refresh_contexts();
        }
        let entry = self.check_by(Candidate::from(header), number, None, |check| {
            check.linked().map(|fork_detection| (Origin::HashLinked, fork_detection))
        })?;
        self.view.unproven = Some(Unproven::at(&entry));
        Ok(self.take(entry).header)
    }

    /// Checks the proofs of work of up to `count` headers that were read back, newest first, and their uncles by every
    /// rule. Tells whether there are more in memory.
    ///
    /// # Errors
    /// The first rule that does not hold: the chain was made up by whoever wrote it.
    pub fn prove(&mut self, count: usize) -> Result<bool, ChainError> {
        let (base, lowest) = (self.view.base.number, self.view.lowest);
        // Uncles of the lowest blocks in memory cannot be checked against their ancestors any more.
        let reach = if lowest > base { lowest.saturating_add(UNCLE_GENERATIONS) } else { 0 };
        for _ in 0..count {
            let Some(unproven) = self.view.unproven.filter(|unproven| unproven.number >= reach) else {
                return Ok(false);
            };
            let entry = self.entry(&unproven.hash)?.clone();
            let header = entry.header.with_seal(self.seal(entry.header.sealed())?);
            let proven = Entry { header, ..Entry::clone(&entry) };
            if let Some(uncles) = &entry.uncles {
                let list = uncles.headers().iter().map(|uncle| uncle.header().clone()).collect();
                let number = unproven.number;
                self.view
                    .check_uncles(&proven, list, None)
                    .map_err(|error| ChainError::Uncles { number, error })?;
            }
            self.proven(unproven, entry.header.header());
            self.replace(proven);
        }
        Ok(true)
    }

    /// Checks the proof of work of the highest unproven header, which is not in memory any more, and of its uncles.
    ///
    /// # Errors
    /// [`ChainError::UnknownBlock`] if it is another one; else as [`Self::prove`].
    pub fn prove_kept(&mut self, header: SealedHeader, uncles: &[Header]) -> Result<(), ChainError> {
        let Some(unproven) = self.view.unproven else { return Ok(()) };
        let listed = uncles.is_empty() || uncles_hash(uncles) == header.uncles_hash;
        if header.hash() != unproven.hash || !listed {
            return Err(ChainError::UnknownBlock(unproven.hash));
        }
        self.seal(&header)?;
        uncles.iter().try_for_each(|uncle| self.seal(&uncle.clone().seal()).map(drop))?;
        self.proven(unproven, &header);
        Ok(())
    }

    /// The highest unproven header is proven now; its parent comes next, unless that is the base.
    fn proven(&mut self, unproven: Unproven, header: &Header) {
        let parent = Unproven {
            number: unproven.number.saturating_sub(1),
            hash: header.parent_hash,
            work: unproven.work.saturating_sub(header.difficulty.value()),
        };
        self.view.unproven = Some(parent).filter(|parent| parent.number > self.view.base.number);
    }

    fn seal(&self, header: &SealedHeader) -> Result<Seal, ChainError> {
        let (number, hash) = (header.number, header.hash());
        let candidate = Candidate::from(header.clone());
        let mined = Check::new(&candidate, &self.view.network, None).mined();
        mined.map_err(|rule| ChainError::Rule { number, hash, rule })
    }

    /// The head has left the branch that was read back below what is proven of it: the rest of that is forgotten.
    pub(super) fn abandon_unproven(&mut self, ancestor: &Entry, removed: &[Arc<Entry>]) {
        if self.view.unproven.is_none_or(|unproven| unproven.number <= ancestor.number()) {
            return;
        }
        let remaining = Unproven::at(ancestor);
        self.view.unproven = Some(remaining).filter(|left| left.number > self.view.base.number);
        if let Some(first) = removed.first() {
            self.unlink(&first.hash());
            self.drop_branch(first.hash());
        }
    }
}
