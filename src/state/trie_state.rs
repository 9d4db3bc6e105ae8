//! Reads a state from a trie of which only some nodes may be available, as a light client has it.

use alloc::string::ToString;

use alloy_primitives::{Address, B256, Bytes, KECCAK256_EMPTY, U256};

use super::account::Account;
use super::keys::{account_key, code_key, code_key_below, slot_key, slot_key_below, storage_root_key};
use super::read_account::ReadAccount;
use super::reader::{AccountState, Corrupt, StateError, StateKey, StateReader};
use crate::trie::{Lookup, NodeSource, WalkError, lookup, lookup_end};

/// The state with a given root, read from nodes and long values by hash.
///
/// The source must only return bytes that have the requested hash. If the root comes from a verified header,
/// everything read here is then proven.
#[derive(Clone, Copy, Debug)]
pub struct TrieState<S> {
    source: S,
    root: B256,
}

impl<S: NodeSource> TrieState<S> {
    /// Creates a reader of the state under `root`.
    pub fn new(source: S, root: B256) -> Self {
        Self { source, root }
    }

    /// Root of the state.
    pub fn root(&self) -> B256 {
        self.root
    }

    /// Looks up a key. If a node is missing, the error names `fact` as missing.
    fn walk(&self, key: &[u8], fact: StateKey) -> Result<Lookup, StateError> {
        lookup(&self.source, self.root, key).map_err(|error| walk_fault(fact, &error))
    }

    /// Reads a value of any length. If a node is missing, the error names `fact` as missing; if the bytes of a value of more than 32 bytes
    /// are missing, `long`.
    fn value(&self, key: &[u8], fact: StateKey, long: StateKey) -> Result<Bytes, StateError> {
        self.whole(self.walk(key, fact)?, long)
    }

