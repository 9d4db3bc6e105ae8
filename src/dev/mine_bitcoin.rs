//! Bitcoin blocks that are mined on request on the simulated Bitcoin chain ([`super::SimulatedBitcoin`]), for tests of light clients. Their
//! coinbases have tags of the requested kind ([`BitcoinTag`]).

use alloy_primitives::{B256, keccak256};

use super::bitcoin_chain::{BitcoinBlocks, BitcoinTag, BitcoinTip, MAX_BITCOIN_BLOCKS};
use super::chain::DevChain;
use super::error::DevError;
use crate::types::FORK_DETECTION_LEN;

/// Bytes of the tag that identify a block; the others are fork-detection data (RSKIP-110).
const TAG_HASH_LEN: usize = 20;

/// Bytes of the commit-to-parents vector at the start of the fork-detection data. Each byte is of the hash of an ancestor.
const CPV_LEN: usize = 7;

/// By how much the block number in a tag of [`BitcoinTag::Ahead`] exceeds that of the next block.
const AHEAD: u32 = 1_000;

impl DevChain {
    /// Mines Bitcoin blocks with tags of one kind on the Bitcoin block of height `parent`, or on the newest one. `now` is the
    /// host's time in seconds since 1970.
    ///
    /// # Errors
    /// [`DevError::Bitcoin`].
    pub fn mine_bitcoin(
        &mut self,
        count: u64,
        tag: BitcoinTag,
        parent: Option<u32>,
        now: u64,
    ) -> Result<BitcoinTip, DevError> {
        let refused = |reason: &str| DevError::Bitcoin(reason.into());
        let bitcoin = self.bitcoin.as_ref();
        let bitcoin =
            bitcoin.ok_or_else(|| refused("there is no Bitcoin chain: start with --bitcoin-chain"))?;
        if count == 0 || count > MAX_BITCOIN_BLOCKS {
            return Err(refused("from 1 to 2,016 Bitcoin blocks can be mined at once"));
        }
        let time = self.clock.block_time(self.chain.head().timestamp, now);
        // The Bitcoin header differs in each request, so the hashes in the tags do too.
        let seed = bitcoin.next(&B256::ZERO, time).header;
        let commitments = (0..count).map(|index| self.tagged(tag, &seed, index)).collect();
        bitcoin.mine(&BitcoinBlocks { commitments, parent, time }).map_err(DevError::Bitcoin)
    }

    /// The hash after a tag of this kind, in the block with this index of the request; `None` for a coinbase without a tag.
    fn tagged(&self, tag: BitcoinTag, seed: &[u8], index: u64) -> Option<B256> {
        let mut data = self.fork_detection();
        match tag {
            BitcoinTag::None => return None,
            BitcoinTag::Own => return self.chain.head().hash_for_merged_mining().ok(),
            BitcoinTag::Kin => {}
            BitcoinTag::Foreign => data.iter_mut().take(CPV_LEN).for_each(|byte| *byte = !*byte),
            BitcoinTag::Ahead => {
                // The fork-detection data ends with the block number.
                if let Some(number) = data.last_chunk_mut::<4>() {
                    *number = u32::from_be_bytes(*number).saturating_add(AHEAD).to_be_bytes();
                }
            }
        }
        let hash = keccak256([seed, &index.to_be_bytes()].concat());
        Some(joined(hash.get(..TAG_HASH_LEN)?, &data))
    }
}

/// The hash of a tag: the bytes that identify the block, then the fork-detection data.
fn joined(front: &[u8], data: &[u8; FORK_DETECTION_LEN]) -> B256 {
    let mut hash = B256::ZERO;
    hash.iter_mut().zip(front.iter().chain(data)).for_each(|(to, from)| *to = *from);
    hash
}
