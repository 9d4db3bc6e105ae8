//! Simulated blocks, and the ancestors that code in the next simulated block can read: the simulated blocks before it, and
//! the blocks of the chain below them.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};

use crate::{
    exec::{BlockHashes, SimulatedRun},
    types::{Header, Log, SealedHeader, Transaction},
};

/// A block of a simulation that has run.
pub(super) struct SimulatedBlock {
    pub(super) header: SealedHeader,
    pub(super) calls: Vec<SimulatedCall>,
}

/// A call as a transaction that has run.
pub(super) struct SimulatedCall {
    pub(super) transaction: Transaction,
    pub(super) sender: Address,
    pub(super) run: SimulatedRun,
    /// The logs that the answer shows: those of the receipt, and with `traceTransfers` one for each transfer of value.
    pub(super) logs: Vec<Log>,
}

/// The ancestors of the next simulated block.
pub(super) struct SimulatedHashes<'a> {
    /// The blocks of the chain.
    pub(super) below: &'a dyn BlockHashes,
    /// The simulated blocks before it, whose numbers follow each other without a gap.
    pub(super) blocks: &'a [SimulatedBlock],
}

impl SimulatedHashes<'_> {
    /// The header of the simulated block with this number.
    fn simulated(&self, number: u64) -> Option<&SealedHeader> {
        let first = self.blocks.first()?.header.number;
        let index = usize::try_from(number.checked_sub(first)?).ok()?;
        self.blocks.get(index).map(|block| &block.header)
    }
}

impl BlockHashes for SimulatedHashes<'_> {
    fn block_hash(&self, number: u64) -> Option<B256> {
        self.simulated(number).map(SealedHeader::hash).or_else(|| self.below.block_hash(number))
    }

    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.simulated(number).cloned().or_else(|| self.below.header(number))
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        self.simulated(number).map(|_| Vec::new()).or_else(|| self.below.uncles(number))
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        if self.simulated(number).is_none() {
            return self.below.total_difficulty(number);
        }
        let first = self.blocks.first()?.header.number;
        let blocks = self.blocks.iter().map(|block| &block.header).filter(|header| header.number <= number);
        let total = self.below.total_difficulty(first.checked_sub(1)?)?;
        Some(blocks.fold(total, |total, header| total.saturating_add(header.difficulty.value())))
    }
}