    /// The bytes of a value that was found. A value of more than 32 bytes is read by its hash; if it is missing, the error names `long`.
    fn whole(&self, found: Lookup, long: StateKey) -> Result<Bytes, StateError> {
        match found {
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

impl<S: NodeSource> TrieState<S> {
    /// The account, with the node from which reads of its storage start.
    pub(super) fn read_account(&self, address: &Address) -> Result<Option<ReadAccount>, StateError> {
        let fact = StateKey::Account(*address);
        let fault = |error| walk_fault(fact, &error);
        let key = account_key(address);
        let (found, node) = lookup_end(&self.source, self.root, &key).map_err(fault)?;
        if found == Lookup::Absent {
            return Ok(None);
        }
        let account = Account::decode(&self.whole(found, fact)?)
            .map_err(|fault| StateError::Corrupt { key: fact, fault: Corrupt::Account(fault) })?;
        // The leaf of the code has no children and at most 44 bytes, so the account's node embeds it, and no further node is needed.
        let code = match &node {
            Some(node) => node.lookup(&self.source, &code_key_below(&key)).map_err(fault)?,
            None => Lookup::Absent,
        };
        let (code_hash, code_size) = match code {
            Lookup::Absent => (KECCAK256_EMPTY, 0),
            Lookup::Found(code) => {
                (alloy_primitives::keccak256(&code), u32::try_from(code.len()).unwrap_or(u32::MAX))
            }
            Lookup::FoundLong { hash, len } => (hash, len),
        };
        let state = AccountState { nonce: account.nonce, balance: account.balance, code_hash, code_size };
        Ok(Some(ReadAccount { state, key, node }))
    }

    /// A slot of an account that [`Self::read_account`] has returned.
    pub(super) fn storage_of(
        &self,
        account: &ReadAccount,
        address: &Address,
        slot: &U256,
    ) -> Result<Bytes, StateError> {
        let Some(node) = &account.node else { return Ok(Bytes::new()) };
        let key = slot_key_below(&account.key, slot);
        let fact = StateKey::Storage(*address, *slot);
        let found = node.lookup(&self.source, &key).map_err(|error| walk_fault(fact, &error))?;
        self.whole(found, StateKey::StorageBytes(*address, *slot))
    }
}

impl<S: NodeSource> StateReader for TrieState<S> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        Ok(self.read_account(address)?.map(|account| account.state))
    }

    /// The marker is on the path to every slot, so the proof of any slot includes it.
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

/// The error of a walk: a missing node means that `fact` is missing, any other fault that the data is corrupt.
fn walk_fault(fact: StateKey, error: &WalkError) -> StateError {
    match error {
        WalkError::Missing(_) => StateError::Missing(fact),
        bad => node_fault(fact, bad),
    }
}

fn node_fault(key: StateKey, error: &WalkError) -> StateError {
    StateError::Corrupt { key, fault: Corrupt::Node(error.to_string()) }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::state::AccountError;
    use crate::trie::Trie;
    use alloy_primitives::keccak256;

    const ADDRESS: Address = Address::repeat_byte(0x11);

    type Nodes = BTreeMap<B256, Bytes>;

    /// Nodes and long values of a trie.
    fn stored(trie: &Trie) -> Nodes {
        let mut nodes = Nodes::new();
        trie.for_each_stored(&mut |hash, bytes| {
            nodes.insert(hash, bytes);
        });
        nodes
    }

    /// The nodes and the root of a state with two accounts. One is a contract with code, a word and a long
    /// value.
    fn sample(code: &[u8]) -> (Nodes, B256) {
        let account = Account { nonce: 3, balance: U256::from(7), debt: U256::ZERO, flags: 0 };
        let mut trie = Trie::new();
        let mut put = |key: &[u8], value: &[u8]| trie.put(key, value.to_vec());
        put(&account_key(&Address::repeat_byte(0x22)), &Account::default().encode());
        put(&account_key(&ADDRESS), &account.encode());
        put(&storage_root_key(&ADDRESS), &[1]);
        put(&code_key(&ADDRESS), code);
        put(&slot_key(&ADDRESS, &U256::from(5)), &[9]);
        put(&slot_key(&ADDRESS, &U256::from(6)), &[8; 40]);
        (stored(&trie), trie.root())
    }

    #[test]
    fn code_is_read_whether_inline_or_stored_by_hash() {
        for code in [&[0x60, 1][..], &[0x5b; 100]] {
            let (nodes, root) = sample(code);
            let state = TrieState::new(nodes, root);
            let account = state.account(&ADDRESS).unwrap().unwrap();
            assert_eq!((account.nonce, account.balance), (3, U256::from(7)));
            assert_eq!((account.code_hash, account.code_size as usize), (keccak256(code), code.len()));
            assert_eq!(state.code(&ADDRESS).unwrap()[..], *code);
            assert!(state.is_contract(&ADDRESS).unwrap());
            assert!(!state.is_contract(&Address::repeat_byte(0x22)).unwrap());
            assert_eq!(state.account(&Address::ZERO).unwrap(), None);
        }
    }

    #[test]
    fn missing_long_values_are_reported_as_separate_facts() {
        let (mut nodes, root) = sample(&[0x5b; 100]);
        nodes.remove(&keccak256([0x5b; 100]));
        nodes.remove(&keccak256([8; 40]));
        let state = TrieState::new(nodes, root);
        assert_eq!(state.account(&ADDRESS).unwrap().unwrap().code_size, 100, "the size needs no code");
        assert_eq!(state.code(&ADDRESS), Err(StateError::Missing(StateKey::Code(ADDRESS))));
        let slot = U256::from(6);
        assert_eq!(
            state.storage(&ADDRESS, &slot),
            Err(StateError::Missing(StateKey::StorageBytes(ADDRESS, slot)))
        );
    }

    #[test]
    fn a_long_value_cannot_be_read_as_a_word() {
        let (nodes, root) = sample(&[0]);
        let state = TrieState::new(nodes, root);
        assert_eq!(state.storage_word(&ADDRESS, &U256::from(5)), Ok(U256::from(9)));
        assert_eq!(state.storage(&ADDRESS, &U256::from(6)).unwrap()[..], [8; 40]);
        let error = state.storage_word(&ADDRESS, &U256::from(6)).unwrap_err();
        assert!(matches!(error, StateError::Corrupt { fault: Corrupt::LongWord(40), .. }));
    }

    #[test]
    fn a_long_value_of_another_length_is_refused() {
        let (mut nodes, root) = sample(&[0x5b; 100]);
        nodes.insert(keccak256([0x5b; 100]), Bytes::from_static(&[0x5b; 99]));
        let error = TrieState::new(nodes, root).code(&ADDRESS).unwrap_err();
        assert!(matches!(error, StateError::Corrupt { key: StateKey::Code(_), fault: Corrupt::Node(_) }));
    }

    #[test]
    fn data_with_the_right_hash_that_does_not_parse_is_corrupt() {
        let mut trie = Trie::new();
        trie.put(&account_key(&ADDRESS), Bytes::from_static(&[0xc1, 0x80]));
        let error = TrieState::new(stored(&trie), trie.root()).account(&ADDRESS).unwrap_err();
        let fault = Corrupt::Account(AccountError::Fields(1));
        assert_eq!(error, StateError::Corrupt { key: StateKey::Account(ADDRESS), fault });

        let junk = Bytes::from_static(b"no node");
        let root = keccak256(&junk);
        let state = TrieState::new(Nodes::from([(root, junk)]), root);
        let error = state.account(&ADDRESS).unwrap_err();
        assert!(matches!(error, StateError::Corrupt { fault: Corrupt::Node(_), .. }));
    }
}
