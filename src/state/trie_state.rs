//! State as it lies in a trie of which only some nodes may be at hand.

use alloc::string::ToString;

use alloy_primitives::{Address, Bytes, B256, KECCAK256_EMPTY, U256};

use super::account::Account;
use super::keys::{account_key, code_key, slot_key, storage_root_key};
use super::reader::{AccountState, Corrupt, StateError, StateKey, StateReader};
use crate::trie::{lookup, Lookup, NodeSource, WalkError};

/// The state with a given root, over nodes and long values by hash.
///
/// The source must give out only what hashes to what was asked for; with that, and a root from a
/// verified header, everything read here is proven.
#[derive(Clone, Copy, Debug)]
pub struct TrieState<S> {
    source: S,
    root: B256,
}

impl<S: NodeSource> TrieState<S> {
    /// The state under `root`.
    pub fn new(source: S, root: B256) -> Self {
        Self { source, root }
    }

    /// Root of the state.
    pub fn root(&self) -> B256 {
        self.root
    }

    /// Walks to a key; a node that is not at hand is named by the fact it belongs to.
    fn walk(&self, key: &[u8], fact: StateKey) -> Result<Lookup, StateError> {
        lookup(&self.source, self.root, key).map_err(|error| match error {
            WalkError::Missing(_) => StateError::Missing(fact),
            bad => node_fault(fact, &bad),
        })
    }

    /// A value of any length; a long one that is not at hand is its own fact.
    fn value(&self, key: &[u8], fact: StateKey, long: StateKey) -> Result<Bytes, StateError> {
        match self.walk(key, fact)? {
            Lookup::Absent => Ok(Bytes::new()),
            Lookup::Found(value) => Ok(value),
            Lookup::FoundLong { hash, len } => {
                let value = self.source.node(&hash).ok_or(StateError::Missing(long))?;
                if u32::try_from(value.len()) != Ok(len) {
                    let fault = WalkError::ValueLength { hash, expected: len, found: value.len() };
                    return Err(node_fault(long, &fault));
                }
                Ok(value)
            }
        }
    }
}

impl<S: NodeSource> StateReader for TrieState<S> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        let fact = StateKey::Account(*address);
        let bytes = match self.walk(&account_key(address), fact)? {
            Lookup::Absent => return Ok(None),
            Lookup::Found(bytes) => bytes,
            Lookup::FoundLong { .. } => self.value(&account_key(address), fact, fact)?,
        };
        let account = Account::decode(&bytes)
            .map_err(|fault| StateError::Corrupt { key: fact, fault: Corrupt::Account(fault) })?;
        // The code's leaf is embedded in the account's node: these nodes are at hand already.
        let (code_hash, code_size) = match self.walk(&code_key(address), fact)? {
            Lookup::Absent => (KECCAK256_EMPTY, 0),
            Lookup::Found(code) => {
                (alloy_primitives::keccak256(&code), u32::try_from(code.len()).unwrap_or(u32::MAX))
            }
            Lookup::FoundLong { hash, len } => (hash, len),
        };
        Ok(Some(AccountState { nonce: account.nonce, balance: account.balance, code_hash, code_size }))
    }

    /// The marker lies on the way to every slot, so the proof of any slot shows it.
    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        let fact = StateKey::Storage(*address, U256::ZERO);
        Ok(self.walk(&storage_root_key(address), fact)? != Lookup::Absent)
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        let fact = StateKey::Storage(*address, *slot);
        self.value(&slot_key(address, slot), fact, StateKey::StorageBytes(*address, *slot))
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        self.value(&code_key(address), StateKey::Account(*address), StateKey::Code(*address))
    }
}

fn node_fault(key: StateKey, error: &WalkError) -> StateError {
    StateError::Corrupt { key, fault: Corrupt::Node(error.to_string()) }
}
