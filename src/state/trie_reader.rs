//! Reads a state from its complete trie: nothing is ever missing.

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, U256};

use super::account::Account;
use super::keys::{account_key, code_key, code_key_below, slot_key, storage_root_key};
use super::reader::{AccountState, Corrupt, StateError, StateKey, StateReader};
use crate::trie::Trie;

impl StateReader for Trie {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        let key = account_key(address);
        let Some(bytes) = self.get(&key) else { return Ok(None) };
        let account = Account::decode(bytes).map_err(|fault| StateError::Corrupt {
            key: StateKey::Account(*address),
            fault: Corrupt::Account(fault),
        })?;
        let (code_hash, size) = self.value_hash(&code_key_below(&key)).unwrap_or((KECCAK256_EMPTY, 0));
        let code_size = u32::try_from(size).unwrap_or(u32::MAX);
        Ok(Some(AccountState { nonce: account.nonce, balance: account.balance, code_hash, code_size }))
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        Ok(self.get(&storage_root_key(address)).is_some())
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        Ok(self.get(&slot_key(address, slot)).cloned().unwrap_or_default())
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        Ok(self.get(&code_key(address)).cloned().unwrap_or_default())
    }
}
