//! Tries above a base: they contain the changes since a block of another chain, and read all other values from that chain's state, of
//! which not every value is in memory. A development chain that forks another network uses them.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Debug;
use core::ops::Bound;

use alloy_primitives::{B256, Bytes, Keccak256};

/// The state of a block of another chain, from which a trie above it ([`Trie::above`](super::Trie::above)) reads the values that were not
/// changed since. The host supplies the values.
pub trait TrieBase: Debug + Send + Sync {
    /// The value under a key. A value that is not in memory counts as absent, and the implementation notes the key. The host
    /// then fetches the value, discards the result of the run, and runs again.
    fn value(&self, key: &[u8]) -> Option<&Bytes>;

    /// Root of the trie that contains these values.
    fn root(&self) -> B256;
}

/// A base, and the prefixes of the keys that were deleted from it.
#[derive(Clone, Debug)]
pub(super) struct Overlaid {
    base: Arc<dyn TrieBase>,
    /// The values of the base under keys with these prefixes are deleted. No prefix begins with another one.
    deleted: Arc<BTreeSet<Vec<u8>>>,
}

impl Overlaid {
    pub(super) fn new(base: Arc<dyn TrieBase>) -> Self {
        Self { base, deleted: Arc::default() }
    }

    /// The value of the base, unless it was deleted.
    pub(super) fn value(&self, key: &[u8]) -> Option<&Bytes> {
        if self.is_deleted(key) { None } else { self.base.value(key) }
    }

    /// Whether a deleted prefix is a prefix of this key, or the key itself.
    fn is_deleted(&self, key: &[u8]) -> bool {
        // A prefix of the key is the highest prefix that is not above the key, because no prefix begins with another one.
        let highest = self.deleted.range::<[u8], _>((Bound::Unbounded, Bound::Included(key))).next_back();
        highest.is_some_and(|prefix| key.starts_with(prefix))
    }

    /// Deletes the base's values under all keys with this prefix.
    pub(super) fn delete(&mut self, prefix: &[u8]) {
        if self.is_deleted(prefix) {
            return;
        }
        let deleted = Arc::make_mut(&mut self.deleted);
        deleted.retain(|longer| !longer.starts_with(prefix));
        deleted.insert(prefix.to_vec());
    }

