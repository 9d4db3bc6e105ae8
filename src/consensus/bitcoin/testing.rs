//! Bitcoin headers and chains for tests, mined on easy targets or not checked at all.

use super::block::BitcoinBlock;
use super::chain::BitcoinChain;
use super::entry::Entry;
use super::hash::{HEADER_LEN, hash_number, header_hash};
use super::network::{BitcoinCheckpoint, BitcoinNetwork};
use super::target::{target_of, work_of_target};
use crate::types::{B256, U256};

/// A header with these fields, of version 0x20000000.
pub(crate) fn header_of(previous: B256, root: B256, time: u32, bits: u32, nonce: u32) -> [u8; HEADER_LEN] {
    let fields = [
        &0x2000_0000u32.to_le_bytes()[..],
        previous.as_slice(),
        root.as_slice(),
        &time.to_le_bytes(),
        &bits.to_le_bytes(),
        &nonce.to_le_bytes(),
    ];
    fields.concat().try_into().expect("80 bytes")
}

/// A header on `previous` that meets its target. Headers with different salts differ.
pub(crate) fn mine(previous: B256, salt: u64, time: u32, bits: u32) -> [u8; HEADER_LEN] {
    mine_with_root(previous, B256::left_padding_from(&salt.to_be_bytes()), time, bits)
}

/// A header on `previous` with this Merkle root that meets its target.
pub(crate) fn mine_with_root(previous: B256, root: B256, time: u32, bits: u32) -> [u8; HEADER_LEN] {
    let mut header = header_of(previous, root, time, bits, 0);
    let target = target_of(bits).expect("a target");
    let solved = (0..u32::MAX).any(|nonce| {
        header[76..].copy_from_slice(&nonce.to_le_bytes());
        hash_number(&header_hash(&header)) <= target
    });
    assert!(solved, "no nonce meets the target");
    header
}

/// Mines `count` headers on top of each other, `seconds` apart, the first one `seconds` after `time`.
pub(crate) fn mine_on(
    previous: B256,
    salt: u64,
    time: u32,
    seconds: u32,
    bits: u32,
    count: usize,
) -> Vec<[u8; HEADER_LEN]> {
    let (mut previous, mut time) = (previous, time);
    let next = || {
        time += seconds;
        let header = mine(previous, salt, time, bits);
        previous = header_hash(&header);
        header
    };
    std::iter::repeat_with(next).take(count).collect()
}

impl BitcoinChain {
    /// A chain of blocks that are not checked, at consecutive heights; the headers state their times and targets, and have
    /// the Merkle root zero.
    pub fn of_blocks(first_height: u32, blocks: Vec<BitcoinBlock>) -> Self {
        let mut previous = B256::ZERO;
        let headers = blocks.into_iter().map(|block| {
            let header = header_of(previous, B256::ZERO, block.time, block.bits, 0);
            previous = block.hash;
            (header, block.hash)
        });
        Self::unchecked(first_height, headers.collect())
    }

    /// A chain of headers that are not checked, at consecutive heights.
    pub fn of_headers(first_height: u32, headers: &[[u8; HEADER_LEN]]) -> Self {
        Self::unchecked(first_height, headers.iter().map(|header| (*header, header_hash(header))).collect())
    }

    /// A chain of headers with their hashes, from `first_height` on, on a checkpoint with the hash zero.
    fn unchecked(first_height: u32, headers: Vec<([u8; HEADER_LEN], B256)>) -> Self {
        let height = first_height.checked_sub(1).expect("a chain starts above its checkpoint");
        let checkpoint = BitcoinCheckpoint { height, hash: B256::ZERO, next_bits: 0x207f_ffff, time: 0 };
        let mut chain = Self::new(BitcoinNetwork { checkpoint, limit: 0x207f_ffff, retargets: false });
        for (header, hash) in headers {
            let tip = chain.main.tip();
            let mut entry = Entry::new(header, hash, tip.work, tip.height + 1);
            let target = target_of(entry.block().bits).unwrap_or(U256::MAX);
            entry.work += work_of_target(target);
            chain.main.push(entry);
        }
        chain
    }
}
