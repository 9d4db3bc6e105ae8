//! A server for the nodes of Rootstock's peer-to-peer network.
//!
//! | file | contents |
//! |---|---|
//! | `serve`, `seats`, `answering`, `respond` | connections, whose request is answered next, responses |
//! | `chain`, `local_chain` | what the server reads, and the chain that is executed here |
//! | `submit` | transactions of peers |

mod answering;
mod chain;
mod local_chain;
mod respond;
mod seats;
mod serve;
mod submit;

pub(crate) use answering::wait_out_of_turn;
pub(crate) use submit::Submitter;

pub use chain::{MAX_PENDING, PeerChain, ServedBlock, ServedHead, SharedChain, TakeBlock};
pub use local_chain::LocalChain;
pub use respond::respond;
pub use serve::PeerServer;
