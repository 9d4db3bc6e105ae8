//! Bitcoin as far as merged mining needs it: double SHA-256, block header fields, a hash continued from a midstate, and
//! the shape of a 64-byte transaction.

mod hash;
mod header;
mod network;
mod target;
mod transaction_shape;

pub(super) use hash::sha256_of_hash;
pub use hash::{
    HEADER_LEN, double_sha256, hash_number, hash_pair, reversed, sha256_from_midstate, sha256_midstate,
};
pub use header::{BitcoinHeader, HashedHeader};
pub use network::{BitcoinCheckpoint, BitcoinNetwork};
pub use target::{bits_of, target_of, work_of_target};
pub use transaction_shape::looks_like_transaction;
