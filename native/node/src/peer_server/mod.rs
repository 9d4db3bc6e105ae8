//! A server for the nodes of Rootstock's peer-to-peer network, which synchronize from this program's chain.
//!
//! | file | contents |
//! |---|---|
//! | `serve`, `seats` | connections, and which of them are replaced |
//! | `scheduler`, `respond` | the order and the memory of responses; their contents |
//! | `chain`, `local_chain` | the interface of a chain, and the chain that this program executes |
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
