//! Compares responses with what was asked for: pure functions, without the chain of headers.
//!
//! | function | proves |
//! |---|---|
//! | [`headers`] | a descending chain of headers that starts at the requested hash |
//! | [`block`], [`body`] | transactions, uncles and extension to which the header with a known hash commits |
//! | [`snap_blocks`], [`snap_status`] | an ascending chain of blocks, with the growth of the total difficulty |
//! | [`skeleton`] | only the shape: nothing commits to hashes at heights |
//!
//! None of them proves that a header is on the best chain: that takes its proof of work and the chain of headers, to
//! which [`PeerHeader`] and [`CheckedBlock`] lead.

mod block;
mod chain;
mod error;
mod header;

pub use block::{CheckedBlock, block, body};
pub use chain::{headers, skeleton, snap_blocks, snap_status};
pub use error::CheckError;
pub use header::PeerHeader;
