//! The ancestors of a block on its own branch.

use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use crate::consensus::{ChainView, VerifiedHeader};
use crate::exec::Ancestry;
use crate::types::{Header, SealedHeader};

/// A branch, identified by its tip: the parent of the block being executed.
#[derive(Debug, Clone, Copy)]
pub struct BranchAncestry<'a> {
    chain: &'a ChainView,
    tip: B256,
}

impl<'a> BranchAncestry<'a> {
    /// The branch that ends at `tip`.
    #[must_use]
    pub const fn new(chain: &'a ChainView, tip: B256) -> Self {
        Self { chain, tip }
    }

    fn ancestor(&self, number: u64) -> Option<&'a VerifiedHeader> {
        self.chain.ancestor(&self.tip, number)
    }
}

impl Ancestry for BranchAncestry<'_> {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.ancestor(number).map(|header| header.sealed().clone())
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        let uncles = self.chain.uncles(&self.ancestor(number)?.hash())?;
        Some(uncles.headers().iter().map(|uncle| uncle.header().clone()).collect())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.chain.total_difficulty(&self.ancestor(number)?.hash())
    }

    fn hash(&self, number: u64) -> Option<B256> {
        self.ancestor(number).map(|header| header.hash())
    }
}
