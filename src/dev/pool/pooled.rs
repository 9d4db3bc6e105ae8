//! A transaction in the pool.

use alloy_primitives::{Address, B256, U256};

use super::admission::PoolContext;
use crate::types::{Asker, Transaction};

/// A transaction in the pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pooled {
    /// The transaction.
    pub transaction: Transaction,
    /// The hash of the transaction.
    pub hash: B256,
    /// The sender, from the signature or impersonated.
    pub sender: Address,
    /// The asker that has sent the transaction; `None` for a transaction of a block that left the chain.
    pub asker: Option<Asker>,
    /// The position in the order of arrival, from 0.
    pub arrival: u64,
}

impl Pooled {
    /// The nonce as a number.
    pub(super) fn nonce(&self) -> u64 {
        // Admission refuses nonces above 64 bits.
        u64::try_from(self.transaction.nonce.value()).unwrap_or(u64::MAX)
    }

    /// The balance in wei that the sender needs: the value, and gas limit times gas price unless the transaction is free.
    pub(super) fn cost(&self, context: &PoolContext<'_>) -> U256 {
        let transaction = &self.transaction;
        if context.basic_cost(transaction, &self.sender) == 0 {
            return transaction.value;
        }
        let gas = transaction.gas_price.value().saturating_mul(transaction.gas_limit.value());
        transaction.value.saturating_add(gas)
    }
}
