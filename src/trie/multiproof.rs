//! Proof of many keys by one set of nodes in any order.

use super::bits::Bits;
use super::limits::{
    MAX_KEY_BYTES, MAX_LONG_VALUE_BYTES, MAX_MULTIPROOF_KEYS, MAX_MULTIPROOF_NODES, MAX_PROVEN_BYTES,
};
use super::node::{parse_node, Child, Step, Value};
use super::proof_error::ProofError;
use super::source::NodeSource;
use super::wrap::unwrap_node;
use super::EMPTY_ROOT;
use alloc::collections::{btree_map::Entry, BTreeMap};
use alloc::vec::Vec;
use alloy_primitives::{keccak256, Bytes, B256};

/// Nodes and long values by their hash. Bytes only get in here through [`verify_multiproof`], so each
/// has the hash it stands under and was reached from a root; the set holds at most
/// [`MAX_PROVEN_BYTES`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProvenNodes {
    by_hash: BTreeMap<B256, Bytes>,
    bytes: usize,
}

impl ProvenNodes {
    /// Nothing proven yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of nodes and long values.
    pub fn len(&self) -> usize {
        self.by_hash.len()
    }

    /// True when nothing is held.
    pub fn is_empty(&self) -> bool {
        self.by_hash.is_empty()
    }

    /// Bytes of all nodes and long values.
    pub fn total_bytes(&self) -> usize {
        self.bytes
    }

    /// Takes in everything of `other`. On an error (the limit) what was taken in until then stays: it is
    /// proven all the same.
    pub fn merge(&mut self, other: Self) -> Result<(), ProofError> {
        other.by_hash.into_iter().try_for_each(|(hash, bytes)| self.insert(hash, bytes))
    }

    fn insert(&mut self, hash: B256, bytes: Bytes) -> Result<(), ProofError> {
        if self.by_hash.contains_key(&hash) {
            return Ok(());
        }
        self.bytes = within("proven nodes", self.bytes.saturating_add(bytes.len()), MAX_PROVEN_BYTES)?;
        self.by_hash.insert(hash, bytes);
        Ok(())
    }
}

impl NodeSource for ProvenNodes {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.by_hash.get(hash).cloned()
    }
}

/// Checks that `nodes` prove every key of `keys` under `root`, present or absent, and that each of them
/// is needed for one. Nodes are raw or RLP-wrapped, in any order; the same node may stand there several
/// times (proofs of several keys put together), and embedded nodes may be listed beside their parents.
/// `long_values` are values of more than 32 bytes in any order; one that no key has is an error, one that
/// is not given is not (code size and hash are proven without it).
pub fn verify_multiproof(
    root: B256,
    keys: &[impl AsRef<[u8]>],
    nodes: &[impl AsRef<[u8]>],
    long_values: &[impl AsRef<[u8]>],
) -> Result<ProvenNodes, ProofError> {
    if keys.len() > MAX_MULTIPROOF_KEYS {
        return Err(ProofError::TooManyKeys { count: keys.len(), max: MAX_MULTIPROOF_KEYS });
    }
    let mut given = Given::new(nodes)?;
    for key in keys {
        given.walk(root, key.as_ref())?;
    }
    let mut proven = ProvenNodes::new();
    given.take_used(&mut proven)?;
    given.take_values(long_values, &mut proven)?;
    Ok(proven)
}

