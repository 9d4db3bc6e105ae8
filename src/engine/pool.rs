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
    /// Sender of a waiting transaction; `None` if the pool does not hold it.
    fn sender_of(&self, hash: &B256) -> Option<Address>;

    /// Number of transactions in a part of the pool.
    fn count(&self, part: PoolPart) -> usize;

    /// Passes the transactions of a part to `visit`, by sender and then by nonce.
    fn visit(&self, part: PoolPart, visit: &mut dyn FnMut(WaitingTransaction<'_>));

    /// The nonce after a sender's last pending transaction. `state_nonce` is the sender's nonce in the head's state.
    fn next_nonce(&self, sender: &Address, state_nonce: u64) -> u64;
}

#[cfg(feature = "local")]
impl TransactionPool for crate::dev::pool::Pool {
    fn sender_of(&self, hash: &B256) -> Option<Address> {
        self.get(hash).map(|pooled| pooled.sender)
    }

    fn count(&self, part: PoolPart) -> usize {
        match part {
            PoolPart::Pending => self.pending_len(),
            PoolPart::Queued => self.queued_len(),
        }
    }

    fn visit(&self, part: PoolPart, visit: &mut dyn FnMut(WaitingTransaction<'_>)) {
        let senders = match part {
            PoolPart::Pending => self.pending(),
            PoolPart::Queued => self.queued(),
        };
        for pooled in senders.values().flatten() {
            let (hash, sender) = (pooled.hash, pooled.sender);
            visit(WaitingTransaction { hash, sender, transaction: &pooled.transaction });
        }
    }

    fn next_nonce(&self, sender: &Address, state_nonce: u64) -> u64 {
        Self::next_nonce(self, sender, state_nonce)
    }
}
