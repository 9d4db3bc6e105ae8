//! Accounts and slots that were read before: reads of the same account, and of its storage, need not walk the trie from its
//! root, and those of the same slot not at all.

use alloc::sync::Arc;

use alloy_primitives::{Address, B256, Bytes, U256};

use super::keys::ACCOUNT_KEY_LEN;
use super::reader::AccountState;
use crate::trie::PathNode;

/// An account as the trie under a root has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAccount {
    pub(super) state: AccountState,
    pub(super) key: [u8; ACCOUNT_KEY_LEN],
    /// The account's node, which its code and storage are below. `None` if it is embedded in its parent: then the account
    /// has neither.
    pub(super) node: Option<PathNode>,
}

/// A memory of accounts and of their slots, which may forget any of them at any time.
pub trait AccountCache {
    /// The account as the state with this root has it.
    fn get(&self, root: &B256, address: &Address) -> Option<Arc<ReadAccount>>;

    /// Offers an account of the state with this root.
    fn keep(&self, root: B256, address: Address, account: ReadAccount);

    /// The value of a slot below the account's node with this hash. What is below a node depends on nothing but its hash, so
    /// that it is the same for every state that has the node.
    fn slot(&self, node: &B256, slot: &U256) -> Option<Bytes>;

    /// Offers the value of a slot below the node with this hash: at most 32 bytes, none if the slot is empty.
    fn keep_slot(&self, node: B256, slot: U256, value: Bytes);
}

/// Bytes of the longest value of a slot that is offered to a memory. Longer ones are those of contracts of Rootstock's own.
pub(super) const MAX_WORD: usize = 32;
