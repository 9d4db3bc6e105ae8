//! Accounts, code and storage: their keys and values in the state trie, reads from a trie of which only
//! proven parts are available, and the changes of a block.

mod access;
mod account;
mod cached_state;
mod changed_state;
mod fact;
pub mod keys;
mod overrides;
mod read_account;
mod reader;
mod recording_state;
mod storage_walk;
mod trie_reader;
mod trie_state;
mod world;
#[cfg(test)]
mod world_test;

pub use access::{Access, AccessKey, Touches};
pub use account::{Account, AccountError};
pub use cached_state::CachedState;
pub use changed_state::ChangedState;
pub use fact::{Fact, Facts};
pub use overrides::{AccountOverride, OverriddenState, OverrideStorage, StateOverride};
pub use read_account::{AccountCache, ReadAccount};
pub use reader::{AccountState, Corrupt, StateError, StateKey, StateReader};
pub use recording_state::RecordingState;
pub use storage_walk::{StorageRange, storage_range, storage_words, storage_words_up_to};
pub use trie_reader::{KeyedTrie, LastKey};
pub use trie_state::TrieState;
pub use world::World;
