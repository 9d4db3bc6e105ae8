//! The blocks that a locally executed chain keeps outside its canonical chain.

use alloc::collections::BTreeMap;

use alloy_primitives::B256;

/// The largest number of blocks outside the canonical chain. The chain can follow a reorganisation of that depth;
/// real ones are a few blocks deep, so only an upstream that mines cheap blocks (private networks) reaches the limit.
pub(super) const MAX_SIDE_BLOCKS: usize = 4_096;
/// The largest memory for blocks outside the canonical chain, in bytes. A limit of their number alone would not bound
/// memory, because an upstream chooses their sizes.
pub(super) const MAX_SIDE_BYTES: usize = 64 << 20;

/// The blocks outside the canonical chain, and their total size.
#[derive(Debug, Clone, Default)]
pub(super) struct SideBlocks {
    /// Block number and size in bytes by block hash.
    pub(super) blocks: BTreeMap<B256, (u64, usize)>,
    /// Sum of the sizes.
    pub(super) bytes: usize,
}

impl SideBlocks {
    /// Adds a block outside the canonical chain.
    pub(super) fn insert(&mut self, hash: B256, number: u64, size: usize) {
        self.remove(&hash);
        self.blocks.insert(hash, (number, size));
        self.bytes = self.bytes.saturating_add(size);
    }

    /// Removes a block. Returns its number and size.
    pub(super) fn remove(&mut self, hash: &B256) -> Option<(u64, usize)> {
        let (number, size) = self.blocks.remove(hash)?;
        self.bytes = self.bytes.saturating_sub(size);
        Some((number, size))
    }
}
