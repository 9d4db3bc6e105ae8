//! The call cache as the calls of one message use it: they read the values of earlier messages, and add values for later ones.

use alloc::sync::Arc;
use core::{cell::RefCell, fmt};

use alloy_primitives::{Address, B256, Bytes, U256};

use super::{call_cache::CallCache, fact_store::KnownFacts};
use crate::{
    exec::{CodeCache, ReadyCode},
    state::{AccountCache, ReadAccount},
};

/// The cached values for a message's calls.
pub(crate) struct MessageCallCache<'a> {
    known: KnownFacts<'a>,
    /// The values that the calls of this message have computed.
    new: RefCell<CallCache>,
}

impl<'a> MessageCallCache<'a> {
    pub(crate) fn new(known: KnownFacts<'a>) -> Self {
        Self { known, new: RefCell::default() }
    }

    /// The values that the calls of this message have computed.
    pub(crate) fn into_new(self) -> CallCache {
        self.new.into_inner()
    }
}

impl fmt::Debug for MessageCallCache<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageCallCache").finish_non_exhaustive()
    }
}

impl AccountCache for MessageCallCache<'_> {
    fn get(&self, root: &B256, address: &Address) -> Option<Arc<ReadAccount>> {
        let new = self.new.borrow().account(root, address);
        new.or_else(|| self.known.call_cache().into_iter().find_map(|known| known.account(root, address)))
    }

    fn keep(&self, root: B256, address: Address, account: ReadAccount) {
        self.new.borrow_mut().put_account(address, root, Arc::new(account));
    }

    fn slot(&self, node: &B256, slot: &U256) -> Option<Bytes> {
        let new = self.new.borrow().slot(node, slot);
        new.or_else(|| self.known.call_cache().into_iter().find_map(|known| known.slot(node, slot)))
    }

    fn keep_slot(&self, node: B256, slot: U256, value: Bytes) {
        self.new.borrow_mut().put_slot(node, slot, value);
    }
}

impl CodeCache for MessageCallCache<'_> {
    fn get(&self, hash: &B256) -> Option<ReadyCode> {
        let new = self.new.borrow().code(hash);
        new.or_else(|| self.known.call_cache().into_iter().find_map(|known| known.code(hash)))
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
        light::{FactCache, FactStore, call_cache::MAX_ACCOUNTS},
        state::{Account, CachedState, StateReader as _, TrieState, keys},
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
            let message_cache = MessageCallCache::new(KnownFacts::new(&own, cache));
            let known = AccountCache::get(&message_cache, &root, &Address::repeat_byte(number)).is_some();
            let state = CachedState::new(TrieState::new(&nodes, root), &message_cache);
            let account = state.account(&Address::repeat_byte(number)).unwrap().unwrap();
            assert_eq!(account.nonce, u64::from(number));
            (known, FactStore { call_cache: message_cache.into_new(), ..FactStore::default() })
        };
        for number in 0..=most {
            let (known, learned) = read(&cache, number);
            assert!(!known);
            cache.absorb(learned);
            assert!(read(&cache, number).0);
        }
        assert!(!read(&cache, 0).0 && read(&cache, 1).0 && read(&cache, most).0);
        let own = FactStore::default();
        let message_cache = MessageCallCache::new(KnownFacts::new(&own, &cache));
        assert!(AccountCache::get(&message_cache, &keccak256(root), &Address::repeat_byte(1)).is_none());
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
            let message_cache = MessageCallCache::new(KnownFacts::new(&own, &cache));
            let state = CachedState::new(TrieState::new(nodes, root), &message_cache);
            let value = state.account(&address).and_then(|_| state.storage(&address, &slot));
            let call_cache = message_cache.into_new();
            cache.absorb(FactStore { call_cache, ..FactStore::default() });
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
