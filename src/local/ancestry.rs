//! The ancestors of a block on its own branch of a locally executed chain. Execution reads them for BLOCKHASH, the
//! BlockHeader contract and the rewards that REMASC pays.

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
    /// The block of another network on which the chain begins, with the blocks below that block; `None` if the chain
    /// begins with a genesis block.
    fork: Option<&'a dyn ForkBase>,
}

impl<'a> BranchAncestry<'a> {
    /// The branch that ends at `tip`.
    #[must_use]
    pub const fn new(chain: &'a ChainView, tip: B256) -> Self {
        Self { chain, tip, fork: None }
    }

    /// The same branch of a chain that begins on a block of another network: `fork` supplies the ancestors below that
    /// block.
    #[must_use]
    pub const fn above(self, fork: Option<&'a dyn ForkBase>) -> Self {
        Self { fork, ..self }
    }

    /// The header of an ancestor below the block on which the chain begins; `None` if the fork base does not have it.
    fn ancestor_in_fork(&self, number: u64) -> Option<VerifiedHeader> {
        self.fork.filter(|fork| number < fork.block().number)?.header(number)
    }

    /// The header of an ancestor among the blocks of the chain itself.
    fn ancestor(&self, number: u64) -> Option<&'a VerifiedHeader> {
        self.chain.ancestor(&self.tip, number)
    }
}

impl Ancestry for BranchAncestry<'_> {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        let in_chain = self.ancestor(number).map(|header| header.sealed().clone());
        in_chain.or_else(|| Some(self.ancestor_in_fork(number)?.sealed().clone()))
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        let uncles = match self.ancestor(number) {
            Some(header) => self.chain.uncles(&header.hash()).cloned()?,
            None => self.fork?.uncles(self.ancestor_in_fork(number)?.sealed())?,
        };
        Some(uncles.headers().iter().map(|uncle| uncle.header().clone()).collect())
    }

    /// `None` for every ancestor on a chain that begins on a block of another network: the total difficulty up to that block is not
    /// known.
    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.chain.total_difficulty(&self.ancestor(number)?.hash())
    }

    fn hash(&self, number: u64) -> Option<B256> {
        let in_chain = self.ancestor(number).map(|header| header.hash());
        in_chain.or_else(|| Some(self.ancestor_in_fork(number)?.hash()))
    }

    fn first_rewarded_block(&self) -> u64 {
        self.fork.map_or(1, ForkBase::first_rewarded_block)
    }
}
