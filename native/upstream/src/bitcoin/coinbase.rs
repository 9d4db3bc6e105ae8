//! Coinbase transactions as sources send them.

use rootlight::consensus::bitcoin::{CoinbaseProofBuf, reversed};
use rootlight::types::B256;

/// The coinbase of a Bitcoin block as a source gives it. Nothing in it is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCoinbase {
    /// Height for which it was asked.
    pub height: u32,
    /// The transaction, whole or cut, and its branch.
    pub proof: CoinbaseProofBuf,
}

impl RawCoinbase {
    /// A whole transaction, which may have witness data, and the siblings on the way from the left-most leaf of the block's Merkle
    /// tree to the root, in internal byte order.
    pub(super) fn whole(height: u32, transaction: Vec<u8>, branch: &[B256]) -> Self {
        let branch = branch.iter().flat_map(|sibling| reversed(sibling).0).collect();
        Self { height, proof: CoinbaseProofBuf { is_cut: false, coinbase: transaction, branch } }
    }
}
