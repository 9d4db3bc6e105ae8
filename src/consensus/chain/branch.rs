//! Adds headers to one reader's [`ChainView`] without adding them to the chain: a branch above a header of the view, or ancestors.

use alloc::sync::Arc;

use super::{ChainError, ChainView, HeaderChain, entry::ChainEntry};
use crate::{
    consensus::{
        candidate::HeaderCandidate,
        fork_detection::ForkDetection,
        verified::{Origin, VerifiedHeader},
    },
    types::SealedHeader,
};

impl ChainView {
    /// Adds a branch to this view, oldest header first. Each header is checked by every header rule as the child of a header of this
    /// view. The head does not change, however much work the branch has. `now` is the clock, as in [`HeaderChain::insert`].
    ///
    /// # Errors
    /// As [`HeaderChain::insert`]. After an error the view is unchanged.
    pub fn add_branch(
        &mut self,
        headers: impl IntoIterator<Item = SealedHeader>,
        now: Option<u64>,
    ) -> Result<(), ChainError> {
        // A temporary chain without limits: only its rule checks are used, never its fork choice.
        let (children, side) = Default::default();
        let view = self.clone();
        let (window, side_limit) = (u64::MAX, usize::MAX);
        let mut chain = HeaderChain { view, children, side, window, side_limit, stale_contexts: false };
        for header in headers {
            let number = header.number;
            let entry = chain.check(HeaderCandidate::from(header), number, now)?;
            chain.view.entries.insert(entry.hash(), Arc::new(entry));
        }
        *self = chain.view;
        Ok(())
    }

    /// Adds an ancestor of the kept headers to this view: the parent of the lowest one, or a header that was dropped but whose hash
    /// [`Self::hash_at`] still has. Returns whether the header is such an ancestor.
    pub fn add_ancestor(&mut self, header: &SealedHeader) -> bool {
        let (number, hash) = (header.number, header.hash());
        let is_parent = |lowest: &VerifiedHeader| {
            lowest.parent_hash == hash && number.checked_add(1) == Some(lowest.number)
        };
        if !self.is_canonical(number, &hash) && !self.by_number(self.lowest).is_some_and(is_parent) {
            return false;
        }
        let header = VerifiedHeader::new(header.clone(), Origin::HashLinked, ForkDetection::NotRequired);
        self.entries.insert(hash, Arc::new(ChainEntry::unchecked(header)));
        self.canonical.insert(number, hash);
        true
    }
}
