//! Proofs and witnesses beside a full node that does not serve them: `rootlight sidecar`.
//!
//! The sidecar is a light client whose only upstream is the node, which belongs to the operator: it follows the node's chain from a block
//! that the node names. State is read from the files of the node's trie; every node of the trie is checked against its hash. Requests
//! that need no state are passed on to the node.
//!
//! | file | contents |
//! |---|---|
//! | `service`, `state`, `start` | [`SidecarService`]; what its tasks share; the requests to the node at the start |
//! | `node_store`, `provable`, `flush` | the node's files; the newest block whose state they have; making the node write them |
//! | `limited_node` | limits of callers' requests to the node |
//! | `peer_chain` | the node's chain for peers |

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
