//! Nodes of Rootstock's peer-to-peer network as upstreams of a light client.
//!
//! The crate `rootlight-p2p` has the protocol; this module provides sockets, time and randomness, and answers the core's
//! requests with what a peer sends. As with any upstream, the core verifies every answer.

mod address;
mod answer;
mod block;
mod error;
mod link;
mod node;
mod state;
mod upstream;

pub use address::{PeerAddress, PeerAddressError};
pub use error::PeerError;
pub use node::{Identity, IdentityError, PeerNode};
pub use state::StateNodes;
pub use upstream::PeerUpstream;
