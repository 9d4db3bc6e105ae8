//! State chunks of the snapshot service: a chunk is a range of a state trie's bytes, with the nodes that prove the range. This
//! module proves received chunks, makes chunks to serve, and searches keys by requesting chunks.
//!
//! | file | contents |
//! |---|---|
//! | `proven` | [`prove`]: the nodes and long values of a chunk, under a state root |
//! | `encoded`, `pieces`, `position` | parts of `proven`: the form of nodes in chunks, serializations by hash, offsets |
//! | `serve` | chunks from a node store |
//! | `seek` | [`Seek`]: which chunks to request for some keys |
//! | `walk`, `plan` | parts of `seek`: known nodes on a key's path, offsets that serve several keys |
//! | `extent` | the order of a trie's bytes, which offsets refer to |
//! | `limits`, `error` | limits, errors |

mod encoded;
mod error;
mod extent;
pub mod limits;
mod pieces;
mod plan;
mod position;
mod proven;
mod seek;
pub mod serve;
mod walk;

pub use error::{ChunkError, EncodingRule};
pub use proven::{ProvenChunk, prove};
pub use seek::{KeyAnswer, Seek, SeekError};
