//! Bitcoin chains for tests, whose headers are not checked.

use alloc::collections::{BTreeMap, BTreeSet};
use std::{collections::HashMap, sync::OnceLock};

use super::{DatedHeader, ShownChain};
use crate::consensus::bitcoin::{BitcoinBlock, BitcoinChain, Tag, double_sha256};
use crate::types::{B256, U256};

/// Height of the lowest block of [`bitcoin`].
pub(super) const LOWEST: u32 = 1_000;
/// The target of each of its blocks, in Bitcoin's compact form.
pub(super) const BITS: u32 = 0x1f0f_ffff;
/// The work of each of its blocks, which follows from the target.
pub(super) const WORK: u64 = 4_096;

/// The hash of the Bitcoin block at a height, on a branch.
pub(super) fn hash_on(branch: u8, height: u32) -> B256 {
    double_sha256(&[&[branch][..], &height.to_le_bytes()].concat())
}

/// The hash of the Bitcoin block at a height of the chain [`bitcoin`], which is branch 0.
pub(super) fn hash(height: u32) -> B256 {
    hash_on(0, height)
}

fn block_on(branch: u8, height: u32) -> BitcoinBlock {
    BitcoinBlock { height, hash: hash_on(branch, height), time: 600 * height, bits: BITS }
}

/// A Bitcoin chain of the blocks from [`LOWEST`] up to `tip`.
pub(super) fn bitcoin(tip: u32) -> BitcoinChain {
    BitcoinChain::of_blocks(LOWEST, (LOWEST..=tip).map(|height| block_on(0, height)).collect())
}

/// The same chain, of which another branch has replaced the blocks above `fork`.
pub(super) fn reorganised(fork: u32, tip: u32) -> BitcoinChain {
    let branch = |height: u32| u8::from(height > fork);
    BitcoinChain::of_blocks(LOWEST, (LOWEST..=tip).map(|height| block_on(branch(height), height)).collect())
}

/// The time of the block with this hash, on one of two branches; 0 for other hashes.
fn time_of(hash: &B256) -> u64 {
    static TIMES: OnceLock<HashMap<B256, u64>> = OnceLock::new();
    let times = TIMES.get_or_init(|| {
        let blocks = (0..2).flat_map(|branch| (LOWEST..LOWEST + 1_100).map(move |height| (branch, height)));
        blocks.map(|(branch, height)| (hash_on(branch, height), u64::from(600 * height))).collect()
    });
    times.get(hash).copied().unwrap_or_default()
}

/// A header that names a Bitcoin block as its parent, and was mined soon after it.
pub(super) fn dated(number: u64, parent: B256, work: u64) -> DatedHeader {
    let hash = double_sha256(&number.to_le_bytes());
    DatedHeader { number, hash, parent, work: U256::from(work), time: time_of(&parent) + 60 }
}

/// A Rootstock chain that tags are compared with, without headers.
#[derive(Default)]
pub(super) struct Shown {
    /// Number of the newest block.
    pub(super) head: u64,
    /// Commitment bytes ([`ShownChain::bitcoin_byte`]) that differ from [`Self::byte`], by block number.
    pub(super) bytes: BTreeMap<u64, u8>,
    /// The hashes in tags that name a block of the chain.
    pub(super) own: BTreeSet<[u8; 20]>,
    /// Lowest block whose header the chain has.
    pub(super) lowest: u64,
}

impl Shown {
    pub(super) fn new(head: u64) -> Self {
        Self { head, ..Self::default() }
    }

    /// The commitment byte of a block, unless [`Self::bytes`] has another one.
    pub(super) fn byte(number: u64) -> u8 {
        double_sha256(&number.to_le_bytes()).0[0]
    }

    /// A branch that left the chain [`Self::new`] above the block `fork`.
    pub(super) fn forked(head: u64, fork: u64) -> Self {
        let bytes = (fork + 1..=head).map(|number| (number, Self::byte(number) ^ 1)).collect();
        Self { bytes, ..Self::new(head) }
    }

    /// The tag that a miner writes for a block of this chain. `salt` tells blocks of the same number apart.
    pub(super) fn tag(&self, number: u64, salt: u8) -> Tag {
        let mut hash20 = [salt; 20];
        hash20[..8].copy_from_slice(&number.to_le_bytes());
        let newest = (number - 1) / 64;
        let cpv = core::array::from_fn(|step| {
            self.bitcoin_byte(newest.saturating_sub(step as u64) * 64).unwrap_or_default()
        });
        Tag { hash20, cpv, uncles: 0, number: u32::try_from(number).unwrap() }
    }

    /// The tag that a miner writes for a block of this chain, which the chain then shows.
    pub(super) fn own_tag(&mut self, number: u64) -> Tag {
        let tag = self.tag(number, 0);
        self.own.insert(tag.hash20);
        tag
    }
}

impl ShownChain for Shown {
    fn head(&self) -> u64 {
        self.head
    }

    fn is_own(&self, tag: &Tag) -> bool {
        self.own.contains(&tag.hash20)
    }

    fn bitcoin_byte(&self, number: u64) -> Option<u8> {
        let has_header = (self.lowest..=self.head).contains(&number);
        has_header.then(|| self.bytes.get(&number).copied().unwrap_or_else(|| Self::byte(number)))
    }
}
