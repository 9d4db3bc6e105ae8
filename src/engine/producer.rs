//! The interface between the view of an executed chain and a node that also makes blocks: its pool, miner and pending block.

use alloc::sync::Arc;
use core::fmt::Debug;

use alloy_primitives::Address;

use super::{Miner, TransactionPool};
use crate::{
    consensus::{
        Network, PendingHeader, VerifiedBody, VerifiedReceipts, VerifiedUncles, bitcoin::ServedBitcoin,
    },
    exec::{BlockEnvironment, ExecutedBlock},
    local::ChainSnapshot,
    types::SealedHeader,
};

/// The block that would be mined next, executed.
#[derive(Debug)]
pub struct PendingBlock {
    /// The header, without proof of work.
    pub header: PendingHeader,
    /// The transactions of the block.
    pub body: Arc<VerifiedBody>,
    /// The receipts of the transactions.
    pub receipts: Arc<VerifiedReceipts>,
    /// The uncles that the block lists.
    pub uncles: Arc<VerifiedUncles>,
    /// The result of executing the block, without the receipts, which the field `receipts` has.
    pub executed: ExecutedBlock,
}

/// A node that makes blocks, as one snapshot has it.
pub trait BlockProducer: Debug + Send + Sync {
    /// Builds the block that would be mined on the head of the chain at a time in seconds since 1970; `None` if it
    /// cannot be built. Execution ends when `interrupt` returns `true`: the block then lacks the transactions that have not run.
    fn pending(&self, chain: &ChainSnapshot, now: u64, interrupt: &dyn Fn() -> bool) -> Option<PendingBlock>;

    /// The environment that transactions of the next block would see at a time in seconds since 1970. Builds no block.
    fn environment(&self, network: &Network, parent: &SealedHeader, now: u64) -> BlockEnvironment;

    /// The transactions that wait for a block.
    fn pool(&self) -> &dyn TransactionPool;

    /// Accounts whose keys the node holds.
    fn accounts(&self) -> &[Address];

    /// The miner, which mines on the head of this chain.
    fn miner(&self, chain: &ChainSnapshot) -> Miner;

    /// The Bitcoin chain on which blocks are mined; `None` without one.
    fn bitcoin(&self) -> Option<&dyn ServedBitcoin> {
        None
    }
}
