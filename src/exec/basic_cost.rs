//! Gas charged before a transaction runs. Some transactions to the Bridge are free.

use alloy_primitives::{Address, address};

use crate::consensus::{Network, RuleSet};
use crate::evm::intrinsic_gas;
use crate::evm::precompiles::bridge::is_free_transaction;
use crate::types::Transaction;

/// The address of the Bridge.
pub(super) const BRIDGE: Address = address!("0000000000000000000000000000000001000006");

/// Gas that a transaction needs before it runs: its intrinsic gas, or 0 if the transaction is free. Until the rule that Bridge
/// transactions are paid, those of the federation's genesis members and voters are free. The caller has checked the sender's
/// signature.
pub fn basic_cost(transaction: &Transaction, sender: &Address, network: &Network, rules: RuleSet) -> u64 {
    if transaction.to == Some(BRIDGE) && is_free_transaction(sender, network.chain_id, rules) {
        return 0;
    }
    intrinsic_gas(&transaction.data, transaction.to.is_none(), rules)
}
