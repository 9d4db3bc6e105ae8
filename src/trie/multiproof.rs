//! Proofs of many keys by one set of nodes, in any order; and the nodes of any set that belong to a root (a witness).

use super::EMPTY_ROOT;
use super::bits::Bits;
use super::limits::{
    MAX_KEY_BYTES, MAX_LONG_VALUE_BYTES, MAX_MULTIPROOF_KEYS, MAX_MULTIPROOF_NODES, MAX_PROVEN_BYTES,
};
use super::node::{Child, NodeStep, Value, parse_node};
use super::proof_error::ProofError;
use super::source::NodeSource;
use super::wrap::unwrap_node;
use alloc::collections::{BTreeMap, btree_map::Entry};
use alloc::vec::Vec;
use alloy_primitives::{B256, Bytes, keccak256};

/// Nodes and long values by their hash. Only [`verify_multiproof`] and [`connected`] add bytes, so each entry
/// has the hash of its key and was reached from a root. The set has at most [`MAX_PROVEN_BYTES`].
#[derive(Clone, Debug, Default)]
pub struct ProvenNodes {
    /// Positions in `nodes`. All maps of this file have one type, because each type adds three kilobytes to the browser
    /// modules.
    by_hash: BTreeMap<B256, u32>,
    nodes: Vec<Bytes>,
    /// Sum of the lengths of `nodes`.
    bytes: usize,
}

impl PartialEq for ProvenNodes {
    /// Whether both sets have the same hashes, and so the same bytes.
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.by_hash.keys().all(|hash| other.by_hash.contains_key(hash))
    }
}

impl Eq for ProvenNodes {}

impl ProvenNodes {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of nodes and long values.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// True if the set is empty.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Total bytes of all nodes and long values.
    pub fn total_bytes(&self) -> usize {
        self.bytes
    }

    /// Adds everything in `other`. If the byte limit is reached, what was added before stays: it is proven
    /// too.
    pub fn merge(&mut self, other: Self) -> Result<(), ProofError> {
        other.by_hash.iter().try_for_each(|(hash, index)| match other.nodes.get(*index as usize) {
            Some(node) => self.insert(*hash, node.clone()),
            None => Ok(()),
        })
    }

    fn insert(&mut self, hash: B256, bytes: Bytes) -> Result<(), ProofError> {
        if self.by_hash.contains_key(&hash) {
            return Ok(());
        }
        self.bytes = within("proven nodes", self.bytes.saturating_add(bytes.len()), MAX_PROVEN_BYTES)?;
        // There are fewer nodes than bytes.
        self.by_hash.insert(hash, self.nodes.len() as u32);
        self.nodes.push(bytes);
        Ok(())
    }
}

impl NodeSource for ProvenNodes {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.nodes.get(*self.by_hash.get(hash)? as usize).cloned()
    }
}

/// Checks that `nodes` prove every key of `keys` under `root`, as present or absent, and that each node is
/// needed for a key. Nodes are raw or RLP-wrapped, in any order. A node may be listed several times (proofs
/// of several keys put together), and embedded nodes may be listed besides their parents. `long_values` are
/// values of more than 32 bytes, in any order. A value that belongs to no key is an error; a missing one is
/// not, because the node proves its size and hash.
pub fn verify_multiproof(
    root: B256,
    keys: &[impl AsRef<[u8]>],
    nodes: &[impl AsRef<[u8]>],
    long_values: &[impl AsRef<[u8]>],
) -> Result<ProvenNodes, ProofError> {
    if keys.len() > MAX_MULTIPROOF_KEYS {
        return Err(ProofError::TooManyKeys { count: keys.len(), max: MAX_MULTIPROOF_KEYS });
    }
    let mut listed = MultiproofNodes::new(nodes)?;
    for key in keys {
        listed.walk(root, key.as_ref())?;
    }
    let mut proven = ProvenNodes::new();
    listed.take_used(&mut proven)?;
    listed.take_values(long_values, &mut proven)?;
    Ok(proven)
}

