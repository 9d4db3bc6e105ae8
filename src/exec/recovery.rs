//! Recovery of many senders at once by the host: the core has no threads.

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

/// The senders of all transactions; `None` if one of them has none, so that the caller finds out which and why.
pub(super) fn all_senders(
    recovery: &dyn Recovery,
    transactions: &[Transaction],
    chain_id: u64,
) -> Option<Vec<Address>> {
    let senders: Option<Vec<Address>> = recovery.senders(transactions, chain_id).into_iter().collect();
    senders.filter(|senders| senders.len() == transactions.len())
}
