//! Headers off the canonical chain, the lightest first.

use alloc::collections::VecDeque;

use alloy_primitives::{B256, U256};

/// Work and hash of headers, in order. They come and go at either end: a branch is left from its tip down and taken from
/// its root up, so a sorted queue moves little.
#[derive(Debug, Clone, Default)]
pub(super) struct SideHeaders(VecDeque<(U256, B256)>);

impl SideHeaders {
    pub(super) fn insert(&mut self, work: U256, hash: B256) {
        if let Err(place) = self.0.binary_search(&(work, hash)) {
            self.0.insert(place, (work, hash));
        }
    }

    pub(super) fn remove(&mut self, work: U256, hash: B256) {
        if let Ok(place) = self.0.binary_search(&(work, hash)) {
            self.0.remove(place);
        }
    }

    pub(super) fn lightest(&self) -> Option<B256> {
        self.0.front().map(|(_, hash)| *hash)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Hashes, the lightest header first.
    pub(super) fn hashes(&self) -> impl Iterator<Item = B256> + '_ {
        self.0.iter().map(|(_, hash)| *hash)
    }
}