/// Returns the nodes that are connected to `root`: those that the root, or another connected node, commits
/// to, and the long values of these nodes. All other nodes and values are ignored.
///
/// # Errors
/// Fails if there are more nodes or bytes than allowed, or if a connected node does not parse.
pub fn connected(
    root: B256,
    nodes: &[impl AsRef<[u8]>],
    long_values: &[impl AsRef<[u8]>],
) -> Result<ProvenNodes, ProofError> {
    let mut listed = MultiproofNodes::new(nodes)?;
    let mut waiting = alloc::vec![root];
    // Each node is processed once and adds at most two more.
    while let Some(hash) = waiting.pop() {
        let Some(next) = listed.find(&hash).filter(|node| !node.used) else { continue };
        next.used = true;
        let node = parse_node(next.bytes)?;
        listed.reach(node.value);
        for child in [node.left, node.right].into_iter().flatten() {
            match child {
                Child::Hash(hash) => waiting.push(*hash),
                Child::Embedded(bytes) => listed.reach(parse_node(bytes)?.value),
            }
        }
    }
    listed.nodes.retain(|node| node.used);
    let mut proven = ProvenNodes::new();
    listed.take_used(&mut proven)?;
    for value in long_values {
        // A value that belongs to no connected node is ignored.
        match listed.take_values(core::slice::from_ref(value), &mut proven) {
            Ok(()) | Err(ProofError::UnusedValue { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(proven)
}

/// A node of a proof.
struct ListedNode<'a> {
    hash: B256,
    /// Position in the proof, for error messages.
    index: usize,
    bytes: &'a [u8],
    /// Whether the node was reached from the root.
    used: bool,
}

/// The nodes of a proof by hash, and the embedded nodes and long values that were reached from the root.
struct MultiproofNodes<'a> {
    nodes: Vec<ListedNode<'a>>,
    /// Positions in `nodes`.
    by_hash: BTreeMap<B256, u32>,
    /// Serializations of the embedded nodes that were reached.
    embedded: Vec<&'a [u8]>,
    /// Lengths of the long values that were reached, by hash.
    values: BTreeMap<B256, u32>,
}

impl<'a> MultiproofNodes<'a> {
    /// Hashes each listed node once.
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
                // The list has at most MAX_MULTIPROOF_NODES entries.
                vacant.insert(listed.len() as u32);
                listed.push(ListedNode { hash, index, bytes, used: false });
            }
        }
        Ok(Self { nodes: listed, by_hash, embedded: Vec::new(), values: BTreeMap::new() })
    }

    /// Follows a key from the root and marks the nodes on its path.
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
            let node = self.find(&hash).ok_or(ProofError::Missing { hash })?;
            node.used = true;
            match parse_node(node.bytes)?.step(key) {
                NodeStep::Leaves => return Ok(()),
                NodeStep::Ends(value) => {
                    self.reach(value);
                    return Ok(());
                }
                NodeStep::Goes(Child::Hash(next), rest) => (hash, key) = (*next, rest),
                NodeStep::Goes(Child::Embedded(bytes), rest) => {
                    self.embedded.push(bytes);
                    if let NodeStep::Ends(value) = parse_node(bytes)?.step(rest) {
                        self.reach(value);
                    }
                    return Ok(());
                }
            }
        }
    }

    /// The listed node with this hash.
    fn find(&mut self, hash: &B256) -> Option<&mut ListedNode<'a>> {
        let index = *self.by_hash.get(hash)?;
        self.nodes.get_mut(index as usize)
    }

    /// Records a long value that was reached.
    fn reach(&mut self, value: Value<'_>) {
        if let Value::Long { hash, len } = value {
            self.values.insert(*hash, len);
        }
    }

    /// Adds the nodes that were reached to `proven`. Any other node must be a copy of an embedded node that
    /// was reached.
    fn take_used(&mut self, proven: &mut ProvenNodes) -> Result<(), ProofError> {
        // Used as a set: the zeros have no meaning.
        let mut embedded = BTreeMap::new();
        if self.nodes.iter().any(|listed| !listed.used) {
            embedded.extend(self.embedded.iter().map(|bytes| (keccak256(bytes), 0u32)));
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

    /// Adds the long values to `proven`. Each value must have been reached and must have the length stated in its
    /// node.
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

/// Returns the number `bytes` if it is at most `max`.
fn within(what: &'static str, bytes: usize, max: usize) -> Result<usize, ProofError> {
    match bytes <= max {
        true => Ok(bytes),
        false => Err(ProofError::TooManyBytes { what, bytes, max }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The byte limit applies to the sum over merged proofs, and a node that is already in the set is not
    /// counted again.
    #[test]
    fn merged_proven_nodes_stay_within_the_byte_limit() {
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
