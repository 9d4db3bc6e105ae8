//! The memory of what calls have computed, as the calls of one message use it.

use alloc::sync::Arc;
use core::{cell::RefCell, fmt};

use alloy_primitives::{Address, B256, Bytes, U256};

use super::{derived::Derived, store::Known};
use crate::{
    exec::{CodeCache, ReadyCode},
    state::{ReadAccount, ReadAccounts},
};

/// What a message's calls find, and what they add for later ones.
pub(crate) struct Deriving<'a> {
    known: Known<'a>,
    new: RefCell<Derived>,
}

impl<'a> Deriving<'a> {
    pub(crate) fn new(known: Known<'a>) -> Self {
        Self { known, new: RefCell::default() }
    }

    pub(crate) fn into_new(self) -> Derived {
        self.new.into_inner()
    }
}

impl fmt::Debug for Deriving<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deriving").finish_non_exhaustive()
    }
}

impl ReadAccounts for Deriving<'_> {
    fn get(&self, root: &B256, address: &Address) -> Option<Arc<ReadAccount>> {
        let new = self.new.borrow().account(root, address);
        new.or_else(|| self.known.derived().into_iter().find_map(|known| known.account(root, address)))
    }

    fn keep(&self, root: B256, address: Address, account: ReadAccount) {
        self.new.borrow_mut().put(address, root, Arc::new(account));
    }

    fn slot(&self, node: &B256, slot: &U256) -> Option<Bytes> {
        let new = self.new.borrow().slot(node, slot);
        new.or_else(|| self.known.derived().into_iter().find_map(|known| known.slot(node, slot)))
    }

    fn keep_slot(&self, node: B256, slot: U256, value: Bytes) {
        self.new.borrow_mut().put_slot(node, slot, value);
    }
}

impl CodeCache for Deriving<'_> {
    fn get(&self, hash: &B256) -> Option<ReadyCode> {
        let new = self.new.borrow().code(hash);
        new.or_else(|| self.known.derived().into_iter().find_map(|known| known.code(hash)))
    }

    fn keep(&self, hash: B256, code: ReadyCode) {
        self.new.borrow_mut().put_code(hash, code);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use alloy_primitives::{Bytes, keccak256};

    use super::*;
    use crate::{
        light::{FactCache, FactStore, derived::MAX_ACCOUNTS},
        state::{Account, RememberedState, StateReader as _, TrieState, keys},
        trie::{ProvenNodes, Trie, connected},
    };

    /// The nodes and the root of a state with `count` accounts.
    fn state(count: u8) -> (ProvenNodes, B256) {
        let mut trie = Trie::new();
        for number in 0..count {
            let account = Account { nonce: number.into(), ..Account::default() };
            trie.put(&keys::account_key(&Address::repeat_byte(number)), account.encode());
        }
        let mut nodes = Vec::new();
        trie.for_each_stored(&mut |_, bytes| nodes.push(bytes));
        (connected(trie.root(), &nodes, &[] as &[Bytes]).unwrap(), trie.root())
    }

    #[test]
    fn accounts_are_found_by_later_messages_and_the_oldest_are_dropped() {
        let most = u8::try_from(MAX_ACCOUNTS).unwrap();
        let (nodes, root) = state(most + 1);
        let mut cache = FactCache::new();
        let read = |cache: &FactCache, number: u8| {
            let own = FactStore::default();
            let deriving = Deriving::new(Known::new(&own, cache));
            let known = ReadAccounts::get(&deriving, &root, &Address::repeat_byte(number)).is_some();
            let state = RememberedState::new(TrieState::new(&nodes, root), &deriving);
            let account = state.account(&Address::repeat_byte(number)).unwrap().unwrap();
            assert_eq!(account.nonce, u64::from(number));
            (known, FactStore { derived: deriving.into_new(), ..FactStore::default() })
        };
        for number in 0..=most {
            let (known, learned) = read(&cache, number);
            assert!(!known);
            cache.absorb(learned);
            assert!(read(&cache, number).0);
        }
        assert!(!read(&cache, 0).0 && read(&cache, 1).0 && read(&cache, most).0);
        let own = FactStore::default();
        let deriving = Deriving::new(Known::new(&own, &cache));
        assert!(ReadAccounts::get(&deriving, &keccak256(root), &Address::repeat_byte(1)).is_none());
    }

    #[test]
    fn slots_are_found_by_later_messages_without_the_nodes() {
        let (address, slot) = (Address::repeat_byte(1), U256::from(7));
        let state = |value: u8| {
            let mut trie = Trie::new();
            trie.put(&keys::account_key(&address), Account::default().encode());
            trie.put(&keys::storage_root_key(&address), alloc::vec![1]);
            trie.put(&keys::slot_key(&address, &slot), alloc::vec![value; 32]);
            trie.put(&keys::slot_key(&address, &U256::ZERO), alloc::vec![9; 32]);
            let mut nodes = Vec::new();
            trie.for_each_stored(&mut |_, bytes| nodes.push(bytes));
            (connected(trie.root(), &nodes, &[] as &[Bytes]).unwrap(), trie.root())
        };
        let mut cache = FactCache::new();
        let mut read = |nodes: &ProvenNodes, root: B256| {
            let own = FactStore::default();
            let deriving = Deriving::new(Known::new(&own, &cache));
            let state = RememberedState::new(TrieState::new(nodes, root), &deriving);
            let value = state.account(&address).and_then(|_| state.storage(&address, &slot));
            let derived = deriving.into_new();
            cache.absorb(FactStore { derived, ..FactStore::default() });
            value.map(|value| value.to_vec()).ok()
        };
        let (nodes, root) = state(5);
        assert_eq!(read(&nodes, root), Some(alloc::vec![5; 32]));
        assert_eq!(read(&ProvenNodes::new(), root), Some(alloc::vec![5; 32]));
        let (nodes, root) = state(6);
        assert_eq!(read(&ProvenNodes::new(), root), None, "nothing is known of another state");
        assert_eq!(read(&nodes, root), Some(alloc::vec![6; 32]));
    }
}
