//! A block of the Bitcoin chain as [`BitcoinChain`](super::BitcoinChain) shows it to callers, and the result of inserting a header.

use crate::types::B256;

/// A block of the Bitcoin chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitcoinBlock {
    /// Number of blocks below this block.
    pub height: u32,
    /// Hash in internal byte order.
    pub hash: B256,
    /// Time that the header states, in seconds since 1970.
    pub time: u32,
    /// Target that the header states and meets, in compact form (`nBits`).
    pub bits: u32,
}

/// The effect of the insertion of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitcoinInserted {
    /// The header was inserted before, or is the checkpoint's.
    Known,
    /// The header is the new tip, on top of the old one.
    Extended,
    /// The header is on a branch with less work.
    Side,
    /// The header is the tip of a branch that now has the most work.
    Reorganised {
        /// Height of the highest block that both branches have.
        fork: u32,
        /// Number of blocks that are no longer in the chain.
        removed: u32,
    },
}
