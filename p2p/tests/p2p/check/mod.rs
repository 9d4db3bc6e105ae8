//! Compares recorded and hostile responses with what was asked for. The program leaves this to the checks of the light client,
//! which compare facts with headers.
//!
//! | function | proves |
//! |---|---|
//! | [`headers`] | a descending chain of headers that starts at the requested hash |
//! | [`block`], [`body`] | transactions, uncles and extension to which the header with a known hash commits |
//! | [`snap_blocks`], [`snap_status`] | an ascending chain of blocks, with the growth of the total difficulty |
//! | [`skeleton`] | only the shape: nothing commits to hashes at heights |

mod block;
mod chain;
mod error;
mod header;

pub(crate) use block::{CheckedBlock, block, body};
pub(crate) use chain::{headers, skeleton, snap_blocks, snap_status};
pub(crate) use error::CheckError;
pub(crate) use header::PeerHeader;
