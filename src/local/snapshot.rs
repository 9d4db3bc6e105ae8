//! Immutable snapshots of a locally executed chain. [`LocalChain`](super::LocalChain) makes one after each change; handlers
//! read it without waiting for imports.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::ancestry::BranchAncestry;
use super::events::Events;
use super::fork::ForkBase;
use super::index::BlockIndex;
use super::stored_block::StoredBlock;
use crate::consensus::network::{MAX_UNCLES, UNCLE_GENERATIONS};
use crate::consensus::persistent_map::PersistentMap;
use crate::consensus::{ChainView, Network, VerifiedHeader, VerifiedUncles};
use crate::exec::{
    BlockContext, BlockError, BlockInput, BlockObserver, ExecutedBlock, OnUnsimulated, execute_in,
};
use crate::trie::Trie;
use crate::types::{SealedHeader, Transaction};

/// A snapshot of the chain. Cloning is cheap, and a clone never changes.
#[derive(Debug, Clone)]
pub struct ChainSnapshot {
    pub(super) headers: ChainView,
    pub(super) blocks: PersistentMap<B256, Arc<StoredBlock>>,
    /// The state after each block whose state is kept.
    pub(super) states: PersistentMap<B256, Trie>,
    /// Block hash and index of every transaction of the canonical chain, by transaction hash.
    pub(super) transactions: PersistentMap<B256, (B256, usize)>,
    /// Hashes of all blocks of each height, canonical or not, in the order in which they were added.
    pub(super) hashes_by_height: PersistentMap<u64, Arc<Vec<B256>>>,
    /// The index of the canonical blocks, if the host provides one.
    pub(super) index: Option<Arc<dyn BlockIndex>>,
    /// The analysed code that calls share, if the host keeps any.
    pub(super) codes: Option<Arc<dyn crate::exec::SharedCodes>>,
    /// The last events of the canonical chain and of the pool.
    pub(super) events: Events,
    /// The chain of another network on which this one begins, if it does.
    pub(super) fork: Option<Arc<dyn ForkBase>>,
}

impl ChainSnapshot {
    /// The header chain.
    pub const fn headers(&self) -> &ChainView {
        &self.headers
    }

    /// The network.
    pub fn network(&self) -> &Network {
        self.headers.network()
    }

    /// The head of the canonical chain.
    pub fn head(&self) -> &VerifiedHeader {
        self.headers.head()
    }

    /// The chain of another network on which this one begins; `None` if it begins with a genesis block.
    pub fn fork(&self) -> Option<&dyn ForkBase> {
        self.fork.as_deref()
    }

    /// Body, receipts and senders of a block, canonical or not.
    pub fn block(&self, hash: &B256) -> Option<&Arc<StoredBlock>> {
        self.blocks.get(hash)
    }

    /// Hashes of all blocks of a height, canonical or not, in the order in which they were added.
    pub fn at_height(&self, number: u64) -> &[B256] {
        self.hashes_by_height.get(&number).map_or(&[], |hashes| hashes.as_slice())
    }

    /// Block hash and index of a transaction of the canonical chain.
    pub fn locate(&self, transaction: &B256) -> Option<(B256, usize)> {
        self.transactions.get(transaction).copied()
    }

    /// The state after a block, if it is kept.
    pub fn state(&self, block: &B256) -> Option<&Trie> {
        self.states.get(block)
    }

    /// The state after the head.
    pub fn head_state(&self) -> Trie {
        // The chain always keeps this state, so that the default, an empty state, does not occur.
        self.states.get(&self.head().hash()).cloned().unwrap_or_default()
    }

    /// The index of the canonical blocks, if the host provides one.
    pub const fn index(&self) -> Option<&Arc<dyn BlockIndex>> {
        self.index.as_ref()
    }

    /// The analysed code that calls share, if the host keeps any.
    pub const fn codes(&self) -> Option<&Arc<dyn crate::exec::SharedCodes>> {
        self.codes.as_ref()
    }

    /// The last events of the canonical chain and of the pool.
    pub const fn events(&self) -> &Events {
        &self.events
    }

    /// The uncles of a block.
    pub fn uncles(&self, hash: &B256) -> Option<&Arc<VerifiedUncles>> {
        self.headers.uncles(hash)
    }