    /// keccak-256 of the base's root, of the root of the values above the base, and of each deleted prefix in ascending order; the
    /// base's own root if nothing was changed. `has_no_values` says whether there are no values above the base.
    pub(super) fn root(&self, above: B256, has_no_values: bool) -> B256 {
        if has_no_values && self.deleted.is_empty() {
            return self.base.root();
        }
        let mut hasher = Keccak256::new();
        hasher.update(self.base.root());
        hasher.update(above);
        self.deleted.iter().for_each(|prefix| hasher.update(prefix));
        hasher.finalize()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec;

    use proptest::collection::vec as list;
    use proptest::prelude::*;

    use super::super::Trie;
    use super::*;

    #[derive(Debug)]
    struct Values(BTreeMap<Vec<u8>, Bytes>);

    impl TrieBase for Values {
        fn value(&self, key: &[u8]) -> Option<&Bytes> {
            self.0.get(key)
        }

        fn root(&self) -> B256 {
            B256::repeat_byte(7)
        }
    }

    fn base() -> Trie {
        let values = [(vec![1, 1], vec![5]), (vec![1, 2], vec![6; 40]), (vec![2, 1], vec![7])];
        Trie::above(Arc::new(Values(values.into_iter().map(|(key, value)| (key, value.into())).collect())))
    }

    #[test]
    fn changes_hide_the_values_below() {
        let mut trie = base();
        assert_eq!(trie.root(), B256::repeat_byte(7));
        assert_eq!(trie.get(&[1, 1]).unwrap()[..], [5]);
        assert_eq!(trie.value_hash(&[1, 2]), Some((alloy_primitives::keccak256([6; 40]), 40)));
        let before = trie.clone();
        trie.put(&[1, 1], vec![9]);
        assert!(trie.delete(&[2, 1]) && !trie.delete(&[2, 1]) && !trie.delete(&[3]));
        assert_eq!((trie.get(&[1, 1]).unwrap()[..].to_vec(), trie.get(&[2, 1])), (vec![9], None));
        assert_eq!(trie.value_hash(&[2, 1]), None);
        assert_eq!(before.get(&[2, 1]).unwrap()[..], [7], "a clone keeps what it had");
        trie.put_all(vec![(vec![2, 1], vec![8].into()), (vec![1, 1], Bytes::new())]);
        assert_eq!((trie.get(&[2, 1]).unwrap()[..].to_vec(), trie.get(&[1, 1])), (vec![8], None));
    }

    #[test]
    fn a_deleted_prefix_hides_what_is_below_and_not_what_is_written_later() {
        let mut trie = base();
        trie.put(&[1, 3], vec![4]);
        assert!(trie.delete_subtree(&[1]));
        assert!([1, 2, 3].iter().all(|last| trie.get(&[1, *last]).is_none()));
        assert_eq!(trie.get(&[2, 1]).unwrap()[..], [7]);
        trie.put(&[1, 2], vec![3]);
        assert_eq!(trie.get_with_hash_below(&[1], &[2]), None);
        assert_eq!((trie.get(&[1, 2]).unwrap()[..].to_vec(), trie.get(&[1, 1])), (vec![3], None));
    }

    #[test]
    fn a_prefix_that_is_deleted_below_a_deleted_one_changes_nothing() {
        let mut trie = base();
        trie.delete_subtree(&[1]);
        let root = trie.root();
        trie.delete_subtree(&[1, 1]);
        assert_eq!((trie.get(&[1, 1]), trie.get(&[1, 2]), trie.root()), (None, None, root));
    }

    /// A change of a trie.
    #[derive(Clone, Debug)]
    enum Change {
        Put(Vec<u8>, u8),
        Delete(Vec<u8>),
        DeleteSubtree(Vec<u8>),
    }

    /// A change at one of a few keys, so that prefixes of others occur.
    fn change() -> impl Strategy<Value = Change> {
        let key = || list(0..3_u8, 1..4);
        prop_oneof![
            (key(), 1..9_u8).prop_map(|(key, value)| Change::Put(key, value)),
            key().prop_map(Change::Delete),
            key().prop_map(Change::DeleteSubtree),
        ]
    }

    proptest! {
        #[test]
        fn a_trie_above_a_base_has_the_values_of_a_map(
            below in proptest::collection::btree_map(list(0..3_u8, 1..4), 1..9_u8, 0..20),
            changes in list(change(), 0..12),
        ) {
            let mut map = below;
            let values = map.iter().map(|(key, value)| (key.clone(), vec![*value].into())).collect();
            let mut trie = Trie::above(Arc::new(Values(values)));
            for change in changes {
                match change {
                    Change::Put(key, value) => {
                        trie.put(&key, vec![value]);
                        map.insert(key, value);
                    }
                    Change::Delete(key) => {
                        trie.delete(&key);
                        map.remove(&key);
                    }
                    Change::DeleteSubtree(prefix) => {
                        trie.delete_subtree(&prefix);
                        map.retain(|key, _| !key.starts_with(&prefix));
                    }
                }
                let keys = (1..4_u32).flat_map(|length| {
                    (0..3_u32.pow(length)).map(move |n| (0..length).map(|at| (n / 3_u32.pow(at) % 3) as u8).collect())
                });
                for key in keys {
                    let key: Vec<u8> = key;
                    let found = trie.get(&key).map(|value| value.to_vec());
                    prop_assert_eq!(found, map.get(&key).map(|value| vec![*value]), "{:?}", key);
                }
            }
        }
    }

    #[test]
    fn the_root_commits_to_every_change() {
        let (untouched, mut changed, mut removed, mut deleted) = (base(), base(), base(), base());
        changed.put(&[1, 1], vec![9]);
        removed.delete(&[1, 1]);
        deleted.delete_subtree(&[1, 1]);
        let mut again = base();
        again.put(&[1, 1], vec![5]);
        let roots = [&untouched, &changed, &removed, &deleted].map(|trie| trie.root());
        let different: BTreeSet<_> = roots.iter().collect();
        assert_eq!(different.len(), 4);
        assert_eq!(again.root(), untouched.root(), "the same value is no change");
    }

    #[test]
    fn a_walk_passes_over_what_was_removed() {
        let mut trie = base();
        trie.put(&[1, 3], vec![4]);
        trie.delete(&[1, 1]);
        let mut keys = vec![];
        trie.for_each(&mut |key, _| keys.push(key.to_vec()));
        assert_eq!(keys, [[1, 3]], "the base is not listed");
    }
}
