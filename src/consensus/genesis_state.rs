//! The state of block 0, computed from an allocation. The keys of the state trie are written here once more, apart from
//! `state::keys`, because the layer `state` is above this one.

use alloc::vec::Vec;

use super::genesis::{AllocatedContract, Allocation, Genesis};
use super::network::Network;
use super::rule::Rule;
use crate::trie::Trie;
use crate::types::{Address, Bytes, RawUint, SignedUint, U256, keccak256};

/// Native contracts that get an account when RSKIP-126 activates, as the low bytes of their addresses: the first five of Ethereum, the
/// Bridge (`01000006`) and REMASC (`01000008`). An existing account is kept.
pub const FIRST_NATIVE_CONTRACTS: [u64; 7] = [1, 2, 3, 4, 5, 0x0100_0006, 0x0100_0008];

/// Native contracts that get an account when a later rule activates. An existing account is replaced by an
/// empty one.
pub const NATIVE_CONTRACTS: [(Rule, u64); 9] = [
    // HDWalletUtils.
    (Rule::Rskip106, 0x0100_0009),
    // BlockHeader.
    (Rule::Rskip119, 0x0100_0010),
    // The curve alt_bn128.
    (Rule::Rskip137, 6),
    (Rule::Rskip137, 7),
    (Rule::Rskip137, 8),
    // Blake2b.
    (Rule::Rskip153, 9),
    // Environment.
    (Rule::Rskip203, 0x0100_0011),
    // Addition and multiplication on secp256k1.
    (Rule::Rskip516, 0x0100_0016),
    (Rule::Rskip516, 0x0100_0017),
];

impl Genesis {
    /// Computes the state of block 0: the allocation and the native contracts that exist from block 0 on.
    /// Native contracts get accounts here only if RSKIP-126 is active at block 0 (networks that start with
    /// the Unitrie).
    pub fn computed_state(&self, network: &Network) -> Trie {
        let mut state = Trie::new();
        for account in &self.alloc {
            put_account(&mut state, account);
        }
        if network.activation(Rule::Rskip126) != Some(0) {
            return state;
        }
        for low in FIRST_NATIVE_CONTRACTS {
            let address = Address::left_padding_from(&low.to_be_bytes());
            if !self.alloc.iter().any(|account| account.address == address) {
                put_account(&mut state, &Allocation { address, ..Allocation::default() });
            }
            put_marker(&mut state, &address);
        }
        for (rule, low) in NATIVE_CONTRACTS {
            if network.activation(rule) == Some(0) {
                let address = Address::left_padding_from(&low.to_be_bytes());
                put_account(&mut state, &Allocation { address, ..Allocation::default() });
                put_marker(&mut state, &address);
            }
        }
        state
    }
}

/// Key of an account in the state trie: `00 | keccak(address)[0..10] | address`.
fn account_key(address: &Address) -> Vec<u8> {
    let mut key = alloc::vec![0];
    key.extend(keccak256(address).iter().take(10));
    key.extend(address.iter());
    key
}

/// Puts the marker of a contract, the byte 01 at the root of its storage (`account key | 00`).
fn put_marker(state: &mut Trie, address: &Address) {
    let mut marker = account_key(address);
    marker.push(0);
    state.put(&marker, Bytes::from_static(&[1]));
}

/// Puts an account: `RLP([nonce, balance])`, the balance in signed form with 00 for zero; then code and
/// storage.
fn put_account(state: &mut Trie, account: &Allocation) {
    let mut items = Vec::new();
    RawUint::from(account.nonce).put(&mut items);
    SignedUint::new(account.balance).put(&mut items);
    let mut value = Vec::new();
    alloy_rlp::Header { list: true, payload_length: items.len() }.encode(&mut value);
    value.extend(items);
    state.put(&account_key(&account.address), value);
    if let Some(contract) = &account.contract {
        put_contract(state, &account.address, contract);
    }
}

/// Puts a contract's marker, its code at `account key | 80`, and its storage.
fn put_contract(state: &mut Trie, address: &Address, contract: &AllocatedContract) {
    put_marker(state, address);
    let mut code = account_key(address);
    code.push(0x80);
    state.put(&code, contract.code.clone());
    for (slot, value) in &contract.storage {
        state.put(&slot_key(address, slot), value.clone());
    }
}

/// Key of a slot: `account key | 00 | keccak(slot)[0..10] | slot without leading zeros`, at least one byte.
fn slot_key(address: &Address, slot: &U256) -> Vec<u8> {
    let word = slot.to_be_bytes::<32>();
    let zeros = word.iter().take_while(|byte| **byte == 0).count().min(31);
    let mut key = account_key(address);
    key.push(0);
    key.extend(keccak256(word).iter().take(10));
    key.extend(word.iter().skip(zeros));
    key
}
