//! Reads a state from its complete trie in memory, as executed chains have it: no read ever reports missing data.

use core::cell::Cell;

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256};

use super::account::Account;
use super::keys::{
    ACCOUNT_KEY_LEN, CODE, account_key, code_key_below, slot_key_below, storage_root_key_below,
};
use super::reader::{AccountState, Corrupt, StateError, StateKey, StateReader};
use crate::trie::Trie;

/// The trie key of the account that was read last. Computing a key takes longer than the walk to it, and most messages
/// read one account several times.
#[derive(Debug, Default)]
pub struct LastKey(Cell<Option<(Address, [u8; ACCOUNT_KEY_LEN])>>);

impl LastKey {
    /// The trie key of an account, computed if it is not the last one.
    fn of(&self, address: &Address) -> [u8; ACCOUNT_KEY_LEN] {
        match self.0.get() {
            Some((known, key)) if known == *address => key,
            _ => {
                let key = account_key(address);
                self.0.set(Some((*address, key)));
                key
            }
        }
    }
}

/// A complete trie, read through a [`LastKey`].
#[derive(Clone, Copy, Debug)]
pub struct KeyedTrie<'a> {
    trie: &'a Trie,
    last: &'a LastKey,
}

impl<'a> KeyedTrie<'a> {
    /// Reads this trie. `last` may have been used with other tries.
    pub fn new(trie: &'a Trie, last: &'a LastKey) -> Self {
        Self { trie, last }
    }
}

impl StateReader for KeyedTrie<'_> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        let key = self.last.of(address);
        let Some((bytes, code)) = self.trie.get_with_hash_below(&key, &[CODE]) else { return Ok(None) };
        let account = Account::decode(bytes).map_err(|fault| StateError::Corrupt {
            key: StateKey::Account(*address),
            fault: Corrupt::Account(fault),
        })?;
        let (code_hash, size) = code.unwrap_or((KECCAK256_EMPTY, 0));
        let code_size = u32::try_from(size).unwrap_or(u32::MAX);
        Ok(Some(AccountState { nonce: account.nonce, balance: account.balance, code_hash, code_size }))
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        Ok(self.trie.get(&storage_root_key_below(&self.last.of(address))).is_some())
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        Ok(self.trie.get(&slot_key_below(&self.last.of(address), slot)).cloned().unwrap_or_default())
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        Ok(self.trie.get(&code_key_below(&self.last.of(address))).cloned().unwrap_or_default())
    }
}

impl StateReader for Trie {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        KeyedTrie::new(self, &LastKey::default()).account(address)
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        KeyedTrie::new(self, &LastKey::default()).is_contract(address)
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        KeyedTrie::new(self, &LastKey::default()).storage(address, slot)
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        KeyedTrie::new(self, &LastKey::default()).code(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::keys::{code_key, slot_key, storage_root_key};
    use alloc::vec;

    #[test]
    fn the_last_key_belongs_to_one_address_and_to_any_trie() {
        let [one, two] = [1, 2].map(Address::repeat_byte);
        let (mut older, mut trie) = (Trie::new(), Trie::new());
        for (address, nonce) in [(one, 1), (two, 2)] {
            trie.put(&account_key(&address), Account { nonce, ..Account::default() }.encode());
            trie.put(&slot_key(&address, &U256::from(7)), vec![address[0]]);
        }
        trie.put(&code_key(&two), vec![0x60; 40]);
        trie.put(&storage_root_key(&two), vec![1]);
        older.put(&account_key(&two), Account { nonce: 9, ..Account::default() }.encode());
        let last = LastKey::default();
        let (read, before) = (KeyedTrie::new(&trie, &last), KeyedTrie::new(&older, &last));
        for address in [one, two, two, one] {
            assert_eq!(read.account(&address), trie.account(&address));
            assert_eq!(read.account(&address).unwrap().unwrap().nonce, u64::from(address[0]));
            assert_eq!(before.account(&address).unwrap().is_some(), address == two);
            assert_eq!(read.storage(&address, &U256::from(7)).unwrap()[..], [address[0]]);
            assert_eq!(read.is_contract(&address), Ok(address == two));
            assert_eq!(read.code(&address).unwrap().len(), if address == two { 40 } else { 0 });
        }
        assert_eq!(read.account(&Address::ZERO), Ok(None));
    }
}