/// What of `nodes` hangs together under `root`, whichever keys it is meant for: nodes that the root, or a node of
/// these, commits to, and the long values of such nodes. What does not is left out.
///
/// # Errors
/// More nodes or bytes than may be held, or a node that does not parse.
pub fn connected(
    root: B256,
    nodes: &[impl AsRef<[u8]>],
    long_values: &[impl AsRef<[u8]>],
) -> Result<ProvenNodes, ProofError> {
    let mut given = Given::new(nodes)?;
    let mut open = alloc::vec![root];
    // Each node is gone through once, and opens two more at most.
    while let Some(hash) = open.pop() {
        let Some(listed) = given.listed(&hash).filter(|listed| !listed.used) else { continue };
        listed.used = true;
        let node = parse_node(listed.bytes)?;
        given.reach(node.value);
        for child in [node.left, node.right].into_iter().flatten() {
            match child {
                Child::Hash(hash) => open.push(*hash),
                Child::Embedded(bytes) => given.reach(parse_node(bytes)?.value),
            }
        }
    }
    given.nodes.retain(|listed| listed.used);
    let mut proven = ProvenNodes::new();
    given.take_used(&mut proven)?;
    for value in long_values {
        // One that no node has is left out like a node.
        match given.take_values(core::slice::from_ref(value), &mut proven) {
            Ok(()) | Err(ProofError::UnusedValue { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(proven)
}

/// A listed node.
struct Listed<'a> {
    hash: B256,
    index: usize,
    bytes: &'a [u8],
    used: bool,
}

/// The listed nodes by their hash, and what the keys have reached.
struct Given<'a> {
    nodes: Vec<Listed<'a>>,
    /// Places in `nodes`.
    by_hash: BTreeMap<B256, u32>,
    embedded: Vec<&'a [u8]>,
    /// Lengths of long values.
    values: BTreeMap<B256, u32>,
}

impl<'a> Given<'a> {
    /// Hashes every listed node once.
    fn new(nodes: &'a [impl AsRef<[u8]>]) -> Result<Self, ProofError> {
        if nodes.len() > MAX_MULTIPROOF_NODES {
            let (count, max) = (nodes.len(), MAX_MULTIPROOF_NODES);
            return Err(ProofError::TooManyNodes { count, max });
        }
        let (mut listed, mut by_hash) = (Vec::with_capacity(nodes.len()), BTreeMap::new());
        for (index, node) in nodes.iter().enumerate() {
            let bytes = unwrap_node(node.as_ref())?;
            let hash = keccak256(bytes);
            if let Entry::Vacant(vacant) = by_hash.entry(hash) {
                // There are at most MAX_MULTIPROOF_NODES.
                vacant.insert(listed.len() as u32);
                listed.push(Listed { hash, index, bytes, used: false });
            }
        }
        Ok(Self { nodes: listed, by_hash, embedded: Vec::new(), values: BTreeMap::new() })
    }

    /// Follows a key to its end and marks what it needs.
    fn walk(&mut self, root: B256, key: &[u8]) -> Result<(), ProofError> {
        if key.len() > MAX_KEY_BYTES {
            return Err(ProofError::KeyTooLong { len: key.len(), max: MAX_KEY_BYTES });
        }
        if root == EMPTY_ROOT {
            return Ok(());
        }
        let mut key = Bits::of_key(key);
        let mut hash = root;
        loop {
            let listed = self.listed(&hash).ok_or(ProofError::Missing { hash })?;
            listed.used = true;
            match parse_node(listed.bytes)?.step(key) {
                Step::Leaves => return Ok(()),
                Step::Ends(value) => {
                    self.reach(value);
                    return Ok(());
                }
                Step::Goes(Child::Hash(next), rest) => (hash, key) = (*next, rest),
                Step::Goes(Child::Embedded(bytes), rest) => {
                    self.embedded.push(bytes);
                    if let Step::Ends(value) = parse_node(bytes)?.step(rest) {
                        self.reach(value);
                    }
                    return Ok(());
                }
            }
        }
    }

    fn listed(&mut self, hash: &B256) -> Option<&mut Listed<'a>> {
        let place = *self.by_hash.get(hash)?;
        self.nodes.get_mut(place as usize)
    }

    fn reach(&mut self, value: Value<'_>) {
        if let Value::Long { hash, len } = value {
            self.values.insert(*hash, len);
        }
    }

    /// Hands over the nodes that were reached. A node that was not must be the copy of an embedded one
    /// that was.
    fn take_used(&mut self, proven: &mut ProvenNodes) -> Result<(), ProofError> {
        let mut embedded = BTreeMap::new();
        if self.nodes.iter().any(|listed| !listed.used) {
            embedded.extend(self.embedded.iter().map(|bytes| (keccak256(bytes), 0)));
        }
        for listed in &self.nodes {
            if listed.used {
                proven.insert(listed.hash, Bytes::copy_from_slice(listed.bytes))?;
            } else if !embedded.contains_key(&listed.hash) {
                return Err(ProofError::UnusedNode { index: listed.index });
            }
        }
        Ok(())
    }

    /// Hands over the long values, each of which must be reached and have the length stated there.
    fn take_values(&self, values: &[impl AsRef<[u8]>], proven: &mut ProvenNodes) -> Result<(), ProofError> {
        let mut bytes = 0usize;
        for (index, value) in values.iter().enumerate() {
            let value = value.as_ref();
            bytes = within("long values", bytes.saturating_add(value.len()), MAX_LONG_VALUE_BYTES)?;
            let hash = keccak256(value);
            let len = *self.values.get(&hash).ok_or(ProofError::UnusedValue { index })?;
            if value.len() != len as usize {
                return Err(ProofError::LongValueLength { expected: len, found: value.len() });
            }
            proven.insert(hash, Bytes::copy_from_slice(value))?;
        }
        Ok(())
    }
}

/// `bytes`, if not more than `max`.
fn within(what: &'static str, bytes: usize, max: usize) -> Result<usize, ProofError> {
    match bytes <= max {
        true => Ok(bytes),
        false => Err(ProofError::TooManyBytes { what, bytes, max }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit holds for what is gathered over several proofs, and what is there already is not
    /// counted twice.
    #[test]
    fn proven_nodes_are_bounded() {
        let set = |byte: u8, len: usize| {
            let mut set = ProvenNodes::new();
            set.insert(B256::repeat_byte(byte), Bytes::from(alloc::vec![0; len])).unwrap();
            set
        };
        let mut all = set(1, MAX_PROVEN_BYTES);
        all.merge(set(1, 9)).unwrap();
        assert_eq!(all.total_bytes(), MAX_PROVEN_BYTES);
        let bytes = MAX_PROVEN_BYTES + 1;
        let expected = ProofError::TooManyBytes { what: "proven nodes", bytes, max: MAX_PROVEN_BYTES };
        assert_eq!(all.merge(set(2, 1)), Err(expected));
        assert_eq!(all.len(), 1);
    }
}
