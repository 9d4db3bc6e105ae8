//! Facts: what an answer is made of, and what a view lacks until an upstream has proven it.

use alloc::collections::BTreeSet;
use core::fmt;

use alloy_primitives::B256;

use crate::state::StateKey;

/// A block by number and hash; both, because an upstream is asked by number and checked by hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockRef {
    /// Height.
    pub number: u64,
    /// Block hash.
    pub hash: B256,
}

/// Something that can be asked of an upstream and proven by what is already known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Fact {
    /// A header that the chain does not hold, by its hash; proven by the hash itself and its proof of work.
    Header(B256),
    /// All transactions of a block; proven by the transactions root.
    Body(BlockRef),
    /// All uncle headers of a block; proven by the uncles hash. The count is the header's.
    Uncles(BlockRef, u32),
    /// All receipts of a block; proven by the receipts root. Needs the body.
    Receipts(BlockRef),
    /// The block that holds a transaction; a hint, proven by that block's body.
    Location(B256),
    /// A piece of state after a block; proven by trie nodes under the state root.
    State(BlockRef, StateKey),
}

/// What a run lacked, in a fixed order.
pub type Facts = BTreeSet<Fact>;

/// A set of these facts. `collect` would sort them first: code of several kilobytes that nothing else needs, and
/// browsers load it.
pub(crate) fn facts(all: impl IntoIterator<Item = Fact>) -> Facts {
    let mut facts = Facts::new();
    facts.extend(all);
    facts
}

impl fmt::Display for BlockRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "block {} ({})", self.number, self.hash)
    }
}

impl fmt::Display for Fact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(hash) => write!(f, "header {hash}"),
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
