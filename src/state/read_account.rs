//! Accounts that were read before: reads of the same account, and of its storage, need not walk the trie from its root.

use alloc::sync::Arc;

use alloy_primitives::{Address, B256};

use super::keys::ACCOUNT_KEY_LEN;
use super::reader::AccountState;
use crate::trie::Waypoint;

/// An account as the trie under a root has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAccount {
    pub(super) state: AccountState,
    pub(super) key: [u8; ACCOUNT_KEY_LEN],
    /// The account's node, which its code and storage are below. `None` if it is embedded in its parent: then the account
    /// has neither.
    pub(super) node: Option<Waypoint>,
}

/// A memory of accounts, which may forget any of them at any time.
pub trait ReadAccounts {
    /// The account as the state with this root has it.
    fn get(&self, root: &B256, address: &Address) -> Option<Arc<ReadAccount>>;

    /// Offers an account of the state with this root.
    fn keep(&self, root: B256, address: Address, account: ReadAccount);
}
