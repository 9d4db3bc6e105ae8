//! Rootstock's peer-to-peer network: its nodes as upstreams of a light client.
//!
//! The crate `rootlight-p2p` has the protocol; this module provides sockets, time and randomness. As with any upstream, the
//! core verifies every answer of a peer. A peer is a node to which a connection is open or is being made.
//!
//! | file | contents |
//! |---|---|
//! | `upstream`, `answer` | a node as an upstream: answers the core's requests from messages of the node |
//! | `block`, `stretch`, `body`, `state` | headers by number and hash, many headers, bodies of blocks, parts of states |
//! | `message`, `error` | responses of a node, and why there is none |
//! | `node`, `address` | a node that is dialled again and again, and its address |
//! | `link`, `connection` | one connection: its handle, and the task that owns the socket |
//! | `share`, `negative_cache` | a caller's share of the messages that a peer reads; data about which a peer did not respond |
//! | `find` | nodes that the operator did not name: discovery, the list of found nodes, slots that use one after another |

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
