//! Creation of the native contracts' accounts in the block that activates them, before its first transaction.

use alloy_primitives::Address;

use crate::consensus::genesis_state::{FIRST_NATIVE_CONTRACTS, NATIVE_CONTRACTS};
use crate::consensus::{Network, Rule};
use crate::state::{Account, World};

/// Creates the accounts of the native contracts that a block activates. RSKIP-126 activates those that exist since genesis: an account at
/// such an address is kept. An account at the address of a contract that a later rule activates is replaced by an empty one.
pub(super) fn activate(world: &mut World, network: &Network, number: u64) {
    let activates = |rule| network.activation(rule) == Some(number);
    if activates(Rule::Rskip126) {
        for low in FIRST_NATIVE_CONTRACTS {
            let address = Address::left_padding_from(&low.to_be_bytes());
            world.create(&address);
            world.set_marker(&address);
        }
    }
    for (rule, low) in NATIVE_CONTRACTS {
        if activates(rule) {
            let address = Address::left_padding_from(&low.to_be_bytes());
            world.set_account(&address, Account::default());
            world.set_marker(&address);
        }
    }
}
