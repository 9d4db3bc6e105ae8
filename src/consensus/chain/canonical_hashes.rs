//! Hashes of the canonical (heaviest) chain by number.

use alloc::sync::Arc;

use crate::consensus::persistent_map::PersistentMap;
use crate::types::B256;

/// Hashes in one piece.
const PIECE: usize = 1 << BITS;
/// Bits of a number that are its index in a piece. With 16 hashes to a piece, the map costs about 8 bytes for each hash, and a change
/// copies 512 bytes.
const BITS: u32 = 4;

/// A hash for each number, kept for as long as the chain runs: 40 bytes each, in pieces of consecutive numbers. A clone
/// shares all pieces. The hash zero, which no header has, stands for a missing one.
#[derive(Debug, Clone, Default)]
pub(super) struct CanonicalHashes {
    pieces: PersistentMap<u64, Arc<[B256; PIECE]>>,
}

/// The piece of a number, and its index there.
const fn piece_and_index(number: u64) -> (u64, usize) {
    (number >> BITS, number as usize & PIECE.saturating_sub(1))
}

impl CanonicalHashes {
    pub(super) fn get(&self, number: &u64) -> Option<&B256> {
        let (piece, index) = piece_and_index(*number);
        self.pieces.get(&piece)?.get(index).filter(|hash| !hash.is_zero())
    }

    /// Sets the hash of a number, and copies its piece first if a clone shares it.
    pub(super) fn insert(&mut self, number: u64, hash: B256) {
        let (piece, index) = piece_and_index(number);
        let mut hashes = self.pieces.get(&piece).cloned().unwrap_or_default();
        if let Some(slot) = Arc::make_mut(&mut hashes).get_mut(index) {
            *slot = hash;
        }
        self.pieces.insert(piece, hashes);
    }

    pub(super) fn remove(&mut self, number: &u64) {
        self.insert(*number, B256::ZERO);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_found_by_number() {
        let mut hashes = CanonicalHashes::default();
        let hash = |number: u64| B256::left_padding_from(&(number + 1).to_be_bytes());
        (0..100).for_each(|number| hashes.insert(number, hash(number)));
        let before = hashes.clone();
        hashes.remove(&40);
        hashes.insert(41, hash(7));
        assert_eq!((hashes.get(&40), hashes.get(&41)), (None, Some(&hash(7))));
        assert!((0..100).all(|number| before.get(&number) == Some(&hash(number))), "a clone does not change");
        assert_eq!((hashes.get(&100), hashes.get(&u64::MAX)), (None, None));
        hashes.remove(&1_000);
        assert_eq!(hashes.get(&1_000), None);
    }

    /// A chain has hundreds of thousands of hashes, so each must take little memory.
    #[test]
    fn sixteen_hashes_take_one_piece() {
        let mut hashes = CanonicalHashes::default();
        (32..32 + 160).for_each(|number| hashes.insert(number, B256::repeat_byte(1)));
        assert_eq!(hashes.pieces.len(), 10);
    }
}
