//! The Bitcoin blocks that commit to one Rootstock block or to those above it, and the cost of a forgery.
//!
//! Callers are shown the evidence for the block of an answer, not for the chain: a false branch of the newest twelve headers costs
//! only as many hashes as 0.15 Bitcoin blocks (0.012 for each header, mainnet's share of 2026), and has all Bitcoin blocks below it in
//! common with the true chain.

use super::tags::TagCounts;
use crate::consensus::ChainView;
use crate::consensus::bitcoin::BitcoinChain;
use crate::types::U256;

/// The Bitcoin blocks that commit to a Rootstock block or to one above it, and the tags of the newest Bitcoin blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEvidence {
    /// Number of Bitcoin blocks that commit to this block or to one above it. Each has another Bitcoin block on top.
    pub bitcoin_blocks: u32,
    /// Height of the newest of these Bitcoin blocks; `None` if there is none.
    pub newest_height: Option<u32>,
    /// Seconds since the time that the newest of these blocks states.
    pub newest_age: Option<u64>,
    /// Tags of the newest 72 Bitcoin blocks, which judge the whole chain, not this block.
    pub tags: TagCounts,
}

/// The least work that a forgery of a block and of all blocks above it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttackCost {
    /// Number of headers: the block and those above it.
    pub headers: u64,
    /// Proven work of these headers, in hashes.
    pub work: U256,
    /// The same work in thousandths of the work of Bitcoin's newest block.
    pub milli_blocks: u64,
}

impl AttackCost {
    /// The cost of a canonical block. `None` if its work is not known.
    #[must_use]
    pub fn of(view: &ChainView, bitcoin: &BitcoinChain, number: u64) -> Option<Self> {
        let work = view.work_from(number)?;
        let tip = bitcoin.tip().height;
        let scaled = work.saturating_mul(U256::from(1_000));
        // Every Bitcoin block has work, so the division succeeds.
        let milli_blocks = scaled.checked_div(bitcoin.work_of(tip..=tip)).unwrap_or_default().saturating_to();
        let headers = view.head().number.saturating_sub(number).saturating_add(1);
        Some(Self { headers, work, milli_blocks })
    }

    /// How many minutes a pool with `percent` of Bitcoin's hashes takes: all miners together take 0.6 seconds, a hundredth of a
    /// minute, for a thousandth of a block.
    #[must_use]
    pub fn minutes(&self, percent: u32) -> u64 {
        // Without hashes the forgery never ends.
        self.milli_blocks.checked_div(u64::from(percent)).unwrap_or(u64::MAX)
    }
}
