//! The state that handlers read.

use alloc::{boxed::Box, vec::Vec};

use alloy_primitives::{B256, Bytes};

use super::{BlockHeader, Refusal, Stop, ViewResult};
use crate::{
    exec::{BlockEnvironment, BlockObserver, CodeCache},
    state::StateReader,
    trie::WalkError,
};

/// The state after each block of a chain, and the executions that run on it. All results are proven.
pub trait State {
    /// The state after a block. Reading a key that is not proven fails with that key.
    ///
    /// # Errors
    /// Refused for blocks without provable state.
    fn state<'a>(&'a self, header: &BlockHeader) -> ViewResult<Box<dyn StateReader + 'a>>;

    /// Root of the state that [`Self::state`] reads: the header's, unless the state was changed directly on a
    /// development chain.
    fn state_root(&self, header: &BlockHeader) -> B256 {
        header.state_root
    }

    /// The state trie after a block, if all of its nodes are in memory and its root is the header's; `None` otherwise.
    #[cfg(feature = "local")]
    fn state_trie(&self, _header: &BlockHeader) -> Option<&crate::trie::Trie> {
        None
    }

    /// The state before the transaction of a block at this index, after the transactions before it; the state after the block, if
    /// the index is above the last one.
    ///
    /// # Errors
    /// Refused if this chain executes no blocks, or the parent's state is not kept.
    // Only `debug_storageRangeAt` reads it, which browser modules leave out.
    #[cfg(all(feature = "catalogue", feature = "local"))]
    fn state_before(&self, header: &BlockHeader, _index: usize) -> ViewResult<crate::trie::Trie> {
        Err(Stop::Refused(Refusal::NotExecuted { number: header.number }))
    }

    /// Succeeds if proofs can be made from the state after a block, because all its nodes are available.
    ///
    /// # Errors
    /// Refused on a chain that begins on a block of another network: it has only those nodes of that network's state that were
    /// read.
    fn provable(&self, _header: &BlockHeader) -> ViewResult<()> {
        Ok(())
    }

    /// The proof of a key in the state after a block: the trie nodes, root first, to the key or to where it would be.
    ///
    /// # Errors
    /// A node is missing; [`Self::state`] names the missing key, which can be fetched.
    fn prove(&self, header: &BlockHeader, key: &[u8]) -> Result<Vec<Bytes>, WalkError>;

    /// Hash of the node at a key of the state after a block, if there is one.
    fn node_hash(&self, header: &BlockHeader, key: &[u8]) -> Result<Option<B256>, WalkError>;

    /// The cache of analysed code that calls on this chain share, if there is one.
    fn codes(&self) -> Option<&dyn CodeCache> {
        None
    }

    /// The environment (number, time and so on) that transactions of the next block would see.
    fn next_environment(&self, header: &BlockHeader) -> BlockEnvironment {
        next_environment(header)
    }

    /// Executes a block again on its parent's state and reports to the observer, for traces.
    ///
    /// # Errors
    /// Refused if this chain executes no blocks, or the parent's state is not kept.
    fn replay(&self, header: &BlockHeader, _observer: &mut dyn BlockObserver) -> ViewResult<()> {
        Err(Stop::Refused(Refusal::NotExecuted { number: header.number }))
    }
}

/// The environment of the next block, if its miner changes nothing but the height and the time.
pub(super) fn next_environment(header: &BlockHeader) -> BlockEnvironment {
    let mut next = BlockEnvironment::from(header.header());
    next.number = next.number.saturating_add(1);
    next.timestamp = next.timestamp.saturating_add(1);
    next
}
