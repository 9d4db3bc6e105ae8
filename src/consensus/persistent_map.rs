//! A persistent map: clones share their content, so readers keep an old state while the writer changes its
//! copy. Header chains and states of executed chains use it.
//!
//! The map is a 16-way trie over the nibbles (half bytes) of the key. Keys are hashes, addresses or block numbers. Numbers are read from
//! their low nibble up, so that consecutive ones spread evenly over the branches, as the others do.
//!
//! This is our own code because `rpds` 1.2 takes twice as long to insert, and the licence of `imbl` (MPL-2.0) is not
//! among those that `deny.toml` allows.

use alloc::sync::Arc;

use crate::types::{Address, B256};

/// Number of children of a branch.
const WIDTH: usize = 16;

/// A key as a sequence of nibbles. Different keys have different sequences.
pub(crate) trait MapKey: Copy + Eq {
    /// The nibble at a level, below [`WIDTH`].
    fn nibble(&self, level: usize) -> usize;
}

/// The nibble of bytes at a level, the high half of the first byte first; 0 behind the end.
fn nibble_of(bytes: &[u8], level: usize) -> usize {
    let byte = bytes.get(level / 2).copied().unwrap_or(0);
    usize::from(if level.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
}

impl MapKey for B256 {
    fn nibble(&self, level: usize) -> usize {
        nibble_of(self.as_slice(), level)
    }
}

impl MapKey for Address {
    fn nibble(&self, level: usize) -> usize {
        nibble_of(self.as_slice(), level)
    }
}

impl MapKey for u64 {
    fn nibble(&self, level: usize) -> usize {
        // A number has 16 nibbles, at the levels 0 to 15.
        (self >> level.min(15).saturating_mul(4) & 15) as usize
    }
}

/// A node of the trie. A leaf is at the first level at which its key differs from all others.
#[derive(Debug, Clone)]
enum MapNode<K, V> {
    Leaf(K, V),
    Branch([Option<Arc<MapNode<K, V>>>; WIDTH]),
}

/// The map. Its depth is at most the number of nibbles of a key: 64 for hashes, 40 for addresses, 16 for
/// numbers.
#[derive(Debug, Clone)]
pub(crate) struct PersistentMap<K, V> {
    root: Option<Arc<MapNode<K, V>>>,
    len: usize,
}

impl<K, V> Default for PersistentMap<K, V> {
    fn default() -> Self {
        Self { root: None, len: 0 }
    }
}

impl<K: MapKey, V: Clone> PersistentMap<K, V> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut node = self.root.as_ref()?;
        let mut level = 0usize;
        loop {
            match &**node {
                MapNode::Leaf(found, value) => return (found == key).then_some(value),
                MapNode::Branch(children) => node = children.get(key.nibble(level))?.as_ref()?,
            }
            level = level.saturating_add(1);
        }
    }

    /// Passes every key with its value to `visit`, in no particular order.
    #[cfg(feature = "dev")]
    pub(crate) fn for_each(&self, visit: &mut dyn FnMut(&K, &V)) {
        let mut waiting: alloc::vec::Vec<&MapNode<K, V>> = self.root.as_deref().into_iter().collect();
        while let Some(node) = waiting.pop() {
            match node {
                MapNode::Leaf(key, value) => visit(key, value),
                MapNode::Branch(children) => waiting.extend(children.iter().flatten().map(|child| &**child)),
            }
        }
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if insert_at(&mut self.root, key, value, 0) {
            self.len = self.len.saturating_add(1);
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if remove_at(&mut self.root, key, 0) {
            self.len = self.len.saturating_sub(1);
        }
    }
}

