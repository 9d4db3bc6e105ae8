//! Headers off the canonical chain, ordered by work, so that the lightest branch can be dropped.

use alloc::collections::VecDeque;

use alloy_primitives::{B256, U256};

/// Work and hash of headers, in order. A reorganisation adds a branch from its tip down and removes one from its root
/// up, so changes are near either end and a sorted queue moves few elements.
#[derive(Debug, Clone, Default)]
pub(super) struct SideHeaders(VecDeque<(U256, B256)>);

impl SideHeaders {
    pub(super) fn insert(&mut self, work: U256, hash: B256) {
        if let Err(index) = self.0.binary_search(&(work, hash)) {
            self.0.insert(index, (work, hash));
        }
    }

    pub(super) fn remove(&mut self, work: U256, hash: B256) {
        if let Ok(index) = self.0.binary_search(&(work, hash)) {
            self.0.remove(index);
        }
    }

    /// The header with the least work.
    pub(super) fn lightest(&self) -> Option<B256> {
        self.0.front().map(|(_, hash)| *hash)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The hashes, the lightest header first.
    pub(super) fn hashes(&self) -> impl Iterator<Item = B256> + '_ {
        self.0.iter().map(|(_, hash)| *hash)
    }
}
