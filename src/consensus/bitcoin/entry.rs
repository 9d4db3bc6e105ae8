//! A header in memory, with the data that the Bitcoin header chain computes of it.

use core::cmp::Reverse;

use super::block::BitcoinBlock;
use super::hash::{HEADER_LEN, hash_number};
use super::header::BitcoinHeader;
use super::network::BitcoinCheckpoint;
use crate::types::{B256, U256};

/// Stands for "no block" where a height is stored.
pub(super) const NO_HEIGHT: u32 = u32::MAX;

/// A header that passed every check, or the checkpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) header: [u8; HEADER_LEN],
    pub(super) hash: B256,
    /// Sum of the work of the blocks above the checkpoint up to this block: the expected number of hashes.
    pub(super) work: U256,
    pub(super) height: u32,
    /// Height of the next lower block of the main chain whose hash falls into the same bucket (`MainChain`), or [`NO_HEIGHT`].
    pub(super) next_in_bucket: u32,
}

impl Entry {
    #[inline]
    pub(super) const fn new(header: [u8; HEADER_LEN], hash: B256, work: U256, height: u32) -> Self {
        Self { header, hash, work, height, next_in_bucket: NO_HEIGHT }
    }

    /// The checkpoint. Zeros take the place of its header, which is not available; so its time is below every other.
    pub(super) const fn checkpoint(checkpoint: &BitcoinCheckpoint) -> Self {
        Self::new([0; HEADER_LEN], checkpoint.hash, U256::ZERO, checkpoint.height)
    }

    #[inline]
    pub(super) fn fields(&self) -> BitcoinHeader<'_> {
        BitcoinHeader::from(&self.header)
    }

    pub(super) fn block(&self) -> BitcoinBlock {
        let fields = self.fields();
        BitcoinBlock { height: self.height, hash: self.hash, time: fields.time(), bits: fields.bits() }
    }

    /// The order of two chains by their newest blocks: more work is preferred; with the same work the lower hash, so that the order
    /// in which headers arrive does not matter.
    pub(super) fn weight(&self) -> (U256, Reverse<U256>) {
        (self.work, Reverse(hash_number(&self.hash)))
    }
}
