//! The hashes and headers of ancestors that a local call can read: by BLOCKHASH, and by the native contract for block headers.

use alloc::vec::Vec;

use alloy_primitives::{B256, U256};

use crate::types::{Header, SealedHeader};

/// The blocks before the one in which a call runs, on its branch. `None` means that the data are not
/// available.
pub trait BlockHashes {
    /// Hash of the block at a height.
    fn block_hash(&self, number: u64) -> Option<B256>;

    /// Header of the block at a height.
    fn header(&self, _number: u64) -> Option<SealedHeader> {
        None
    }

    /// Uncles of the block at a height.
    fn uncles(&self, _number: u64) -> Option<Vec<Header>> {
        None
    }

    /// Total difficulty of the chain, uncles included, up to the block at a height.
    fn total_difficulty(&self, _number: u64) -> Option<U256> {
        None
    }
}
