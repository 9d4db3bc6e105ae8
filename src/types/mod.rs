//! Headers, uncles, transactions, receipts and logs: their fields, RLP, hashes and JSON.
//!
//! This layer knows no network and no height: callers pass the header layout as a [`HeaderShape`] and chain
//! ids as numbers. Decoding is strict: every decoder accepts only the bytes that its encoder would write.

pub mod block;
pub mod bloom;
pub mod error;
pub mod header;
mod header_decode;
mod header_encode;
pub mod json;
mod log;
pub mod number;
pub mod receipt;
pub mod rlp;
mod sender;
mod sorted;
pub mod transaction;

pub use alloy_primitives::{keccak256, Address, Bloom, Bytes, B256, U256};
pub use block::{uncles_hash, Block, BlockBody, EMPTY_UNCLES_HASH};
pub use error::{FieldError, FieldRule};
pub use header::{
    Header, HeaderError, HeaderForm, HeaderHashes, HeaderShape, HeaderVersion, SealedHeader,
    FORK_DETECTION_LEN, MERGED_MINING_TAG,
};
pub use log::Log;
pub use number::{RawUint, SignedUint};
pub use receipt::Receipt;
pub use sender::SenderError;
pub(crate) use sorted::sorted;
pub use transaction::{Transaction, REMASC_ADDRESS};
