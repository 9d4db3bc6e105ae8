//! A chain read back from where it was kept.
//!
//! Headers are linked first; then the newest are proven again, and their hashes commit to all below them.

use alloc::vec::Vec;

use super::entry::Entry;
use super::{ChainError, HeaderChain};
use crate::consensus::rules::Check;
use crate::consensus::verified::{Candidate, Origin, VerifiedHeader};
use crate::types::{SealedHeader, B256};

impl HeaderChain {
    /// Takes in the child of the head by every header rule but work and clock. Nothing of it is to be believed before
    /// [`Self::prove_recent`] has proven what is above it.
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
        Ok(self.take(entry).header)
    }

    /// Checks the proof of work of the newest `count` headers above the base.
    ///
    /// # Errors
    /// The first proof that does not hold.
    pub fn prove_recent(&mut self, count: usize) -> Result<(), ChainError> {
        let base = self.view.base.number;
        let recent = self.view.recent(count).filter(|header| header.number > base);
        let hashes: Vec<B256> = recent.map(|header| header.hash()).collect();
        for hash in hashes {
            let entry = self.entry(&hash)?.clone();
            let number = entry.number();
            let candidate = Candidate::from(entry.header.sealed().clone());
            let proven = Check::new(&candidate, &self.view.network, None).mined();
            let seal = proven.map_err(|rule| ChainError::Rule { number, hash, rule })?;
            self.replace(Entry { header: entry.header.with_seal(seal), ..Entry::clone(&entry) });
        }
        Ok(())
    }
}
