//! Headers, uncles, transactions, receipts and logs: their fields, RLP, hashes and JSON.
//!
//! This layer knows no network and no height: callers pass the header layout as a [`HeaderShape`] and chain
//! ids as numbers. Decoding is strict: every decoder accepts only the bytes that its encoder would write.

mod asker;
pub mod block;
mod block_ref;
pub mod bloom;
pub mod error;
pub mod header;
mod header_decode;
mod header_encode;
pub mod json;
mod log;
pub mod number;
mod order;
pub mod receipt;
mod recovery;
pub mod rlp;
mod sender;
mod site;
pub mod transaction;

pub use alloy_primitives::{Address, B256, Bloom, Bytes, U256, keccak256};
pub use asker::{Asker, KEY_ASKERS};
pub use block::{Block, BlockBody, block_len, decode_uncles, encode_uncles, uncles_hash};
pub use block_ref::BlockRef;
pub use error::{FieldError, FieldRule};
pub use header::{
    EMPTY_UNCLES_HASH, FORK_DETECTION_LEN, Header, HeaderError, HeaderForm, HeaderHashes, HeaderShape,
    HeaderVersion, MERGED_MINING_TAG, SealedHeader,
};
pub use log::Log;
pub use number::{RawUint, SignedUint};
pub(crate) use order::insert_sorted;
pub use receipt::Receipt;
pub(crate) use recovery::HALF_ORDER;
pub(crate) use recovery::{RecoveryId, recover};
pub use sender::SenderError;
pub use site::site;
pub use transaction::{REMASC_ADDRESS, Transaction};
