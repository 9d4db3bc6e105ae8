//! Coinbase transactions of the regtest chain ([`super::RegtestChain`]), byte by byte.

use alloy_primitives::B256;
use alloy_primitives::hex;
use rootlight::consensus::bitcoin::{
    CoinbaseBytes, CoinbaseProof, CoinbaseProofBuf, double_sha256, hash_pair, reversed,
};
use rootlight::types::MERGED_MINING_TAG;

/// The coinbase of block 0, which Bitcoin's main network, testnet3, signet and regtest share.
const GENESIS: &[u8] = &hex!(
    "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d01044554686520"
    "54696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f"
    "757420666f722062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a679"
    "62e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000"
);
/// Version and the one input of a coinbase, up to its script.
const INPUT: &[u8] = b"\x02\0\0\0\x01\
\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xff\xff\xff\xff";
/// The end of the script.
const NAME: &[u8] = b"/rootlight/";
/// The output that pays 50 coins to anyone: the reward of the first blocks, never halved here. No reader checks the amount.
const REWARD: &[u8] = &[0x00, 0xf2, 0x05, 0x2a, 0x01, 0, 0, 0, 1, 0x51];
/// The front of the output that commits to a block: no value, OP_RETURN, and the push of tag and hash.
const COMMITMENT: &[u8] = &[0, 0, 0, 0, 0, 0, 0, 0, 0x2b, 0x6a, 0x29];
/// Length of the Merkle branch of a coinbase: that of a block of 4,096 transactions, as many as those of the main network. A
/// block here has its coinbase only, so the siblings are made up.
const LEVELS: u8 = 12;
/// Transactions of each block above block 0.
pub(super) const TRANSACTIONS: u32 = 1 << LEVELS;

/// The coinbase of a block, and how its Merkle root covers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockCoinbase {
    /// The transaction without its witness.
    pub transaction: Vec<u8>,
    /// The hash of the transaction in internal byte order.
    pub hash: B256,
    /// The siblings on the way to the root, in internal byte order.
    pub branch: Vec<B256>,
}

impl BlockCoinbase {
    /// The coinbase of block 0, which is the block's only transaction.
    pub(super) fn genesis() -> Self {
        Self { transaction: GENESIS.to_vec(), hash: double_sha256(GENESIS), branch: Vec::new() }
    }

    /// The coinbase of a block at a height, with Rootstock's tag if there is a commitment. `number` differs in each
    /// coinbase, so that no two have the same hash.
    pub(super) fn new(height: u32, number: u64, commitment: Option<&B256>) -> Self {
        let mut script = height_push(height);
        // The push of the 8 bytes of the number.
        script.push(8);
        script.extend(number.to_be_bytes());
        script.extend(NAME);
        let mut transaction = INPUT.to_vec();
        transaction.push(script.len() as u8);
        transaction.extend(script);
        // The sequence number, then the number of outputs.
        transaction.extend([0xff; 4]);
        transaction.push(1 + u8::from(commitment.is_some()));
        transaction.extend(REWARD);
        if let Some(hash) = commitment {
            transaction.extend([COMMITMENT, MERGED_MINING_TAG, hash.as_slice()].concat());
        }
        // The lock time.
        transaction.extend([0; 4]);
        // Made-up siblings, which differ in each coinbase and level.
        let sibling = |level: u8| double_sha256(&[&[level][..], &number.to_be_bytes()].concat());
        Self { hash: double_sha256(&transaction), transaction, branch: (0..LEVELS).map(sibling).collect() }
    }

    /// The Merkle root of the block.
    pub(super) fn root(&self) -> B256 {
        self.branch.iter().fold(self.hash, |node, sibling| hash_pair(&node, sibling))
    }

    /// The proof that the block at a height has this coinbase, in few bytes.
    pub(super) fn proof(&self, height: u32) -> CoinbaseProofBuf {
        // A proof states its branch in display order, the reverse of the internal one.
        let branch: Vec<u8> = self.branch.iter().flat_map(|sibling| reversed(sibling).0).collect();
        CoinbaseProof { coinbase: CoinbaseBytes::Whole(&self.transaction), branch: &branch }.shortened(height)
    }

    /// The transaction as nodes send it: with the witness that the coinbases of today's blocks have (BIP-141).
    pub(super) fn with_witness(&self) -> Vec<u8> {
        let (version, rest) = self.transaction.split_at(4);
        let (body, lock_time) = rest.split_at(rest.len() - 4);
        // Marker and flag, then a witness of one item of 32 bytes.
        [version, &[0, 1], body, &[1, 32], &[0; 32], lock_time].concat()
    }
}

/// The push of a height that begins a coinbase's script (BIP-34).
fn height_push(height: u32) -> Vec<u8> {
    if let 1..=16 = height {
        return vec![0x50 + height as u8];
    }
    let mut bytes = height.to_le_bytes().to_vec();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    // The highest bit of the last byte would be read as a sign.
    if bytes.last().is_some_and(|byte| byte & 0x80 != 0) {
        bytes.push(0);
    }
    [vec![bytes.len() as u8], bytes].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rootlight::consensus::bitcoin::reversed;
    use rootlight::consensus::mining::committed_hash;

    #[test]
    fn block_0_has_bitcoins_coinbase() {
        let root = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
        assert_eq!(format!("{:x}", reversed(&BlockCoinbase::genesis().root())), root);
    }

    #[test]
    fn heights_are_pushed_as_bip_34_demands() {
        for (height, push) in [
            (1, "51"),
            (16, "60"),
            (17, "0111"),
            (127, "017f"),
            (128, "028000"),
            (255, "02ff00"),
            (256, "020001"),
            (32_768, "03008000"),
            (953_567, "03df8c0e"),
        ] {
            assert_eq!(hex::encode(height_push(height)), push, "{height}");
        }
    }

    #[test]
    fn a_coinbase_has_a_tag_if_it_commits_to_a_block() {
        let hash = B256::repeat_byte(7);
        let [with, without] = [Some(&hash), None].map(|commitment| BlockCoinbase::new(300, 1, commitment));
        assert_eq!(committed_hash(&with.transaction), Some(hash));
        assert_eq!(committed_hash(&without.transaction), None);
        assert_ne!(with.hash, BlockCoinbase::new(300, 2, Some(&hash)).hash);
        assert_eq!(with.branch.len(), usize::from(LEVELS));
        assert_eq!(with.with_witness().len(), with.transaction.len() + 36);
    }
}
