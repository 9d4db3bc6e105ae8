//! The interface of handlers to waiting transactions and to the miner.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, U256};

use super::{BlockHeader, ViewResult};
use crate::types::{Asker, Transaction};

/// A transaction that waits for a block.
#[derive(Debug, Clone, Copy)]
pub struct WaitingTransaction<'a> {
    /// The hash of the transaction.
    pub hash: B256,
    /// The sender: the account of the signature, or an impersonated one.
    pub sender: Address,
    /// The transaction.
    pub transaction: &'a Transaction,
    /// The asker that has sent the transaction; `None` for a transaction that was in a block, which all askers have seen.
    pub asker: Option<Asker>,
}

/// The two parts of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolPart {
    /// Transactions that the next block can include.
    Pending,
    /// Transactions that wait for earlier nonces of their senders.
    Queued,
}

/// The transactions that wait for a block.
pub trait TransactionPool {
    /// The transaction with this hash; `None` if it does not wait in the pool.
    fn get(&self, hash: &B256) -> Option<WaitingTransaction<'_>>;

    /// Number of transactions in a part of the pool.
    fn count(&self, part: PoolPart) -> usize;

    /// Passes the transactions of a part to `visit`, by sender and then by nonce.
    fn visit(&self, part: PoolPart, visit: &mut dyn FnMut(WaitingTransaction<'_>));

    /// The nonce after a sender's last pending transaction. `state_nonce` is the sender's nonce in the head's state.
    fn next_nonce(&self, sender: &Address, state_nonce: u64) -> u64;
}

/// The miner of a local chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Miner {
    /// The account that receives the fees.
    pub coinbase: Address,
    /// Whether blocks are mined without a request to mine: for each transaction, or at intervals.
    pub active: bool,
    /// The gas price in wei that a transaction must offer now.
    pub price: U256,
}

/// The additions of a node to its chain: transactions that wait for the next block, the miner and accounts.
pub trait Pool {
    /// The transaction pool; `None` if there is none.
    fn pool(&self) -> Option<&dyn TransactionPool> {
        None
    }

    /// Header of the pending block, with all transactions that can be mined; `None` if none is built. The other
    /// look-ups accept it as they do any header.
    fn pending(&self) -> ViewResult<Option<BlockHeader>> {
        Ok(None)
    }

    /// Whether the caller may learn that a transaction of this asker has entered the pool. `None` stands for a transaction that
    /// was in a block, which all askers have seen. Only executed chains record such events.
    #[cfg(feature = "local")]
    fn shows_pool_of(&self, _asker: Option<Asker>) -> bool {
        true
    }

    /// The nonce of an account's next transaction. `nonce` is the account's nonce in the head's state; transactions that wait in
    /// the pool, or that a light client has sent to upstreams, raise it.
    fn next_nonce(&self, sender: &Address, nonce: u64) -> u64 {
        self.pool().map_or(nonce, |pool| pool.next_nonce(sender, nonce))
    }

    /// Accounts whose keys the node holds.
    fn accounts(&self) -> Vec<Address> {
        Vec::new()
    }

    /// The miner; `None` if this node does not mine.
    fn miner(&self) -> Option<Miner> {
        None
    }
}

/// The part of a pool that an isolated asker sees: the transactions that it has sent, and those that were in a block.
#[cfg(feature = "local")]
pub(super) struct VisiblePool<'a> {
    pub(super) pool: &'a dyn TransactionPool,
    pub(super) asker: Asker,
}

#[cfg(feature = "local")]
impl VisiblePool<'_> {
    /// Whether the asker sees the transactions that `other` has sent. `None` stands for a transaction that was in a block, which
    /// all askers have seen.
    pub(super) fn shows(&self, other: Option<Asker>) -> bool {
        other.is_none_or(|other| other == self.asker)
    }
}

#[cfg(feature = "local")]
impl TransactionPool for VisiblePool<'_> {
    fn get(&self, hash: &B256) -> Option<WaitingTransaction<'_>> {
        self.pool.get(hash).filter(|waiting| self.shows(waiting.asker))
    }

    fn count(&self, part: PoolPart) -> usize {
        let mut count = 0_usize;
        self.visit(part, &mut |_| count = count.saturating_add(1));
        count
    }

    fn visit(&self, part: PoolPart, visit: &mut dyn FnMut(WaitingTransaction<'_>)) {
        self.pool.visit(part, &mut |waiting| {
            if self.shows(waiting.asker) {
                visit(waiting);
            }
        });
    }

    fn next_nonce(&self, sender: &Address, state_nonce: u64) -> u64 {
        let mut next = state_nonce;
        // A sender's transactions are visited in the order of their nonces. One of another asker, which is not visible, ends
        // the sequence.
        self.visit(PoolPart::Pending, &mut |waiting| {
            if waiting.sender == *sender && waiting.transaction.nonce.value() == U256::from(next) {
                next = next.saturating_add(1);
            }
        });
        next
    }
}
