//! The newest Bitcoin blocks that a client has seen, and how deep they were reorganised. A deep reorganisation makes the verdict
//! weak for a day, also after a restart.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::consensus::bitcoin::{BitcoinChain, StoredBitcoinError, double_sha256};
use crate::types::B256;

/// Newest Bitcoin blocks whose hashes are remembered, to see how deep a reorganisation went: many more than the 6 that
/// count as deep.
const REMEMBERED: u32 = 64;
/// Bitcoin blocks for which a reorganisation is remembered: about a day's.
const DAY: u32 = 144;
/// The first byte of a stored reorganisation: `0x02 | height of the tip (4) | blocks removed (4) | checksum (8)`, numbers
/// little-endian. No stored chain begins with this byte.
const FORM: u8 = 2;
/// Bytes of the checksum: the first ones of the double SHA-256 of the bytes before it.
const CHECKSUM_LEN: usize = 8;

/// A reorganisation of the Bitcoin chain.
#[derive(Debug, Clone, Copy)]
struct Reorganisation {
    /// Height of the tip after the reorganisation.
    at: u32,
    /// Blocks that left the chain.
    removed: u32,
}

/// The newest Bitcoin blocks at the last look, and the deepest reorganisation that was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct SeenBlocks {
    /// Height and hash of each block, oldest first.
    newest: VecDeque<(u32, B256)>,
    /// Whether the blocks are those of a stored chain, which another source may have shown.
    are_stored: bool,
    /// The deepest reorganisation that was seen.
    deepest: Option<Reorganisation>,
}

impl SeenBlocks {
    /// Whether the tip of the chain is another one than at the last look. A chain of its first block alone cannot show a
    /// reorganisation and counts as unchanged.
    pub(super) fn has_changed(&self, bitcoin: &BitcoinChain) -> bool {
        let tip = bitcoin.tip();
        tip.height > bitcoin.start().height && self.newest.back() != Some(&(tip.height, tip.hash))
    }

    /// A copy that has looked at the chain, to be stored with the chain.
    pub(super) fn with_look(&self, bitcoin: &BitcoinChain) -> Self {
        let mut seen = self.clone();
        if seen.has_changed(bitcoin) {
            seen.look(bitcoin);
        }
        seen
    }

    /// Whether the newest seen block is at this height or above.
    pub(super) fn reach(&self, height: u32) -> bool {
        self.newest.back().is_some_and(|(newest, _)| *newest >= height)
    }

    /// The same blocks as those of a stored chain.
    pub(super) fn as_stored(&self) -> Self {
        Self { are_stored: true, ..self.clone() }
    }

    /// Looks at the chain and remembers its newest blocks. Returns the height of the newest block of the last look that is still in
    /// the chain.
    pub(super) fn look(&mut self, bitcoin: &BitcoinChain) -> Option<u32> {
        let tip = bitcoin.tip().height;
        let is_kept =
            |(height, hash): &&(u32, B256)| bitcoin.at(*height).is_some_and(|block| block.hash == *hash);
        let fork = self.newest.iter().rev().find(is_kept).map(|(height, _)| *height);
        if let Some((newest, _)) = self.newest.back() {
            let removed = match fork {
                // A chain that ends at one of the blocks is shorter, but has replaced none of them.
                Some(fork) if fork == tip => 0,
                Some(fork) => newest.saturating_sub(fork),
                // A stored chain that has no block in common with this one may be a chain of other sources.
                None if self.are_stored => 0,
                // None of the remembered blocks is left: this counts as the deepest reorganisation that can be seen.
                None => REMEMBERED,
            };
            if removed > self.removed(tip).unwrap_or_default() {
                self.deepest = Some(Reorganisation { at: tip, removed });
            }
        }
        self.are_stored = false;
        let from = tip.saturating_sub(REMEMBERED).max(bitcoin.start().height);
        let blocks = (from..=tip).filter_map(|height| bitcoin.at(height));
        self.newest = blocks.map(|block| (block.height, block.hash)).collect();
        fork
    }

    /// Blocks removed by the deepest reorganisation of the chain's last day; `None` without one. `tip` is the height of its tip.
    pub(super) fn removed(&self, tip: u32) -> Option<u32> {
        let is_recent = |deepest: &Reorganisation| deepest.at.saturating_add(DAY) > tip;
        self.deepest.filter(is_recent).map(|deepest| deepest.removed)
    }

    /// The bytes to store before those of the chain, whose tip has this height; empty if no recent reorganisation was seen.
    pub(super) fn stored(&self, tip: u32) -> Vec<u8> {
        let (Some(Reorganisation { at, removed }), Some(_)) = (self.deepest, self.removed(tip)) else {
            return Vec::new();
        };
        let content = [&[FORM][..], &at.to_le_bytes(), &removed.to_le_bytes()].concat();
        let sum = double_sha256(&content);
        content.into_iter().chain(sum.iter().copied().take(CHECKSUM_LEN)).collect()
    }

    /// Reads the reorganisation that was stored before the bytes of a chain, if there is one. Returns the rest: the bytes of the
    /// chain.
    ///
    /// # Errors
    /// The bytes are cut off or damaged.
    pub(super) fn restore(stored: &[u8]) -> Result<(Self, &[u8]), StoredBitcoinError> {
        let Some((&FORM, rest)) = stored.split_first() else { return Ok((Self::default(), stored)) };
        let cut = StoredBitcoinError::Form(Some(FORM));
        let (at, rest) = rest.split_first_chunk().ok_or(cut)?;
        let (removed, rest) = rest.split_first_chunk().ok_or(cut)?;
        let (sum, chain) = rest.split_first_chunk::<CHECKSUM_LEN>().ok_or(cut)?;
        if !double_sha256(&[&[FORM][..], at, removed].concat()).starts_with(sum) {
            return Err(StoredBitcoinError::Checksum);
        }
        let deepest = Reorganisation { at: u32::from_le_bytes(*at), removed: u32::from_le_bytes(*removed) };
        Ok((Self { deepest: Some(deepest), ..Self::default() }, chain))
    }

    /// Looks at the chain for the first time. A stored reorganisation at a height that the chain does not reach is dropped: it was
    /// not of this chain.
    pub(super) fn begin(&mut self, bitcoin: &BitcoinChain) {
        let tip = bitcoin.tip().height;
        self.deepest = self.deepest.filter(|deepest| deepest.at <= tip);
        self.look(bitcoin);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{LOWEST, bitcoin, reorganised};
    use super::*;

    #[test]
    fn a_shorter_chain_without_other_blocks_is_no_reorganisation() {
        let (tip, mut seen) = (LOWEST + 50, SeenBlocks::default());
        seen.begin(&bitcoin(tip));
        assert_eq!((seen.look(&bitcoin(tip - 9)), seen.removed(tip - 9)), (Some(tip - 9), None));
        seen.look(&bitcoin(tip));
        let other = reorganised(tip - 9, tip + 1);
        assert_eq!((seen.look(&other), seen.removed(tip + 1)), (Some(tip - 9), Some(9)));
    }
}
