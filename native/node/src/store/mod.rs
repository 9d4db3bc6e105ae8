//! An executed chain on disk: blocks, receipts and the trie nodes of states, in one redb file.
//!
//! All changes of one message are one database transaction, trie nodes included. After a crash the chain is
//! therefore as it was after some complete message. A node is written once and shared by all states; nothing
//! is removed.
//!
//! | file | contents |
//! |---|---|
//! | `persist` | [`ChainPersistence`]: stores the changes of a chain in memory, and restores it |
//! | `database`, `append`, `tables` | [`ChainStore`]: reads; writes; the tables |
//! | `log_index` | [`StoredIndex`]: the index of logs |

mod append;
mod database;
mod error;
mod log_index;
mod persist;
mod tables;

pub use append::StatesToWrite;
pub use database::{ChainStore, OpenStore, StateRoots, StoredBlock, StoredNodes};
pub use error::ChainStoreError;
pub use log_index::StoredIndex;
#[cfg(test)]
pub(crate) use log_index::{INDEX, STATE};
pub use persist::{ChainPersistence, RestoreError};
#[cfg(test)]
pub(crate) use tables::META;
