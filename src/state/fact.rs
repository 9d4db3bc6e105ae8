//! Facts: the pieces of data that answers are made of. Verified headers and state roots commit to each.

use alloc::collections::BTreeSet;
use core::fmt;

use alloy_primitives::B256;

use super::reader::StateKey;
use crate::types::BlockRef;

/// A piece of data that an upstream supplies and that verified data proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fact {
    /// A header that is not in the header chain, by its hash. The hash and its proof of work prove it.
    Header(B256),
    /// The header at a height below the start of the header chain. The host's own node supplies it and is trusted.
    HeaderAt(u64),
    /// All transactions of a block. The transactions root proves them.
    Body(BlockRef),
    /// All uncle headers of a block. The uncles hash proves them. The count is the one that the header states.
    Uncles(BlockRef, u32),
    /// All receipts of a block. The receipts root proves them. Needs the body.
    Receipts(BlockRef),
    /// The block that contains a transaction. The response is a hint, which that block's body proves.
    Location(B256),
    /// A piece of state after a block. Trie nodes under the state root prove it.
    State(BlockRef, StateKey),
}

/// A set of facts, such as those that a run was missing, in a fixed order.
pub type Facts = BTreeSet<Fact>;

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(hash) => write!(f, "header {hash}"),
            Self::HeaderAt(number) => write!(f, "header of block {number}"),
            Self::Body(block) => write!(f, "transactions of {block}"),
            Self::Uncles(block, _) => write!(f, "uncles of {block}"),
            Self::Receipts(block) => write!(f, "receipts of {block}"),
            Self::Location(hash) => write!(f, "block of transaction {hash}"),
            Self::State(block, key) => {
                match key {
                    StateKey::Account(address) => write!(f, "account {address}")?,
                    StateKey::Storage(address, slot) => write!(f, "storage slot {slot:#x} of {address}")?,
                    StateKey::StorageBytes(address, slot) => {
                        write!(f, "bytes of storage slot {slot:#x} of {address}")?
                    }
                    StateKey::Code(address) => write!(f, "code of {address}")?,
                    StateKey::BlockHash(number) => write!(f, "hash of block {number}")?,
                    StateKey::Header(number) => write!(f, "header of block {number}")?,
                    StateKey::Uncles(number) => write!(f, "uncles of block {number}")?,
                    StateKey::TotalDifficulty(number) => write!(f, "total difficulty of block {number}")?,
                }
                write!(f, " at {block}")
            }
        }
    }
}
