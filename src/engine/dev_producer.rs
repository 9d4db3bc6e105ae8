//! The pool, miner and accounts of a development chain, as views of the chain read them.

use alloc::{sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256};

use super::{
    Miner,
    pool::{PoolPart, TransactionPool, WaitingTransaction},
    producer::{BlockProducer, PendingBlock},
};
use crate::{
    consensus::{
        Network, PendingHeader, VerifiedBody, VerifiedReceipts, VerifiedUncles, bitcoin::ServedBitcoin,
    },
    dev::{
        Assembled, Clock, MinerSettings, Mining, SimulatedBitcoin,
        pool::{Pool, Pooled},
    },
    exec::BlockEnvironment,
    local::ChainSnapshot,
    types::SealedHeader,
};

/// The additions of a development chain to the executed chain, as one snapshot has them.
#[derive(Debug)]
pub(super) struct DevProducer {
    /// Waiting transactions.
    pub(super) pool: Pool,
    /// The header fields that the miner chooses.
    pub(super) miner_settings: MinerSettings,
    /// The clock that gives blocks their timestamps.
    pub(super) clock: Clock,
    /// When blocks are mined.
    pub(super) mining: Mining,
    /// Accounts whose keys the node holds.
    pub(super) accounts: Arc<Vec<Address>>,
    /// The Bitcoin chain on which blocks are mined.
    pub(super) bitcoin: Option<Arc<dyn SimulatedBitcoin>>,
}

impl BlockProducer for DevProducer {
    fn pending(&self, chain: &ChainSnapshot, now: u64, interrupt: &dyn Fn() -> bool) -> Option<PendingBlock> {
        let block = self.miner_settings.assemble(chain, &self.pool, &self.clock, now, interrupt).ok()?;
        let Assembled { header, uncles, transactions, mut executed, .. } = block;
        let header = PendingHeader::from(header.seal());
        let uncles = VerifiedUncles::pending(&header, uncles).ok()?;
        let receipts = core::mem::take(&mut executed.receipts);
        Some(PendingBlock {
            body: Arc::new(VerifiedBody::executed(&header, transactions)),
            receipts: Arc::new(VerifiedReceipts::executed(&header, receipts)),
            uncles: Arc::new(uncles),
            executed,
            header,
        })
    }

    fn environment(&self, network: &Network, parent: &SealedHeader, now: u64) -> BlockEnvironment {
        self.miner_settings.environment(network, parent, &self.clock, now)
    }

    fn pool(&self) -> &dyn TransactionPool {
        &self.pool
    }

    fn accounts(&self) -> &[Address] {
        &self.accounts
    }

    fn miner(&self, chain: &ChainSnapshot) -> Miner {
        Miner {
            coinbase: self.miner_settings.coinbase,
            active: self.mining != Mining::Manual,
            price: self.miner_settings.price(chain.network(), chain.head()),
        }
    }

    fn bitcoin(&self) -> Option<&dyn ServedBitcoin> {
        self.bitcoin.as_deref().map(|bitcoin| bitcoin as &dyn ServedBitcoin)
    }
}

impl TransactionPool for Pool {
    fn get(&self, hash: &B256) -> Option<WaitingTransaction<'_>> {
        Self::get(self, hash).map(|pooled| waiting(pooled))
    }

    fn count(&self, part: PoolPart) -> usize {
        match part {
            PoolPart::Pending => self.pending_len(),
            PoolPart::Queued => self.queued_len(),
        }
    }

    fn visit(&self, part: PoolPart, visit: &mut dyn FnMut(WaitingTransaction<'_>)) {
        let by_sender = match part {
            PoolPart::Pending => self.pending(),
            PoolPart::Queued => self.queued(),
        };
        for pooled in by_sender.values().flatten() {
            visit(waiting(pooled));
        }
    }

    fn next_nonce(&self, sender: &Address, state_nonce: u64) -> u64 {
        Self::next_nonce(self, sender, state_nonce)
    }
}

/// A transaction of the pool, as handlers read it.
fn waiting(pooled: &Pooled) -> WaitingTransaction<'_> {
    WaitingTransaction {
        hash: pooled.hash,
        sender: pooled.sender,
        transaction: &pooled.transaction,
        asker: pooled.asker,
    }
}
