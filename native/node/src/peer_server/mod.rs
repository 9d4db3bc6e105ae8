//! A server for the nodes of Rootstock's peer-to-peer network.
//!
//! | file | contents |
//! |---|---|
//! | `serve`, `seats`, `scheduler`, `respond` | connections, whose request is answered next, responses |
//! | `chain`, `local_chain` | what the server reads, and the chain that is executed here |
//! | `submit` | transactions of peers |

mod chain;
mod local_chain;
mod respond;
mod scheduler;
mod seats;
mod serve;
mod submit;

pub(crate) use scheduler::wait_without_permit;
pub(crate) use submit::Submitter;

pub use chain::{MAX_PENDING, PeerChain, PeerHead, ServedBlock, SharedChain, TakeBlock};
pub use local_chain::LocalChain;
pub use respond::respond;
pub use serve::PeerServer;