/// Inserts below `slot` and returns whether the key is new.
fn insert_at<K: MapKey, V: Clone>(
    slot: &mut Option<Arc<MapNode<K, V>>>,
    key: K,
    value: V,
    level: usize,
) -> bool {
    let Some(node) = slot else {
        *slot = Some(Arc::new(MapNode::Leaf(key, value)));
        return true;
    };
    match Arc::make_mut(node) {
        MapNode::Leaf(found, old) if *found == key => {
            *old = value;
            return false;
        }
        MapNode::Branch(children) => {
            let child = children.get_mut(key.nibble(level));
            return child.is_some_and(|child| insert_at(child, key, value, level.saturating_add(1)));
        }
        MapNode::Leaf(..) => {}
    }
    // The leaf of another key moves down one level; then the new key is inserted next to it or further down.
    let leaf = slot.take();
    let mut children = [const { None }; WIDTH];
    if let Some(MapNode::Leaf(found, _)) = leaf.as_deref() {
        let at = found.nibble(level);
        if let Some(child) = children.get_mut(at) {
            *child = leaf;
        }
    }
    let new = children
        .get_mut(key.nibble(level))
        .is_some_and(|child| insert_at(child, key, value, level.saturating_add(1)));
    *slot = Some(Arc::new(MapNode::Branch(children)));
    new
}

/// Removes a key below `slot` and returns whether it was present.
fn remove_at<K: MapKey, V: Clone>(slot: &mut Option<Arc<MapNode<K, V>>>, key: &K, level: usize) -> bool {
    let Some(node) = slot else { return false };
    let removed = match Arc::make_mut(node) {
        MapNode::Leaf(found, _) => found == key,
        MapNode::Branch(children) => {
            let child = children.get_mut(key.nibble(level));
            if !child.is_some_and(|child| remove_at(child, key, level.saturating_add(1))) {
                return false;
            }
            if let Some(only) = sole_leaf(children) {
                *slot = Some(only);
                return true;
            }
            // A branch has at least two leaves below it, so it is not empty here.
            return true;
        }
    };
    if removed {
        *slot = None;
    }
    removed
}

/// The only child, if it is a leaf, which can then replace the branch.
fn sole_leaf<K, V>(children: &[Option<Arc<MapNode<K, V>>>; WIDTH]) -> Option<Arc<MapNode<K, V>>> {
    let mut present = children.iter().flatten();
    let first = present.next()?;
    let alone = present.next().is_none() && matches!(**first, MapNode::Leaf(..));
    alone.then(|| first.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn key(i: u16) -> B256 {
        // Long common prefixes create deep branches.
        let mut k = [0u8; 32];
        k[5] = (i % 3) as u8;
        k[30..].copy_from_slice(&i.to_be_bytes());
        B256::from(k)
    }

    proptest! {
        #[test]
        fn the_map_equals_a_btree_map_and_clones_keep_old_states(ops in proptest::collection::vec((any::<u16>(), any::<bool>()), 1..200)) {
            let mut map = PersistentMap::default();
            let mut numbers = PersistentMap::default();
            let mut model = BTreeMap::new();
            let mut history = Vec::new();
            for (i, (k, add)) in ops.into_iter().enumerate() {
                let k = k % 300;
                if add {
                    map.insert(key(k), i);
                    numbers.insert(u64::from(k), i);
                    model.insert(k, i);
                } else {
                    map.remove(&key(k));
                    numbers.remove(&u64::from(k));
                    model.remove(&k);
                }
                history.push((map.clone(), numbers.clone(), model.clone()));
            }
            for (map, numbers, model) in history {
                prop_assert_eq!(numbers.len(), model.len());
                for k in 0..300u16 {
                    prop_assert_eq!(numbers.get(&u64::from(k)), model.get(&k));
                    prop_assert_eq!(map.get(&key(k)), model.get(&k));
                }
            }
        }
    }

    #[test]
    fn removing_all_keys_leaves_an_empty_map() {
        let mut map = PersistentMap::default();
        (0..500u64).for_each(|i| map.insert(i * 16, i));
        (0..500u64).for_each(|i| map.remove(&(i * 16)));
        assert!(map.root.is_none());
        assert_eq!(map.len(), 0);
    }
}
