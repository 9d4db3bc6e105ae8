//! Headers that one reader needs beside those that the chain keeps.

use alloc::sync::Arc;

use super::{ChainError, ChainView, HeaderChain, entry::Entry};
use crate::{
    consensus::{
        candidate::Candidate,
        fork_detection::ForkDetection,
        verified::{Origin, VerifiedHeader},
    },
    types::SealedHeader,
};

impl ChainView {
    /// Adds a branch to this state of the chain, oldest header first: each is checked by every header rule as the
    /// child of a kept one. The head stays where it is, whatever the branch weighs.
    ///
    /// # Errors
    /// As [`HeaderChain::insert`]; nothing was added then.
    pub fn add_branch(
        &mut self,
        headers: impl IntoIterator<Item = SealedHeader>,
        now: Option<u64>,
    ) -> Result<(), ChainError> {
        let (children, side) = Default::default();
        let view = self.clone();
        let (window, side_limit) = (u64::MAX, usize::MAX);
        let mut chain = HeaderChain { view, children, side, window, side_limit, stale_contexts: false };
        for header in headers {
            let number = header.number;
            let entry = chain.check(Candidate::from(header), number, now)?;
            chain.view.entries.insert(entry.hash(), Arc::new(entry));
        }
        *self = chain.view;
        Ok(())
    }

    /// Adds an ancestor of the kept headers to this state of the chain: the parent of the lowest one, or one that was
    /// kept before, whose hash is still known. Tells whether the header is that.
    pub fn add_ancestor(&mut self, header: &SealedHeader) -> bool {
        let (number, hash) = (header.number, header.hash());
        let is_parent = |lowest: &VerifiedHeader| {
            lowest.parent_hash == hash && number.checked_add(1) == Some(lowest.number)
        };
        if !self.is_canonical(number, &hash) && !self.by_number(self.lowest).is_some_and(is_parent) {
            return false;
        }
        let header = VerifiedHeader::new(header.clone(), Origin::HashLinked, ForkDetection::NotRequired);
        self.entries.insert(hash, Arc::new(Entry::unchecked(header)));
        self.canonical.insert(number, hash);
        true
    }
}
