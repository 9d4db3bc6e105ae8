//! What an executed chain keeps off its canonical chain.

use alloc::collections::BTreeMap;

use alloy_primitives::B256;

/// Blocks kept off the canonical chain. A reorganisation of that depth can still be followed; real ones are a few
/// blocks deep, so only an upstream that mines cheap blocks (private networks) reaches it.
pub(super) const MAX_SIDE_BLOCKS: usize = 4_096;
/// Memory for blocks off the canonical chain, in bytes: their number alone bounds nothing, since an upstream chooses
/// how large they are.
pub(super) const MAX_SIDE_BYTES: usize = 64 << 20;

/// The blocks off the canonical chain, and their size together.
#[derive(Debug, Clone, Default)]
pub(super) struct Sides {
    /// Number and size in bytes by hash.
    pub(super) blocks: BTreeMap<B256, (u64, usize)>,
    /// Sum of the sizes.
    pub(super) bytes: usize,
}

impl Sides {
    /// Counts a block that is off the canonical chain.
    pub(super) fn insert(&mut self, hash: B256, number: u64, size: usize) {
        self.remove(&hash);
        self.blocks.insert(hash, (number, size));
        self.bytes = self.bytes.saturating_add(size);
    }

    /// Counts a block no longer; gives its number and size.
    pub(super) fn remove(&mut self, hash: &B256) -> Option<(u64, usize)> {
        let (number, size) = self.blocks.remove(hash)?;
        self.bytes = self.bytes.saturating_sub(size);
        Some((number, size))
    }
}
