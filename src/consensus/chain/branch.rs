//! Adds headers to one reader's view that the chain itself does not keep.

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
    /// Adds a branch to this view, oldest header first. Each header is checked by every header rule as the child of a
    /// kept one. The head does not change, whatever the branch weighs.
    ///
    /// # Errors
    /// As [`HeaderChain::insert`]. After an error the view is unchanged.
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
            let entry = chain.check(HeaderCandidate::from(header), number, now)?;
            chain.view.entries.insert(entry.hash(), Arc::new(entry));
        }
        *self = chain.view;
        Ok(())
    }

    /// Adds an ancestor of the kept headers to this view: the parent of the lowest one, or a header that was kept
    /// before and whose hash is still known. Returns whether the header is such an ancestor.
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
