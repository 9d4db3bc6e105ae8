//! All that can be read of a trie of which only some nodes are at hand.

use alloc::vec::Vec;
use alloy_primitives::{Bytes, B256};

use super::bits::Bits;
use super::node::{parse_node, Child, Node, Value};
use super::source::{NodeSource, WalkError};
use super::EMPTY_ROOT;

/// What is at hand of a trie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Keys with their values; long values only where they are at hand too.
    pub entries: Vec<(Vec<u8>, Bytes)>,
    /// Ways, bit by bit, to nodes that are not at hand.
    holes: Vec<Vec<bool>>,
}

impl Held {
    /// Everything that can be reached from a root. Nodes and values have been checked against their hashes before.
    ///
    /// # Errors
    /// Bytes under a hash that are not a node.
    pub fn new(src: &dyn NodeSource, root: B256) -> Result<Self, WalkError> {
        let mut held = Self::default();
        if root == EMPTY_ROOT {
            return Ok(held);
        }
        let mut open = alloc::vec![(root, Vec::new())];
        // Each node stands once under its parent, and a way ends after the longest key.
        while let Some((hash, way)) = open.pop() {
            let Some(bytes) = src.node(&hash) else {
                held.holes.push(way);
                continue;
            };
            let bad = |error| WalkError::Bad { hash, error };
            let node = parse_node(&bytes).map_err(bad)?;
            let way = held.take(src, way, &node);
            for (bit, child) in [(false, node.left), (true, node.right)] {
                let mut below = way.clone();
                below.push(bit);
                match child {
                    None => {}
                    Some(Child::Hash(hash)) => open.push((*hash, below)),
                    Some(Child::Embedded(bytes)) => {
                        held.take(src, below, &parse_node(bytes).map_err(bad)?);
                    }
                }
            }
        }
        Ok(held)
    }

    /// Keeps a node's value; the way to its children.
    fn take(&mut self, src: &dyn NodeSource, mut way: Vec<bool>, node: &Node<'_>) -> Vec<bool> {
        way.extend(bits(node.path));
        let value = match node.value {
            Value::None => None,
            Value::Inline(bytes) => Some(Bytes::copy_from_slice(bytes)),
            Value::Long { hash, .. } => src.node(hash),
        };
        self.entries.extend(value.map(|value| (packed(&way), value)));
        way
    }

    /// Whether all keys that begin with this one are known, present or absent.
    pub fn is_whole_below(&self, prefix: &[u8]) -> bool {
        let prefix: Vec<bool> = bits(Bits::of_key(prefix)).collect();
        let same = |hole: &&Vec<bool>| hole.iter().zip(&prefix).all(|(a, b)| a == b);
        !self.holes.iter().any(|hole| same(&hole))
    }
}

fn bits(bits: Bits<'_>) -> impl Iterator<Item = bool> + '_ {
    (0..bits.len()).filter_map(move |at| bits.get(at))
}

/// Keys are whole bytes.
fn packed(way: &[bool]) -> Vec<u8> {
    way.chunks(8).map(|byte| byte.iter().fold(0u8, |all, bit| (all << 1) | u8::from(*bit))).collect()
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;

    use super::*;
    use crate::trie::Trie;

    #[test]
    fn what_is_left_of_a_trie_without_some_nodes() {
        let mut trie = Trie::new();
        let mut keys: Vec<Vec<u8>> = (0..200u8).map(|n| alloc::vec![n.wrapping_mul(37), n, 1]).collect();
        keys.iter().for_each(|key| trie.put(key, alloc::vec![7; 1 + usize::from(key[1])]));
        let mut nodes = BTreeMap::new();
        trie.for_each_stored(&mut |hash, bytes| drop(nodes.insert(hash, bytes)));

        let mut whole = Held::new(&nodes, trie.root()).unwrap();
        whole.entries.sort();
        keys.sort();
        assert_eq!(whole.entries.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>(), keys);
        assert!(whole.entries.iter().all(|(key, value)| trie.get(key) == Some(value)));
        assert!(whole.is_whole_below(&[]) && whole.is_whole_below(&keys[9]));

        let gone = trie.proof(&keys[9]).pop().unwrap();
        nodes.remove(&alloy_primitives::keccak256(&gone));
        let part = Held::new(&nodes, trie.root()).unwrap();
        assert!(part.entries.len() < keys.len());
        assert!(!part.is_whole_below(&[]) && !part.is_whole_below(&keys[9][..1]));
        assert!(!part.is_whole_below(&keys[9]) && part.is_whole_below(&keys[100]));
        assert_eq!(Held::new(&BTreeMap::new(), EMPTY_ROOT), Ok(Held::default()));
    }
}
