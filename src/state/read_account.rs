//! The cache of accounts and slots that were read before. Reads of a cached account, and of its storage, need not walk the trie from its
//! root; reads of a cached slot need no walk at all. `cached_state` reads through this cache, `light` implements it.

use alloc::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};

use super::keys::ACCOUNT_KEY_LEN;
use super::reader::AccountState;
use crate::trie::PathNode;

/// An account as the trie under a root has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAccount {
    pub(super) state: AccountState,
    /// Key of the account in the state trie.
    pub(super) key: [u8; ACCOUNT_KEY_LEN],
    /// The trie node of the account, above its code and storage. `None` if the node is embedded in its parent: then the account
    /// has neither, because embedded nodes have no children.
    pub(super) node: Option<PathNode>,
}

/// A cache of accounts and of their slots, which may drop any of them at any time.
pub trait AccountCache {
    /// The account as the state with this root has it.
    fn get(&self, root: &B256, address: &Address) -> Option<Arc<ReadAccount>>;

    /// Offers an account of the state with this root to the cache.
    fn keep(&self, root: B256, address: Address, account: ReadAccount);

    /// The value of a slot below the account's node with this hash. The hash commits to everything below the node, so the value
    /// is the same in every state that has the node.
    fn slot(&self, node: &B256, slot: &U256) -> Option<Bytes>;

    /// Offers the value of a slot below the node with this hash to the cache: at most 32 bytes, none if the slot is empty.
    fn keep_slot(&self, node: B256, slot: U256, value: Bytes);
}

/// Length of the longest value of a slot that is offered to the cache, in bytes: a word. Longer values, which only native contracts store,
/// are not cached.
pub(super) const MAX_WORD: usize = 32;
