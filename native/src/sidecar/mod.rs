//! Proofs and witnesses beside a full node that has none: `rootlight sidecar`.
//!
//! The node's chain is followed like that of any upstream, from a block that the node itself names: it belongs to the
//! operator. State comes from the files in which the node keeps its trie; every node of the trie is checked against its
//! hash. What needs no state is asked of the node.

mod error;
mod flush;
mod parts;
mod peer_chain;
mod provable;
mod service;
mod shared_node;
mod start;

use rootlight::trie::TrieStore;

pub use error::SidecarError;
pub use peer_chain::NodeChain;
pub use service::{SidecarOptions, SidecarService};

/// The trie nodes of a full node that goes on writing them.
pub trait NodeStore: TrieStore + 'static {
    /// Makes readable what the node has written since the last call.
    ///
    /// # Errors
    /// The database's error message. What was readable before can still be read.
    fn catch_up(&self) -> Result<(), String>;

    /// A number that changes when there is more to read.
    fn version(&self) -> u64;
}
