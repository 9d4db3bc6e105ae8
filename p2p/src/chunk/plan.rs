//! Chooses the offsets at which to request chunks, so that few chunks show the paths of many keys.

use alloc::vec::Vec;

use rootlight::trie::Bits;

use super::limits::SPAN;
use super::walk::OffsetRange;

/// Number of bits of the key from which its offset in a range is guessed.
const GUESS_BITS: usize = 32;

/// Least distance from a guessed offset to the borders of a chunk that is requested for several keys: the guess may be off by as
/// much.
const MARGIN: u64 = SPAN / 4;

/// The offsets that a chunk should cover for one key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wish {
    /// The offsets that must be covered, at most [`SPAN`] of them.
    core: OffsetRange,
    /// The offsets at which the key surely is: a chunk outside them shows nothing of it.
    range: OffsetRange,
}

impl Wish {
    /// The key is at this offset or near it, and surely in this range.
    pub(super) fn near(point: u64, range: OffsetRange) -> Self {
        if range.len() <= SPAN {
            return Self { core: range, range };
        }
        let point = point.clamp(range.low, range.high);
        let low = point.saturating_sub(MARGIN).max(range.low);
        let high = point.saturating_add(MARGIN).min(range.high);
        Self { core: OffsetRange { low, high }, range }
    }

    /// The key is in this range, at the offset that its next bits give if keys are spread evenly.
    pub(super) fn interpolated(key: Bits<'_>, range: OffsetRange) -> Self {
        let fraction =
            (0..GUESS_BITS).fold(0u64, |sum, at| (sum << 1) | u64::from(key.get(at) == Some(true)));
        let before = u128::from(range.len()).saturating_mul(fraction.into()) >> GUESS_BITS;
        Self::near(range.low.saturating_add(u64::try_from(before).unwrap_or(u64::MAX)), range)
    }

    /// Whether a chunk from this offset on covers the wanted offsets.
    pub(super) fn is_covered(&self, from: u64) -> bool {
        from <= self.core.low.saturating_add(1) && self.core.high <= from.saturating_add(SPAN)
    }
}

/// A chunk to request, and the number of wishes that it covers.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkWindow {
    pub(super) from: u64,
    pub(super) wishes: usize,
}

/// Few windows that cover all wishes, those that cover most first.
pub(super) fn windows(wishes: &mut [Wish]) -> Vec<ChunkWindow> {
    wishes.sort_unstable_by_key(|wish| (wish.core.low, wish.core.high));
    let mut windows = Vec::new();
    let mut rest = &*wishes;
    while let [first, ..] = rest {
        let last = first.core.low.saturating_add(SPAN);
        let count = rest.iter().take_while(|wish| wish.core.high <= last).count().max(1);
        let (group, after) = rest.split_at(count);
        windows.push(window(group));
        rest = after;
    }
    windows.sort_by_key(|window| core::cmp::Reverse(window.wishes));
    windows
}

/// The window that has all wishes of a group in its middle, moved as far as needed to lie inside their ranges.
fn window(group: &[Wish]) -> ChunkWindow {
    // A group has at least one wish, so none of the zeros is used.
    let low = group.iter().map(|wish| wish.core.low).min().unwrap_or(0);
    let high = group.iter().map(|wish| wish.core.high).max().unwrap_or(0);
    let centred = low.saturating_sub(SPAN.saturating_sub(high.saturating_sub(low)) / 2);
    let first = group.iter().map(|wish| wish.range.low).min().unwrap_or(0);
    let last = group.iter().map(|wish| wish.range.high).max().unwrap_or(0).saturating_sub(SPAN);
    let before = centred.min(last).max(first);
    // An offset at the end of a node belongs to that node: the next one begins one byte later.
    ChunkWindow { from: if before == 0 { 0 } else { before.saturating_add(1) }, wishes: group.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// An offset in a range of at most 20 MB.
    fn wish() -> impl Strategy<Value = Wish> {
        (0u64..20_000_000, 0u64..2_000_000, 0u64..2_000_000).prop_map(|(low, len, offset)| {
            let high = low + len;
            Wish::near(low + offset % (len + 1), OffsetRange { low, high })
        })
    }

    proptest! {
        /// Each window covers its own group, so that every request brings some key on.
        #[test]
        fn every_wish_is_covered(mut wishes in proptest::collection::vec(wish(), 1..80)) {
            let windows = windows(&mut wishes);
            prop_assert_eq!(windows.iter().map(|window| window.wishes).sum::<usize>(), wishes.len());
            prop_assert!(windows.is_sorted_by_key(|window| core::cmp::Reverse(window.wishes)));
            for wish in &wishes {
                prop_assert!(windows.iter().any(|window| wish.is_covered(window.from)), "{:?}", wish);
            }
            let end = wishes.iter().map(|wish| wish.range.high).max().unwrap();
            prop_assert!(windows.iter().all(|window| window.from <= end + 1));
        }
    }

    #[test]
    fn the_next_bits_of_a_key_give_its_place() {
        let range = OffsetRange { low: 1_000_000, high: 9_000_000 };
        for (key, offset) in [([0u8; 4], 0), ([0x80, 0, 0, 0], 4_000_000), ([0x40, 0, 0, 0], 2_000_000)] {
            let wish = Wish::interpolated(Bits::of_key(&key), range);
            let middle = range.low + offset;
            assert!(wish.core.low <= middle && middle <= wish.core.high, "{wish:?}");
            assert!(wish.core.len() <= 2 * MARGIN);
        }
    }

    #[test]
    fn a_window_stays_inside_the_range_of_its_wishes() {
        let range = OffsetRange { low: 100_000, high: 900_000 };
        let from = |point| windows(&mut [Wish::near(point, range)]).first().map(|window| window.from);
        assert_eq!(from(100_000), Some(100_001));
        assert_eq!(from(900_000), Some(900_000 - SPAN + 1));
        assert_eq!(from(500_000), Some(500_000 - SPAN / 2 + 1));
        // A small range is covered as a whole.
        let small = OffsetRange { low: 100_000, high: 100_010 };
        let window = windows(&mut [Wish::near(100_000, small)]).first().map(|window| window.from);
        assert!(window.is_some_and(|from| from <= 100_001 && from + SPAN >= 100_010));
    }
}
