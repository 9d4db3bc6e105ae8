//! The interface to an index of blocks by the addresses and topics that occur in them. Searches for logs and transactions
//! use it to skip blocks.

use alloc::{boxed::Box, vec::Vec};
use core::fmt::Debug;

use super::stored_block::{StoredBlock, Term};

/// An index of the blocks of a local chain, by term. The host provides it.
///
/// The index is a filter: callers check every block that it names against the block's own receipts and transactions.
/// It may name blocks without the terms, for example because a reorganization replaced a block. It must not leave out
/// a block with the terms. Entries are therefore only added and never removed: a reader of an older snapshot, or a
/// chain that returns to an older snapshot, still finds its blocks.
pub trait BlockIndex: Debug + Send + Sync {
    /// Adds a block that becomes part of the canonical chain. The chain calls this before readers can see the block,
    /// and again if the block returns to the chain later.
    fn add(&self, number: u64, block: &StoredBlock);

    /// Returns the numbers of the blocks from one height to another, both included, that may match every group of
    /// terms, in ascending order. A block matches a group if it has any of the group's terms; every block matches an
    /// empty group.
    ///
    /// Once `interrupt` returns true, or when entries cannot be read, the iterator returns the remaining numbers of the
    /// range without consulting the index.
    fn blocks<'a>(
        &'a self,
        groups: &[Vec<Term>],
        from: u64,
        to: u64,
        interrupt: &'a dyn Fn() -> bool,
    ) -> Box<dyn Iterator<Item = u64> + 'a>;

    /// The number of blocks that [`Self::add`] was called with. If it is far above the length of the chain, most
    /// entries are of blocks that left the chain.
    fn added(&self) -> u64;
}
