//! Accounts, code and storage: their keys and values in the state trie, reads from a trie of which only
//! proven parts are available, and the changes of a block.
//!
//! | file | contents |
//! |---|---|
//! | `keys`, `account` | keys of the state trie, and the value of an account |
//! | `reader` | `StateReader`, how all code reads a state, and the pieces of state that may be missing |
//! | `trie_state`, `cached_state`, `read_account` | a state from a trie of which nodes may be missing, without and with a cache |
//! | `trie_reader`, `storage_walk` | a state from a complete trie, and the storage of an account |
//! | `overrides`, `changed_state`, `recording_state` | states over another one: with overrides, with changes, with a record of the reads |
//! | `world`, `access` | the changes of a block's transactions, and which keys they read and touch |
//! | `fact` | the pieces of data that a light client fetches and proves |

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
