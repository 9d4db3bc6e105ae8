//! What a transaction pays before anything runs; some to the Bridge pay nothing.

use alloy_primitives::{address, Address};

use crate::consensus::{Network, RuleSet};
use crate::evm::intrinsic_gas;
use crate::evm::precompiles::bridge::is_free_transaction;
use crate::types::Transaction;

/// The Bridge.
pub(super) const BRIDGE: Address = address!("0000000000000000000000000000000001000006");

/// Gas that a transaction needs before anything runs: what its data cost, or nothing where it is free
/// (to the Bridge, from those who keep it going, as long as Bridge transactions are not paid). Its
/// sender's signature must have been accepted.
pub fn basic_cost(transaction: &Transaction, sender: &Address, network: &Network, rules: RuleSet) -> u64 {
    if transaction.to == Some(BRIDGE) && is_free_transaction(sender, network.chain_id, rules) {
        return 0;
    }
    intrinsic_gas(&transaction.data, transaction.to.is_none(), rules)
}
