//! Rootstock's peer-to-peer network: its nodes as upstreams of a light client.
//!
//! The crate `rootlight-p2p` has the protocol; this module provides sockets, time and randomness. As with any upstream, the
//! core verifies every answer of a peer.
//!
//! | file | contents |
//! |---|---|
//! | `link`, `connection` | one connection: its handle, and the task that owns the socket |
//! | `share`, `negative_cache` | a caller's share of the messages that a peer reads; what a peer said nothing about |
//! | `node`, `address` | a node that is dialled again and again, and where it is |
//! | `upstream`, `answer` | a node as an upstream: the core's requests, answered with what the node sends |
//! | `find` | nodes that the operator did not name: discovery, the list of nodes, slots that take one after another |
//! | `message`, `block`, `stretch`, `body`, `state` | responses of a node: headers by number and hash, many of them, bodies of blocks, keys of states by chunks |

mod address;
mod answer;
mod block;
mod body;
mod connection;
mod error;
pub mod find;
mod link;
mod message;
mod negative_cache;
mod node;
mod share;
mod state;
mod stretch;
mod upstream;

pub use connection::{LONGEST_UNASKED, PeerHandler, PeerRequest, PeerResponse};
pub use link::PeerLink;

pub use address::{PeerAddress, PeerAddressError};
pub use error::PeerError;
pub use node::{Identity, IdentityError, PeerNode, Reach};
pub use state::StateNodes;
pub use upstream::PeerUpstream;
