//! Rootstock's peer-to-peer network: its nodes as upstreams of a light client, and a server for its nodes.
//!
//! The crate `rootlight-p2p` has the protocol; this module provides sockets, time and randomness. As with any upstream, the
//! core verifies every answer of a peer.
//!
//! | file | contents |
//! |---|---|
//! | `link` | one connection |
//! | `node`, `address` | a node that is dialled again and again, and where it is |
//! | `upstream`, `answer` | a node as an upstream: the core's requests, answered with what the node sends |
//! | `find` | nodes that nobody named: discovery, the list of nodes, slots that take one after another |
//! | `block`, `stretch`, `state` | blocks of a node; many headers of it; keys of states by chunks |
//! | `serve`, `respond` | a server for peers, and its responses |
//! | `chain`, `local_chain` | what the server reads, and the chain that is executed here |
//! | `submit` | transactions of peers |

mod address;
mod answer;
mod block;
mod chain;
mod error;
pub mod find;
mod link;
mod local_chain;
mod node;
mod respond;
mod serve;
mod state;
mod stretch;
mod submit;
mod upstream;

pub use address::{PeerAddress, PeerAddressError};
pub use chain::{MAX_PENDING, PeerChain, ServedBlock, ServedHead, SharedChain};
pub use error::PeerError;
pub use local_chain::LocalChain;
pub use node::{Identity, IdentityError, PeerNode, Reach};
pub use respond::respond;
pub use serve::PeerServer;
pub use state::StateNodes;
pub(crate) use submit::Submitter;
pub use upstream::PeerUpstream;
