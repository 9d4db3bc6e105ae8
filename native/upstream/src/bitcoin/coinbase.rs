//! Coinbase transactions of Bitcoin blocks as sources send them. A coinbase can have a tag that names a Rootstock block; the core
//! checks the transaction and its Merkle branch.

use rootlight::consensus::bitcoin::{CoinbaseProofBuf, reversed};
use rootlight::types::B256;

/// The coinbase transaction of a Bitcoin block as a source sends it. Nothing in it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCoinbase {
    /// Height of the block for which the coinbase was requested.
    pub height: u32,
    /// The transaction, whole or as the midstate of its hash with its end, and its Merkle branch.
    pub proof: CoinbaseProofBuf,
}

impl RawCoinbase {
    /// A whole transaction, which may have witness data, and the siblings on the way from the left-most leaf of the block's Merkle
    /// tree to the root, in internal byte order.
    pub(super) fn whole(height: u32, transaction: Vec<u8>, branch: &[B256]) -> Self {
        // A proof has its siblings in display order.
        let branch = branch.iter().flat_map(|sibling| reversed(sibling).0).collect();
        Self { height, proof: CoinbaseProofBuf { is_cut: false, coinbase: transaction, branch } }
    }
}
