//! Reads a trie of which only some nodes are available, such as those of a witness, into memory.

use alloy_primitives::B256;

use super::EMPTY_ROOT;
use super::bits::Bits;
use super::node::{Child, Value, parse_node};
use super::persist::{LoadError, Loader};
use super::source::NodeSource;
use super::tree::Trie;

/// The available part of a trie.
pub struct PartialTrie<'a> {
    source: &'a dyn NodeSource,
    loader: Loader<'a>,
    root: B256,
    trie: Trie,
}

impl<'a> PartialTrie<'a> {
    /// Reads everything that can be reached from a root. The source must have checked its nodes and values
    /// against their hashes. Each node is read once, even if the trie contains it several times;
    /// `interrupted` is called from time to time.
    ///
    /// # Errors
    /// Fails if bytes do not parse as a node, if a key is longer than
    /// [`MAX_KEY_BYTES`](super::limits::MAX_KEY_BYTES), or if `interrupted` returns `true`.
    pub fn new(
        source: &'a dyn NodeSource,
        root: B256,
        interrupted: &'a dyn Fn() -> bool,
    ) -> Result<Self, LoadError> {
        let mut loader = Loader::partial(source, interrupted);
        let trie = loader.load(root)?;
        Ok(Self { source, loader, root, trie })
    }

    /// All keys whose values are available. The root of this trie differs if anything is missing.
    pub fn trie(&self) -> &Trie {
        &self.trie
    }

    /// Whether it is certain of every key with this prefix that it is present, with its value, or absent.
    pub fn is_whole_below(&self, prefix: &[u8]) -> bool {
        let (mut key, mut hash) = (Bits::of_key(prefix), self.root);
        // Each step consumes at least one bit of the key.
        while hash != EMPTY_ROOT && !self.loader.is_whole(&hash) {
            let Some(bytes) = self.source.node(&hash) else { return false };
            let Ok(node) = parse_node(&bytes) else { return false };
            let shared = key.common_prefix(node.path);
            let Some((bit, rest)) = key.skip(shared).split_first() else { return false };
            let child = if bit { node.right } else { node.left };
            match child.filter(|_| shared == node.path.len()) {
                Some(Child::Hash(next)) => (hash, key) = (*next, rest),
                // An embedded node has no children, so only a long value, which is stored outside of it, can be missing.
                Some(Child::Embedded(bytes)) => return self.has_value(bytes),
                // The key diverges from the trie here.
                None => return true,
            }
        }
        true
    }

    /// Whether the value of an embedded node is available.
    fn has_value(&self, node: &[u8]) -> bool {
        match parse_node(node).map(|node| node.value) {
            Ok(Value::Long { hash, .. }) => self.source.node(hash).is_some(),
            Ok(_) => true,
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::super::persist::tests::{doubled, leaf};
    use super::*;

    #[test]
    fn a_trie_with_missing_nodes_is_read_without_their_keys() {
        let mut trie = Trie::new();
        let mut keys: Vec<Vec<u8>> = (0..200u8).map(|n| alloc::vec![n.wrapping_mul(37), n, 1]).collect();
        keys.iter().for_each(|key| trie.put(key, alloc::vec![7; 1 + usize::from(key[1])]));
        let mut nodes = BTreeMap::new();
        trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));

        let whole = PartialTrie::new(&nodes, trie.root(), &|| false).unwrap();
        keys.sort();
        assert_eq!(entries(&whole), keys);
        assert!(keys.iter().all(|key| whole.trie().get(key) == trie.get(key)));
        assert!(whole.is_whole_below(&[]) && whole.is_whole_below(&keys[9]));

        let gone = trie.proof(&keys[9]).pop().unwrap();
        nodes.remove(&alloy_primitives::keccak256(&gone));
        let part = PartialTrie::new(&nodes, trie.root(), &|| false).unwrap();
        assert!(entries(&part).len() < keys.len());
        assert!(!part.is_whole_below(&[]) && !part.is_whole_below(&keys[9][..1]));
        assert!(!part.is_whole_below(&keys[9]) && part.is_whole_below(&keys[100]));
        let nothing = BTreeMap::new();
        assert!(PartialTrie::new(&nothing, EMPTY_ROOT, &|| true).unwrap().trie().is_empty());
        assert!(!PartialTrie::new(&nothing, trie.root(), &|| false).unwrap().is_whole_below(&[]));
        assert!(matches!(PartialTrie::new(&nodes, trie.root(), &|| true), Err(LoadError::Interrupted)));
    }

    /// A value of more than 32 bytes is stored apart from its node, which may be an embedded one.
    #[test]
    fn a_part_without_a_long_value_is_not_whole() {
        for keys in [&[&[1][..], &[2]][..], &[&[1, 1], &[1, 2], &[9; 8]], &[&[7]]] {
            let mut trie = Trie::new();
            keys.iter().for_each(|key| trie.put(key, alloc::vec![key[0]; 60]));
            let mut nodes = BTreeMap::new();
            trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));
            let whole = PartialTrie::new(&nodes, trie.root(), &|| false).unwrap();
            assert!(keys.iter().all(|key| whole.is_whole_below(key)) && whole.is_whole_below(&[]));
            for key in keys {
                let mut rest = nodes.clone();
                rest.remove(&alloy_primitives::keccak256(trie.get(key).unwrap())).unwrap();
                let part = PartialTrie::new(&rest, trie.root(), &|| false).unwrap();
                assert!(!part.is_whole_below(&[]) && !part.is_whole_below(key), "{key:?}");
            }
        }
    }

    fn entries(part: &PartialTrie<'_>) -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        part.trie().for_each(&mut |key, _| keys.push(key.to_vec()));
        keys
    }

    /// A subtree can occur in several places, as with contracts that have the same storage; it is read in
    /// each of them.
    #[test]
    fn repeated_subtrees_are_read_in_every_place() {
        let mut trie = Trie::new();
        for first in 0..40u8 {
            (0..20u8).for_each(|slot| trie.put(&[first, slot.wrapping_mul(29), 3], alloc::vec![slot; 60]));
        }
        let mut nodes = BTreeMap::new();
        trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));
        let part = PartialTrie::new(&nodes, trie.root(), &|| false).unwrap();
        assert_eq!(entries(&part).len(), 800);
        assert_eq!(part.trie().root(), trie.root());
    }

    /// A trie of 24 to 400 levels in which both children of each node are equal has 2^levels keys. The loader
    /// visits each node once, so reading takes one step per level.
    #[test]
    fn tries_of_repeated_children_are_read_in_linear_time() {
        for levels in [24, 60, 400] {
            let mut nodes = BTreeMap::new();
            let root = doubled(leaf(), levels, &mut nodes);
            let looks = core::cell::Cell::new(0);
            let interrupted = || {
                looks.set(looks.get() + 1);
                false
            };
            let part = PartialTrie::new(&nodes, root, &interrupted).unwrap();
            assert!(part.is_whole_below(&[7]) && (1..levels + 9).contains(&looks.get()), "{}", looks.get());
        }
        let mut nodes = BTreeMap::new();
        let root = doubled(leaf(), 2_000, &mut nodes);
        assert!(matches!(PartialTrie::new(&nodes, root, &|| false), Err(LoadError::TooDeep(_))));
    }
}
