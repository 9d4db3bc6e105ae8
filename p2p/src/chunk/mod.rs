//! State chunks of the snapshot service: proven by the receiver, made by the server, and searched for keys.
//!
//! | file | contents |
//! |---|---|
//! | `proven` | [`prove`]: the nodes and long values of a chunk, under a state root |
//! | `encoded`, `pieces`, `position` | its parts: the form of nodes in chunks, serializations by hash, offsets |
//! | `serve` | chunks from a node store |
//! | `extent` | the order of a trie's bytes, which offsets refer to |
//! | `limits`, `error` | limits, errors |

mod encoded;
mod error;
mod extent;
pub mod limits;
mod pieces;
mod position;
mod proven;
pub mod serve;

pub use error::{ChunkError, EncodingRule};
pub use proven::{ProvenChunk, prove};
