//! A trie beside a plain map of the same content.

use std::collections::BTreeMap;

use alloy_primitives::Bytes;
use rootlight::trie::{Bits, Child, EMPTY_ROOT, NodeStep, Trie, parse_node};

use crate::input::Input;

/// Most changes of one trie.
const MAX_CHANGES: usize = 64;

/// The same content twice.
pub struct Model {
    /// The trie that is checked.
    pub trie: Trie,
    /// The same content in a plain map, which is the truth.
    pub map: BTreeMap<Vec<u8>, Bytes>,
}

impl Model {
    /// Puts and deletes what the input says, then compares trie and map.
    pub fn build(input: &mut Input<'_>) -> Self {
        let mut model = Self { trie: Trie::new(), map: BTreeMap::new() };
        let changes = input.below(MAX_CHANGES + 1);
        for salt in 0..changes {
            model.apply(input, salt);
        }
        model.check();
        model
    }

    fn apply(&mut self, input: &mut Input<'_>, salt: usize) {
        let kind = input.byte();
        let key = key(input, &self.map);
        match kind % 8 {
            0 => {
                let was = self.map.remove(&key).is_some();
                assert_eq!(self.trie.delete(&key), was);
            }
            1 => {
                let before = self.map.len();
                self.map.retain(|k, _| !k.starts_with(&key));
                assert_eq!(self.trie.delete_subtree(&key), self.map.len() < before);
            }
            _ => {
                let value = value(input.byte(), salt);
                self.trie.put(&key, value.clone());
                self.map.insert(key, value);
            }
        }
    }

    fn check(&self) {
        let mut fresh = Trie::new();
        for (key, value) in &self.map {
            fresh.put(key, value.clone());
            assert_eq!(self.trie.get(key), Some(value));
        }
        assert_eq!(fresh.root(), self.trie.root());
        assert_eq!(fresh.children_size(), self.trie.children_size());
        assert_eq!(self.trie.root() == EMPTY_ROOT, self.map.is_empty());
        let mut listed = Vec::new();
        self.trie.for_each(&mut |key, value| listed.push((key.to_vec(), value.clone())));
        assert!(listed.into_iter().eq(self.map.clone()));
    }
}

/// A key: one that is there, one that begins or continues it, or a new one.
pub fn key(input: &mut Input<'_>, map: &BTreeMap<Vec<u8>, Bytes>) -> Vec<u8> {
    let kind = input.byte();
    let mut key = match kind % 4 {
        0 => Vec::new(),
        _ => map.keys().nth(input.below(map.len())).cloned().unwrap_or_default(),
    };
    match kind / 4 % 4 {
        0 => {}
        1 => key.truncate(input.below(key.len() + 1)),
        2 => {
            let at = input.below(key.len());
            let byte = input.byte();
            if let Some(old) = key.get_mut(at) {
                *old ^= byte;
            }
        }
        _ => {
            let len = input.below(80);
            key.extend_from_slice(input.take(len));
        }
    }
    key.truncate(120);
    key
}

/// A value of 1 to 64 bytes; the salt makes equal choices different.
fn value(choice: u8, salt: usize) -> Bytes {
    let mut value = vec![choice; usize::from(choice % 64) + 1];
    if choice < 128 {
        value[0] = salt as u8;
    }
    value.into()
}

/// The proof of a key, root first, with the embedded last node listed too if `whole`.
pub fn proof(trie: &Trie, key: &[u8], whole: bool) -> Vec<Vec<u8>> {
    let mut nodes: Vec<Vec<u8>> = trie.proof(key).iter().map(|node| node.to_vec()).collect();
    let mut bits = Bits::of_key(key);
    let mut embedded = None;
    for node in &nodes {
        match parse_node(node).expect("our own node").step(bits) {
            NodeStep::Goes(Child::Embedded(inside), _) => embedded = Some(inside.to_vec()),
            NodeStep::Goes(_, rest) => bits = rest,
            _ => {}
        }
    }
    nodes.extend(embedded.filter(|_| whole));
    nodes
}
