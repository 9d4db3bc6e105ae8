//! Insertion into short sorted lists.

use alloc::vec::Vec;

/// Puts an item into a sorted list, behind those that equal it. A sort of the whole list would add some 6 kB of code for each type of
/// element to a browser module.
pub(crate) fn insert_sorted<T: PartialOrd>(list: &mut Vec<T>, item: T) {
    list.insert(list.partition_point(|earlier| *earlier <= item), item);
}

#[cfg(test)]
mod tests {
    use super::insert_sorted;

    #[test]
    fn items_are_in_order() {
        let mut list = Vec::new();
        [3, 1, 2, 3, 0, 2].into_iter().for_each(|item| insert_sorted(&mut list, item));
        assert_eq!(list, [0, 1, 2, 2, 3, 3]);
    }
}
