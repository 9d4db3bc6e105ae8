//! The ancestors of a block on its own branch.

use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use super::fork::ForkBase;
use crate::consensus::{ChainView, VerifiedHeader};
use crate::exec::Ancestry;
use crate::types::{Header, SealedHeader};

/// A branch, identified by its tip: the parent of the block being executed.
#[derive(Debug, Clone, Copy)]
pub struct BranchAncestry<'a> {
    chain: &'a ChainView,
    tip: B256,
    /// The blocks below those of the chain.
    fork: Option<&'a dyn ForkBase>,
}

impl<'a> BranchAncestry<'a> {
    /// The branch that ends at `tip`.
    #[must_use]
    pub const fn new(chain: &'a ChainView, tip: B256) -> Self {
        Self { chain, tip, fork: None }
    }

    /// The same branch, with the blocks on which its chain begins.
    #[must_use]
    pub const fn above(self, fork: Option<&'a dyn ForkBase>) -> Self {
        Self { fork, ..self }
    }

    /// The header of a block below those of the chain, if it is known.
    fn below(&self, number: u64) -> Option<VerifiedHeader> {
        self.fork.filter(|fork| number < fork.block().number)?.header(number)
    }

    fn ancestor(&self, number: u64) -> Option<&'a VerifiedHeader> {
        self.chain.ancestor(&self.tip, number)
    }
}

impl Ancestry for BranchAncestry<'_> {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        let held = self.ancestor(number).map(|header| header.sealed().clone());
        held.or_else(|| Some(self.below(number)?.sealed().clone()))
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        let uncles = match self.ancestor(number) {
            Some(header) => self.chain.uncles(&header.hash()).cloned()?,
            None => self.fork?.uncles(self.below(number)?.sealed())?,
        };
        Some(uncles.headers().iter().map(|uncle| uncle.header().clone()).collect())
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.chain.total_difficulty(&self.ancestor(number)?.hash())
    }

    fn hash(&self, number: u64) -> Option<B256> {
        let held = self.ancestor(number).map(|header| header.hash());
        held.or_else(|| Some(self.below(number)?.hash()))
    }

    fn first_rewarded(&self) -> u64 {
        self.fork.map_or(1, ForkBase::first_rewarded)
    }
}
