//! Proofs and witnesses beside a full node that has none: `rootlight sidecar`.
//!
//! The node's chain is followed like that of any upstream, from a block that the node itself names: it belongs to the
//! operator. State comes from the files in which the node keeps its trie; every node of the trie is checked against its
//! hash. What needs no state is asked of the node.

mod error;
mod flush;
mod limited_node;
mod node_store;
mod peer_chain;
mod provable;
mod service;
mod start;
mod state;

pub use error::SidecarError;
pub use node_store::NodeStore;
pub use peer_chain::NodeChain;
pub use service::{SidecarOptions, SidecarService};
