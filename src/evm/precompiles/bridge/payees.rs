//! Rootstock accounts of federation members. REMASC pays them. Those of the genesis federation, and voters, can call the Bridge without
//! paying gas until Bridge transactions are paid ([`Rule::BridgeTxsPaid`]).

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256, keccak256};
use k256::elliptic_curve::sec1::{FromEncodedPoint as _, ToEncodedPoint as _};

use super::NativeCall;
use super::constants::{Constants, PublicKey};
use super::federation::Federation;
use crate::consensus::{Rule, RuleSet};

/// Accounts to which REMASC pays the federation's share, in the order of the members. The federation is the
/// one active at `height`, read from the Bridge's cells. `rules` are those of the executing block.
pub fn federation_payees(
    chain_id: u64,
    rules: RuleSet,
    height: u64,
    cells: &mut dyn FnMut(U256) -> Bytes,
) -> Vec<Address> {
    let constants = Constants::of(chain_id);
    let federation = Federation::active(constants, rules, height, cells);
    let key = |member: super::federation::FederationMember| {
        if rules.has(Rule::Rskip415) { member.rsk } else { member.btc }
    };
    // Votes only add keys that are points of the curve (`write/change.rs`), so the zero address is not reached on a real chain.
    let account = |key| genesis_account(constants, &key).or_else(|| address(&key)).unwrap_or_default();
    federation.members.into_iter().map(|member| account(key(member))).collect()
}

/// The account of a key of the genesis federation, from a table that saves decompressing the key.
fn genesis_account(constants: &Constants, key: &PublicKey) -> Option<Address> {
    let position = constants.genesis_keys.iter().position(|genesis| genesis == key)?;
    constants.genesis_accounts.get(position).copied()
}

/// The Rootstock account of a compressed public key; `None` if it is no point of the curve.
pub(super) fn address(key: &PublicKey) -> Option<Address> {
    let encoded = k256::EncodedPoint::from_bytes(key).ok()?;
    let point: Option<k256::AffinePoint> = k256::AffinePoint::from_encoded_point(&encoded).into();
    let plain = point?.to_encoded_point(false);
    Some(Address::from_word(keccak256(plain.as_bytes().get(1..)?)))
}

/// Whether a transaction to the Bridge from this sender costs no gas, neither intrinsic gas nor the price of
/// the method. Until Bridge transactions are paid, this applies to the genesis federation's members and to the
/// accounts that vote on federation, whitelist and fee.
pub fn is_free_transaction(sender: &Address, chain_id: u64, rules: RuleSet) -> bool {
    if rules.has(Rule::BridgeTxsPaid) {
        return false;
    }
    let constants = Constants::of(chain_id);
    constants.federation_voters.contains(sender)
        || constants.fee_voters.contains(sender)
        || constants.whitelist_voter == *sender
        || constants.genesis_keys.iter().any(|key| address(key) == Some(*sender))
}

/// Whether a call is free. Only direct calls by transactions can be.
pub(super) fn is_free(call: &NativeCall<'_>) -> bool {
    call.is_direct()
        && call.transaction.is_some()
        && call.caller.is_some_and(|caller| is_free_transaction(&caller, call.chain_id, call.rules))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::Network;
    use alloy_primitives::address;

    #[test]
    fn regtest_pays_its_genesis_federation() {
        let rules = Network::regtest().rules(20);
        let payees = federation_payees(33, rules, 10, &mut |_| Bytes::new());
        let want = [
            address!("6b045752f4d650a510a353bbf7e52988331e7f5b"),
            address!("85845342b0d5260d516d6da5280a7df9a96d1925"),
            address!("138161cda86b55c0de1bc3a0adef974633c85fbe"),
        ];
        assert_eq!(payees, want);
        assert!(want.iter().all(|payee| is_free_transaction(payee, 33, rules)));
        assert!(!is_free_transaction(&Address::ZERO, 33, rules));
        assert!(!is_free_transaction(&want[0], 30, Network::mainnet().rules(8_000_000)));
    }

    #[test]
    fn known_accounts_are_those_of_the_keys() {
        for chain_id in [30, 31, 33] {
            let constants = Constants::of(chain_id);
            for (key, account) in constants.genesis_keys.iter().zip(constants.genesis_accounts) {
                assert_eq!(address(key), Some(*account));
            }
        }
        assert_eq!(Constants::of(33).genesis_accounts.len(), Constants::of(33).genesis_keys.len());
    }

    #[test]
    fn mainnet_keys_have_their_accounts() {
        let payees = federation_payees(30, RuleSet::NONE, 10, &mut |_| Bytes::new());
        assert_eq!(payees.len(), 15);
        assert_eq!(payees[0], address!("1888fa870b97a4845a6a1f7eee4ebb507dbe0967"));
        assert_eq!(payees[14], address!("f74b7e0d5bdd14eaedf725bb1549ce14abeb71dd"));
    }
}
