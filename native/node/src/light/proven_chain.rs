//! The chain that a light client has proven, for hosts that compare blocks of other sources, such as an index, with it.

use std::sync::Arc;

use rootlight::types::BlockRef;
use rootlight_limits::Limits;

use super::shared_light::SharedLight;

/// The position of a block relative to the chain that the light client has proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPosition {
    /// The block is on the proven chain.
    Proven,
    /// The block is older than the proven chain.
    Below,
    /// The proven chain has another block at this height, or none yet.
    Elsewhere,
}

/// The chain that a light client has proven, as it is at each call. Cloning is cheap.
#[derive(Clone)]
pub struct ProvenChain(pub(super) Arc<SharedLight>);

impl std::fmt::Debug for ProvenChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProvenChain").finish_non_exhaustive()
    }
}

impl ProvenChain {
    /// The position of a block relative to the chain.
    #[must_use]
    pub fn position(&self, block: &BlockRef) -> BlockPosition {
        let sync = self.0.client.sync();
        let Some(chain) = sync.chain() else { return BlockPosition::Elsewhere };
        match chain.view().hash_at(block.number) {
            Some(hash) if hash == block.hash => BlockPosition::Proven,
            None if block.number < chain.view().lowest() => BlockPosition::Below,
            _ => BlockPosition::Elsewhere,
        }
    }

    /// The limits of the light client.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.0.counts.limits
    }

    /// Whether a block is on the proven chain with at least this many blocks on top.
    pub fn is_deep(&self, block: &BlockRef, depth: u64) -> bool {
        let head = self.0.client.sync().chain().map_or(0, |chain| chain.head().number);
        self.position(block) == BlockPosition::Proven
            && head.checked_sub(block.number).is_some_and(|above| above >= depth)
    }
}
