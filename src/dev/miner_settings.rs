//! The settings of the miner, and the next block that is built from them: header fields, transactions from the pool, execution. The
//! proof of work is added in `mine.rs`.

use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256};

use super::block_limits::BlockLimits;
use super::clock::Clock;
use super::error::DevError;
use super::pool::{Pool, Pooled};
use crate::consensus::Network;
use crate::consensus::difficulty;
use crate::exec::{
    BlockContext, BlockEnvironment, BuiltBlock, ExecutedBlock, OnUnsimulated, TransactionCandidate, TxError,
    build_in,
};
use crate::local::ChainSnapshot;
use crate::types::{Header, RawUint, SealedHeader, Transaction, uncles_hash};

/// The properties of blocks that the miner chooses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MinerSettings {
    /// The account that receives the fees.
    pub coinbase: Address,
    /// The header's extra data, at most 32 bytes.
    pub extra_data: Bytes,
    /// The gas limit that blocks approach, each by at most 1/1,024 of its parent's ([`BlockLimits`]).
    pub gas_limit: u64,
    /// The minimum gas price in wei that transactions must offer, and that blocks approach, each by at most 1/100 of its
    /// parent's ([`BlockLimits`]).
    pub minimum_gas_price: U256,
    /// Whether blocks list the uncles that the chain has.
    pub uncles: bool,
}

/// A block that is built and executed but has no proof of work yet.
#[derive(Debug, Clone)]
pub struct Assembled {
    /// The header without its proof of work.
    pub header: Header,
    /// The uncles that the block lists.
    pub uncles: Vec<Header>,
    /// The transactions of the block, REMASC's last.
    pub transactions: Vec<Transaction>,
    /// The result of executing the block.
    pub executed: ExecutedBlock,
    /// Transactions of the pool that are not in the block, with the reason of each.
    pub dropped: Vec<(B256, TxError)>,
}

impl MinerSettings {
    /// Builds the child of the head from the transactions in the pool. `now` is the host's time in seconds since
    /// 1970; execution ends when `interrupt` returns true.
    ///
    /// # Errors
    /// [`DevError::Build`] if the block cannot be executed.
    pub fn assemble(
        &self,
        chain: &ChainSnapshot,
        pool: &Pool,
        clock: &Clock,
        now: u64,
        interrupt: &dyn Fn() -> bool,
    ) -> Result<Assembled, DevError> {
        let (network, parent) = (chain.network(), chain.head());
        let uncles: Vec<Header> = if self.uncles {
            chain.uncle_candidates().into_iter().map(SealedHeader::into_header).collect()
        } else {
            Vec::new()
        };
        let mut header =
            self.header(network, parent.sealed(), &uncles, clock.block_time(parent.timestamp, now));
        let ancestry = chain.ancestry(parent.hash());
        let mut context = BlockContext::new(network, BlockEnvironment::from(&header), &ancestry);
        context.interrupt = interrupt;
        context.unsimulated = OnUnsimulated::Fail;
        let candidates: Vec<TransactionCandidate> = pool.ordered().iter().map(candidate).collect();
        let built = build_in(&context, &chain.head_state(), &candidates)?;
        built.complete(&mut header, network);
        let BuiltBlock { transactions, executed, dropped, .. } = built;
        Ok(Assembled { header, uncles, transactions, executed, dropped })
    }

    /// The block environment that transactions of the next block would see. Builds no block.
    pub fn environment(
        &self,
        network: &Network,
        parent: &SealedHeader,
        clock: &Clock,
        now: u64,
    ) -> BlockEnvironment {
        let time = clock.block_time(parent.timestamp, now);
        let mut next = BlockEnvironment::from(&self.header(network, parent, &[], time));
        // A transaction that needs more gas than the next block has waits for a later one.
        next.gas_limit = next.gas_limit.max(self.target().gas_limit);
        next
    }

    /// The header of a child of `parent` with the timestamp `time`, without roots, fees and proof of work.
    fn header(&self, network: &Network, parent: &SealedHeader, uncles: &[Header], time: u64) -> Header {
        let number = parent.number.saturating_add(1);
        let limits = BlockLimits::of(parent).towards(&self.target(), network.rules(number));
        let mut header = Header {
            parent_hash: parent.hash(),
            uncles_hash: uncles_hash(uncles),
            coinbase: Some(self.coinbase),
            // Replaced below: the difficulty depends on other fields of the header.
            difficulty: 1u64.into(),
            gas_limit: RawUint::signed_minimal(limits.gas_limit),
            timestamp: time,
            extra_data: self.extra_data.clone(),
            minimum_gas_price: limits.minimum_gas_price.into(),
            uncle_count: u32::try_from(uncles.len()).unwrap_or(u32::MAX),
            ..Header::empty(network.header_shape(number), number)
        };
        header.difficulty = difficulty::expected(&header, parent, network).into();
        header
    }

    /// The limits that blocks approach.
    pub fn target(&self) -> BlockLimits {
        BlockLimits { minimum_gas_price: self.minimum_gas_price, gas_limit: U256::from(self.gas_limit) }
    }

    /// The gas price in wei that a transaction must offer after this head.
    pub fn price(&self, network: &Network, head: &Header) -> U256 {
        BlockLimits::of(head).price(&self.target(), network.rules(head.number))
    }
}

/// The candidate for a block that a transaction of the pool is.
fn candidate(pooled: &Arc<Pooled>) -> TransactionCandidate {
    TransactionCandidate { transaction: pooled.transaction.clone(), sender: pooled.sender }
}
