//! Rootstock's peer-to-peer network: its nodes as upstreams of a light client, and a server for its nodes.
//!
//! The crate `rootlight-p2p` has the protocol; this module provides sockets, time and randomness. As with any upstream, the
//! core verifies every answer of a peer.
//!
//! | file | contents |
//! |---|---|
//! | `link`, `connection` | one connection: its handle, and the task that owns the socket |
//! | `places`, `lacks` | whose question a peer is asked next; what a peer said nothing about |
//! | `node`, `address` | a node that is dialled again and again, and where it is |
//! | `upstream`, `answer` | a node as an upstream: the core's requests, answered with what the node sends |
//! | `find` | nodes that nobody named: discovery, the list of nodes, slots that take one after another |
//! | `message`, `block`, `stretch`, `body`, `state` | responses of a node: headers by number and hash, many of them, bodies of blocks, keys of states by chunks |
//! | `serve`, `seats`, `answering`, `respond` | a server for peers: its connections, whose request is answered next, responses |
//! | `chain`, `local_chain` | what the server reads, and the chain that is executed here |
//! | `submit` | transactions of peers |

mod address;
mod answer;
mod answering;
mod block;
mod body;
mod chain;
mod connection;
mod error;
pub mod find;
mod lacks;
mod link;
mod local_chain;
mod message;
mod node;
pub(crate) mod places;
mod respond;
mod seats;
mod serve;
mod state;
mod stretch;
mod submit;
mod upstream;

pub(crate) use answering::wait_out_of_turn;

pub(crate) use connection::{Answer, Asked, Host, LONGEST_UNASKED};
pub(crate) use link::Link;

pub use address::{PeerAddress, PeerAddressError};
pub use chain::{MAX_PENDING, PeerChain, ServedBlock, ServedHead, SharedChain, TakeBlock};
pub use error::PeerError;
pub use local_chain::LocalChain;
pub use node::{Identity, IdentityError, PeerNode, Reach};
pub use respond::respond;
pub use serve::PeerServer;
pub use state::StateNodes;
pub(crate) use submit::Submitter;
pub use upstream::PeerUpstream;
