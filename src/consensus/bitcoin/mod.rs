//! The parts of Bitcoin that the checks of merged mining need, and a Bitcoin header chain, by which a light client tells when the
//! Bitcoin headers in Rootstock blocks were mined (`light::bitcoin`).
//!
//! | file | contents |
//! |---|---|
//! | `hash`, `header`, `transaction_shape` | double SHA-256, header fields, the shape of a 64-byte transaction |
//! | `target`, `network` | compact targets and their change; checkpoints and limits of Bitcoin's networks |
//! | `coinbase_proof`, `coinbase_buf` | a block's coinbase, proven, with the Rootstock tag in it; the proof that owns its bytes |
//! | `packed`, `stored`, `served` | headers packed for transport; the chain as a client stores it, and as it serves it to other programs |
//! | `chain`, `main_chain`, `branches`, `entry`, `block`, `error` | the header chain above a checkpoint |

#[cfg(test)]
mod attacks_test;
mod block;
mod branches;
mod chain;
#[cfg(test)]
mod chain_test;
mod coinbase_buf;
mod coinbase_proof;
#[cfg(test)]
pub(crate) mod coinbase_proof_test;
mod entry;
mod error;
mod hash;
mod header;
mod main_chain;
#[cfg(test)]
mod model_test;
mod network;
mod packed;
mod served;
mod stored;
#[cfg(test)]
mod stored_test;
mod target;
#[cfg(test)]
pub(crate) mod testing;
mod transaction_shape;

pub use block::{BitcoinBlock, BitcoinInserted};
pub use chain::{BitcoinChain, KEPT_BITCOIN_HEADERS, SERVED_BITCOIN_HEADERS};
pub use coinbase_buf::CoinbaseProofBuf;
pub use coinbase_proof::{
    CoinbaseBytes, CoinbaseProof, CoinbaseProofError, MAX_COINBASE_LEN, MIN_COINBASE_LEN, ProvenCoinbase, Tag,
};
pub use error::BitcoinChainError;
pub(super) use hash::sha256_of_hash;
pub use hash::{
    HEADER_LEN, double_sha256, hash_number, hash_pair, reversed, sha256_from_midstate, sha256_midstate,
};
pub use header::{BitcoinHeader, HashedHeader};
pub use network::{BitcoinCheckpoint, BitcoinNetwork};
pub use packed::{PackedHeaders, PackedHeadersError, pack_headers};
pub use served::ServedBitcoin;
pub use stored::StoredBitcoinError;
pub use target::{bits_of, target_of, work_of_target};
pub use transaction_shape::looks_like_transaction;
