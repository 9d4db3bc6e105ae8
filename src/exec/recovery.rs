//! The interface by which a host recovers many senders at once on several threads, which the core does not have.

use alloc::vec::Vec;
use core::fmt;

use alloy_primitives::Address;

use crate::types::Transaction;

/// Recovers the senders of many transactions, on as many processors as the host gives it. Recovery takes most of the
/// time of a transfer.
pub trait Recovery: fmt::Debug + Send + Sync {
    /// The senders of the transactions in the same order, as [`Transaction::recover_sender`] returns them; `None` for a
    /// transaction without a valid signature on the chain with this id.
    fn senders(&self, transactions: &[Transaction], chain_id: u64) -> Vec<Option<Address>>;
}

/// The senders of all transactions. `None` if one transaction has no valid signature: the caller then recovers them one by one, and
/// reports which and why.
pub(super) fn all_senders(
    recovery: &dyn Recovery,
    transactions: &[Transaction],
    chain_id: u64,
) -> Option<Vec<Address>> {
    let senders: Option<Vec<Address>> = recovery.senders(transactions, chain_id).into_iter().collect();
    senders.filter(|senders| senders.len() == transactions.len())
}
