//! Sorting short lists.

use alloc::vec::Vec;

/// These in order. For lists of some hundred elements at most: each is put into its place among those before it. The
/// library's sort is quicker on long lists, but each element type has its own copy of it, some three kilobytes that
/// browsers load.
pub(crate) fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut sorted = Vec::new();
    for one in all {
        let place = sorted.partition_point(|before| *before <= one);
        sorted.insert(place, one);
    }
    sorted
}
