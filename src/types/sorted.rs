//! Sorting short lists.

use alloc::vec::Vec;

/// Sorts lists of up to some hundred elements by insertion. The standard library's sort is faster on long
/// lists, but the compiler emits a copy of it for each element type, about three kilobytes each in the
/// browser modules.
pub(crate) fn sorted<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut sorted = Vec::new();
    for element in all {
        let place = sorted.partition_point(|before| *before <= element);
        sorted.insert(place, element);
    }
    sorted
}