    /// The ancestors of a child of `parent`.
    pub fn ancestry(&self, parent: B256) -> BranchAncestry<'_> {
        BranchAncestry::new(&self.headers, parent).above(self.fork())
    }

    /// Executes a block of the chain again on its parent's state and reports to `observer`. Execution stops when `interrupt`
    /// returns true. Returns `None` if the block or its parent's state is not kept.
    ///
    /// # Errors
    /// The execution was interrupted, a direct change of the parent's state ([`LocalChain::set_head_state`]) made a transaction
    /// invalid, or the block calls a method of a native contract that this version does not implement and `unsimulated`
    /// refuses it.
    ///
    /// [`LocalChain::set_head_state`]: super::LocalChain::set_head_state
    pub fn replay(
        &self,
        header: &SealedHeader,
        observer: &mut dyn BlockObserver,
        unsimulated: OnUnsimulated,
        interrupt: &dyn Fn() -> bool,
    ) -> Option<Result<ExecutedBlock, BlockError>> {
        let block = self.block(&header.hash())?;
        self.replay_as(header, (block.body.transactions(), &block.senders), observer, unsimulated, interrupt)
    }

    /// As [`Self::replay`], with the transactions and their senders given by the caller, for the pending block, which the
    /// chain does not store.
    pub fn replay_as(
        &self,
        header: &SealedHeader,
        (transactions, senders): (&[Transaction], &[Address]),
        observer: &mut dyn BlockObserver,
        unsimulated: OnUnsimulated,
        interrupt: &dyn Fn() -> bool,
    ) -> Option<Result<ExecutedBlock, BlockError>> {
        let state = self.state(&header.parent_hash)?;
        let ancestry = self.ancestry(header.parent_hash);
        let mut context = BlockContext::new(self.network(), header.header().into(), &ancestry);
        (context.interrupt, context.unsimulated) = (interrupt, unsimulated);
        let input = BlockInput { header: header.header(), transactions, senders: Some(senders) };
        Some(execute_in(&context, state, &input, observer))
    }

    /// The state before the transaction of a block at an index. `None` if the parent's state is not kept. Only
    /// `debug_storageRangeAt` needs it, which browser modules leave out.
    #[cfg(feature = "catalogue")]
    pub(crate) fn state_before(
        &self,
        header: &SealedHeader,
        (transactions, senders): (&[Transaction], &[Address]),
        index: usize,
        unsimulated: OnUnsimulated,
        interrupt: &dyn Fn() -> bool,
    ) -> Option<Result<Trie, BlockError>> {
        let state = self.state(&header.parent_hash)?;
        let ancestry = self.ancestry(header.parent_hash);
        let mut context = BlockContext::new(self.network(), header.header().into(), &ancestry);
        (context.interrupt, context.unsimulated) = (interrupt, unsimulated);
        let input = BlockInput { header: header.header(), transactions, senders: Some(senders) };
        Some(crate::exec::state_before(&context, state, &input, index))
    }

    /// The uncles that a child of the head may include: siblings of its last ancestors that no block includes yet,
    /// oldest first.
    pub fn uncle_candidates(&self) -> Vec<SealedHeader> {
        let next = self.head().number.saturating_add(1);
        let lowest = next.saturating_sub(UNCLE_GENERATIONS);
        let ancestors: Vec<B256> = (lowest..next).filter_map(|number| self.headers.hash_at(number)).collect();
        let included = |hash: &B256| {
            let mut uncles = ancestors.iter().filter_map(|block| self.uncles(block));
            uncles.any(|uncles| uncles.headers().iter().any(|uncle| uncle.hash() == *hash))
        };
        // An uncle's parent must be among these ancestors too, so no uncle has the lowest height.
        let siblings = (lowest.saturating_add(1)..next).flat_map(|number| self.at_height(number));
        siblings
            .filter(|hash| !ancestors.contains(hash) && !included(hash))
            .filter_map(|hash| self.headers.by_hash(hash))
            .filter(|header| ancestors.contains(&header.parent_hash))
            .map(|header| header.sealed().clone())
            .take(MAX_UNCLES)
            .collect()
    }
}
