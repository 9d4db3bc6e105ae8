//! Accounts, code and storage: how they lie in the state trie, and how to read them from a trie of
//! which only proven parts are at hand.

mod account;
pub mod keys;
mod overrides;
mod reader;
mod storage_walk;
mod trie_state;

pub use account::{Account, AccountError};
pub use overrides::{AccountOverride, OverriddenState, OverrideStorage, StateOverride};
pub use reader::{AccountState, Corrupt, StateError, StateKey, StateReader};
pub use storage_walk::storage_words;
pub use trie_state::TrieState;
