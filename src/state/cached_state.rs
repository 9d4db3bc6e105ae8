//! A state that reads accounts and slots from a cache, which later runs use again, before it reads the trie.

use alloy_primitives::{Address, Bytes, U256};

use super::read_account::{AccountCache, MAX_WORD, ReadAccount};
use super::reader::{AccountState, StateError, StateReader};
use super::trie_state::TrieState;
use crate::trie::{NodeSource, PathNode};

/// A [`TrieState`] with a cache of accounts and slots. Reads give the same results as without the cache.
pub struct CachedState<'a, S> {
    state: TrieState<S>,
    accounts: &'a dyn AccountCache,
}

impl<'a, S: NodeSource> CachedState<'a, S> {
    /// Reads this state through a cache.
    pub fn new(state: TrieState<S>, accounts: &'a dyn AccountCache) -> Self {
        Self { state, accounts }
    }

    /// A slot of an account that is in the cache.
    fn slot(&self, account: &ReadAccount, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        let node = account.node.as_ref().map(PathNode::hash);
        if let Some(known) = node.and_then(|node| self.accounts.slot(&node, slot)) {
            return Ok(known);
        }
        let value = self.state.storage_of(account, address, slot)?;
        if let Some(node) = node.filter(|_| value.len() <= MAX_WORD) {
            self.accounts.keep_slot(node, *slot, value.clone());
        }
        Ok(value)
    }
}

impl<S: NodeSource> StateReader for CachedState<'_, S> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        let root = self.state.root();
        if let Some(known) = self.accounts.get(&root, address) {
            return Ok(Some(known.state));
        }
        let Some(account) = self.state.read_account(address)? else { return Ok(None) };
        let state = account.state;
        self.accounts.keep(root, *address, account);
        Ok(Some(state))
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        self.state.is_contract(address)
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        match self.accounts.get(&self.state.root(), address) {
            Some(account) => self.slot(&account, address, slot),
            None => self.state.storage(address, slot),
        }
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        self.state.code(address)
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::sync::Arc;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    use alloy_primitives::B256;

    use super::*;
    use crate::state::Account;
    use crate::state::keys::{account_key, code_key, slot_key, storage_root_key};
    use crate::trie::Trie;

    type Nodes = BTreeMap<B256, Bytes>;

    #[derive(Default)]
    struct TestCache(
        RefCell<BTreeMap<(B256, Address), Arc<ReadAccount>>>,
        RefCell<BTreeMap<(B256, U256), Bytes>>,
    );

    impl AccountCache for TestCache {
        fn get(&self, root: &B256, address: &Address) -> Option<Arc<ReadAccount>> {
            self.0.borrow().get(&(*root, *address)).cloned()
        }

        fn keep(&self, root: B256, address: Address, account: ReadAccount) {
            self.0.borrow_mut().insert((root, address), Arc::new(account));
        }

        fn slot(&self, node: &B256, slot: &U256) -> Option<Bytes> {
            self.1.borrow().get(&(*node, *slot)).cloned()
        }

        fn keep_slot(&self, node: B256, slot: U256, value: Bytes) {
            assert!(value.len() <= MAX_WORD);
            self.1.borrow_mut().insert((node, slot), value);
        }
    }

    /// A state of several contracts and plain accounts, of which the first has this balance. The values of slots depend on it
    /// too.
    fn sample(balance: u64) -> (Nodes, B256) {
        let mut trie = Trie::new();
        let mark = u8::try_from(balance).unwrap();
        for number in 0..12u8 {
            let (address, balance) = (Address::repeat_byte(number), U256::from(balance + u64::from(number)));
            trie.put(&account_key(&address), Account { nonce: 1, balance, ..Account::default() }.encode());
            if number % 2 == 0 {
                trie.put(&storage_root_key(&address), alloc::vec![1]);
                trie.put(&code_key(&address), alloc::vec![number; 1 + 9 * usize::from(number)]);
                for slot in 0..u64::from(number) {
                    let value = alloc::vec![number ^ mark; 1 + 5 * usize::try_from(slot).unwrap()];
                    trie.put(&slot_key(&address, &U256::from(slot)), value);
                }
            }
        }
        let mut nodes = Nodes::new();
        trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));
        (nodes, trie.root())
    }

    /// Everything that can be read of a few accounts.
    fn reads(state: &dyn StateReader) -> Vec<alloc::string::String> {
        let mut all = Vec::new();
        for number in [0, 1, 2, 10, 11, 77] {
            let address = Address::repeat_byte(number);
            // A slot is read before the account, and after it.
            for slot in [0, 1, 9, u64::MAX] {
                all.push(alloc::format!("{:?}", state.storage(&address, &U256::from(slot))));
                all.push(alloc::format!("{:?}", state.account(&address)));
                all.push(alloc::format!("{:?}", state.storage_word(&address, &U256::from(slot))));
            }
            all.push(alloc::format!("{:?} {:?}", state.code(&address), state.is_contract(&address)));
        }
        all
    }

    #[test]
    fn a_memory_of_accounts_changes_no_answer_whatever_is_missing() {
        let states = [sample(5), sample(6)];
        assert_ne!(states[0].1, states[1].1);
        let all: Vec<B256> = states.iter().flat_map(|(nodes, _)| nodes.keys().copied()).collect();
        let cache = TestCache::default();
        for lost in all.iter().map(Some).chain([None]) {
            for (nodes, root) in &states {
                let mut nodes = nodes.clone();
                lost.map(|hash| nodes.remove(hash));
                let plain = TrieState::new(&nodes, *root);
                // An empty cache, and with all nodes also one that both states share.
                let own = TestCache::default();
                let expected = reads(&plain);
                assert_eq!(reads(&CachedState::new(plain, &own)), expected, "{lost:?}");
                if lost.is_none() {
                    for _ in 0..2 {
                        assert_eq!(reads(&CachedState::new(plain, &cache)), expected);
                    }
                }
            }
        }
        assert_eq!(cache.0.borrow().len(), 10, "absent accounts are not kept");
        // Four slots of accounts 0, 2 and 10 are read, whose nodes are stored; slot 9 of account 10 has 46 bytes.
        assert_eq!(cache.1.borrow().len(), 2 * (4 + 4 + 3), "long values are not kept");
    }
}
