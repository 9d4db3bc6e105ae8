//! Keys of the state trie (RSKIP-107). All keys of an account share one prefix.
//!
//! ```text
//! account       00 || keccak(address)[0..10] || address
//! code          account || 80
//! storage root  account || 00                               value 01 marks a contract
//! slot          account || 00 || keccak(slot)[0..10] || slot without leading zero bytes
//! ```
//! The ten hash bytes balance the trie. The address or slot after them can be read back when walking the
//! trie.

use alloc::vec::Vec;

use alloy_primitives::{Address, U256, keccak256};

use super::reader::StateKey;

/// First byte of every account key.
const DOMAIN: u8 = 0x00;
/// Number of hash bytes before an address or slot: the balancing bytes.
pub(super) const BALANCING: usize = 10;
/// Length of an account key in bytes.
pub const ACCOUNT_KEY_LEN: usize = 31;
/// Last byte of a code key.
pub(super) const CODE: u8 = 0x80;
/// Last byte of a storage-root key.
const STORAGE: u8 = 0x00;

/// Key of the account that counts the REMASC transactions in its nonce. The address of their sender is the
/// single byte 00.
pub const REMASC_SENDER_KEY: [u8; 12] =
    [0x00, 0xbc, 0x36, 0x78, 0x9e, 0x7a, 0x1e, 0x28, 0x14, 0x36, 0x46, 0x00];

/// Key of an account's nonce and balance.
pub fn account_key(address: &Address) -> [u8; ACCOUNT_KEY_LEN] {
    let mut key = [DOMAIN; ACCOUNT_KEY_LEN];
    let (_, rest) = key.split_at_mut(1);
    let (balancing, own) = rest.split_at_mut(BALANCING);
    balancing.copy_from_slice(keccak256(address).split_at(BALANCING).0);
    own.copy_from_slice(address.as_slice());
    key
}

/// Key of an account's code.
pub fn code_key(address: &Address) -> [u8; ACCOUNT_KEY_LEN + 1] {
    code_key_below(&account_key(address))
}

/// Key of the code of the account with this account key.
pub fn code_key_below(account: &[u8; ACCOUNT_KEY_LEN]) -> [u8; ACCOUNT_KEY_LEN + 1] {
    with_suffix(account, CODE)
}

/// Key of the marker that makes an account a contract. The keys of storage slots begin with it.
pub fn storage_root_key(address: &Address) -> [u8; ACCOUNT_KEY_LEN + 1] {
    storage_root_key_below(&account_key(address))
}

/// Key of the storage-root marker of the account with this account key.
pub fn storage_root_key_below(account: &[u8; ACCOUNT_KEY_LEN]) -> [u8; ACCOUNT_KEY_LEN + 1] {
    with_suffix(account, STORAGE)
}

/// Key of a storage slot.
pub fn slot_key(address: &Address, slot: &U256) -> Vec<u8> {
    slot_key_below(&account_key(address), slot)
}

/// Key of a storage slot of the account with this account key.
pub fn slot_key_below(account: &[u8; ACCOUNT_KEY_LEN], slot: &U256) -> Vec<u8> {
    let word = slot.to_be_bytes::<32>();
    let hash = keccak256(word);
    // Slot zero is written as one zero byte.
    let zeros = word.iter().take_while(|byte| **byte == 0).count().min(31);
    let mut key = Vec::with_capacity(ACCOUNT_KEY_LEN + 1 + BALANCING + 32);
    key.extend_from_slice(account);
    key.push(STORAGE);
    key.extend(hash.0.iter().take(BALANCING));
    key.extend(word.iter().skip(zeros));
    key
}

/// The fact of which the value under this key is a part; `None` if the key is not one of an account. For the marker of a contract that
/// is slot 0, because the marker is on the path to every slot, and so in its proof.
pub fn fact_of(key: &[u8]) -> Option<StateKey> {
    let (account, rest) = key.split_at_checked(ACCOUNT_KEY_LEN)?;
    let address = Address::try_from(account.get(1 + BALANCING..)?).ok()?;
    Some(match rest {
        [] => StateKey::Account(address),
        [CODE] => StateKey::Code(address),
        [STORAGE] => StateKey::Storage(address, U256::ZERO),
        [STORAGE, slot @ ..] => StateKey::Storage(address, U256::try_from_be_slice(slot.get(BALANCING..)?)?),
        _ => return None,
    })
}

fn with_suffix(account: &[u8; ACCOUNT_KEY_LEN], suffix: u8) -> [u8; ACCOUNT_KEY_LEN + 1] {
    let mut key = [suffix; ACCOUNT_KEY_LEN + 1];
    key.iter_mut().zip(account).for_each(|(to, from)| *to = *from);
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::address;

    /// The first funded regtest account, as recorded from the reference node.
    #[test]
    fn recorded_account_key() {
        let cow = address!("cd2a3d9f938e13cd947ec05abc7fe734df8dd826");
        let key = "00a28629e41841cc5e7028cd2a3d9f938e13cd947ec05abc7fe734df8dd826";
        assert_eq!(hex::encode(account_key(&cow)), key);
        assert_eq!(hex::encode(code_key(&cow)), format!("{key}80"));
        assert_eq!(hex::encode(storage_root_key(&cow)), format!("{key}00"));
    }

    #[test]
    fn slot_keys_drop_leading_zeros_but_keep_one_byte() {
        let zero = slot_key(&Address::ZERO, &U256::ZERO);
        assert_eq!(zero.len(), 32 + 10 + 1);
        assert_eq!(zero.last(), Some(&0));
        assert_eq!(slot_key(&Address::ZERO, &U256::from(0x1234)).len(), 32 + 10 + 2);
        assert_eq!(slot_key(&Address::ZERO, &U256::MAX).len(), 32 + 10 + 32);
    }

    #[test]
    fn keys_name_their_facts() {
        let (address, slot) = (Address::repeat_byte(7), U256::from(0x1234));
        assert_eq!(fact_of(&account_key(&address)), Some(StateKey::Account(address)));
        assert_eq!(fact_of(&code_key(&address)), Some(StateKey::Code(address)));
        assert_eq!(fact_of(&slot_key(&address, &slot)), Some(StateKey::Storage(address, slot)));
        let first = Some(StateKey::Storage(address, U256::ZERO));
        assert_eq!(fact_of(&slot_key(&address, &U256::ZERO)), first);
        assert_eq!(fact_of(&storage_root_key(&address)), first);
        let long = [&slot_key(&address, &U256::MAX)[..], &[1]].concat();
        assert!([&REMASC_SENDER_KEY[..], &long, &[]].iter().all(|key| fact_of(key).is_none()));
    }

    #[test]
    fn the_remasc_sender_key_is_of_a_one_byte_address() {
        let hash = keccak256([0]);
        assert_eq!(REMASC_SENDER_KEY[0], DOMAIN);
        assert_eq!(REMASC_SENDER_KEY[1..11], hash[..10]);
        assert_eq!(REMASC_SENDER_KEY[11], 0);
    }
}
