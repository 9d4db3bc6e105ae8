//! What handlers read of a transaction pool.

use alloy_primitives::{Address, B256};

use crate::types::Transaction;

/// A transaction that waits for a block.
#[derive(Debug, Clone, Copy)]
pub struct WaitingTransaction<'a> {
    /// Its hash.
    pub hash: B256,
    /// Its sender, from the signature or impersonated.
    pub sender: Address,
    /// The transaction.
    pub transaction: &'a Transaction,
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
    /// The transaction with this hash; `None` if the pool does not hold it.
    fn get(&self, hash: &B256) -> Option<WaitingTransaction<'_>>;

    /// Number of transactions in a part of the pool.
    fn count(&self, part: PoolPart) -> usize;

    /// Passes the transactions of a part to `visit`, by sender and then by nonce.
    fn visit(&self, part: PoolPart, visit: &mut dyn FnMut(WaitingTransaction<'_>));

    /// The nonce after a sender's last pending transaction. `state_nonce` is the sender's nonce in the head's state.
    fn next_nonce(&self, sender: &Address, state_nonce: u64) -> u64;
}
