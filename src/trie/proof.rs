//! Proof of one key: the nodes on its path, in order, as `eth_getProof` returns them.

use super::EMPTY_ROOT;
use super::bits::Bits;
use super::limits::{MAX_KEY_BYTES, MAX_PROOF_NODES};
use super::node::{Child, NodeStep, Value, is_childless, parse_node};
use super::proof_error::ProofError;
use super::wrap::unwrap_node;
use alloy_primitives::{B256, keccak256};

/// The end of a verified path, which borrows from the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaf<'a> {
    /// The key has no value.
    Absent,
    /// A value of 1 to 32 bytes.
    Inline(&'a [u8]),
    /// A longer value with this hash and length. The nodes do not contain its bytes.
    Long {
        /// keccak-256 of the value.
        hash: &'a B256,
        /// Length of the value in bytes.
        len: u32,
    },
}

/// The result of a verified proof, which borrows from the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProvenValue<'a> {
    /// The key has this value.
    Present(&'a [u8]),
    /// The key has no value.
    Absent,
}

impl<'a> ProvenValue<'a> {
    /// The value, or `None` if the proof shows that the key has none.
    pub fn value(self) -> Option<&'a [u8]> {
        match self {
            Self::Present(value) => Some(value),
            Self::Absent => None,
        }
    }
}

/// Checks the proof of `key` under `root`, value included. In addition to [`verify_path`], a long value (more
/// than 32 bytes) must be passed as `long_value` and match the proven hash and length. Passing a value in any
/// other case is an error.
pub fn verify_proof<'a, N: AsRef<[u8]>>(
    root: B256,
    key: &[u8],
    nodes: &'a [N],
    long_value: Option<&'a [u8]>,
) -> Result<ProvenValue<'a>, ProofError> {
    let leaf = verify_path(root, key, nodes)?;
    if let Leaf::Long { hash, len } = leaf {
        let value = long_value.ok_or(ProofError::LongValueMissing { hash: *hash, len })?;
        check_long_value(value, hash, len)?;
        return Ok(ProvenValue::Present(value));
    }
    if long_value.is_some() {
        return Err(ProofError::UnusedValue { index: 0 });
    }
    Ok(match leaf {
        Leaf::Inline(value) => ProvenValue::Present(value),
        _ => ProvenValue::Absent,
    })
}

/// Checks hash and length of a value of which a node states only these two.
pub(super) fn check_long_value(value: &[u8], hash: &B256, len: u32) -> Result<(), ProofError> {
    let found = keccak256(value);
    if found != *hash {
        return Err(ProofError::LongValueHash { expected: *hash, found });
    }
    if value.len() != len as usize {
        return Err(ProofError::LongValueLength { expected: len, found: value.len() });
    }
    Ok(())
}

/// Checks that `nodes` are exactly the path of `key` from `root` to its node, or to the node where the key
/// diverges from the trie. Nodes are raw or RLP-wrapped, root first or leaf first. If the last node is
/// embedded in its parent, it may be listed as well and must equal the bytes in the parent. No node is hashed
/// twice.
pub fn verify_path<'a, N: AsRef<[u8]>>(
    root: B256,
    key: &[u8],
    nodes: &'a [N],
) -> Result<Leaf<'a>, ProofError> {
    if key.len() > MAX_KEY_BYTES {
        return Err(ProofError::KeyTooLong { len: key.len(), max: MAX_KEY_BYTES });
    }
    let mut list = ProofNodes::new(nodes, &root)?;
    if root == EMPTY_ROOT {
        list.end()?;
        return Ok(Leaf::Absent);
    }
    let mut key = Bits::of_key(key);
    let mut expected = root;
    loop {
        let node = parse_node(list.next_hashed(&expected)?)?;
        match node.step(key) {
            NodeStep::Leaves => return list.finish(Leaf::Absent),
            NodeStep::Ends(value) => return list.finish(leaf(value)),
            NodeStep::Goes(Child::Hash(hash), rest) => (expected, key) = (*hash, rest),
            NodeStep::Goes(Child::Embedded(bytes), rest) => {
                list.skip_embedded(bytes)?;
                // An embedded node has no children, so the key ends in it or diverges from the trie.
                return match parse_node(bytes)?.step(rest) {
                    NodeStep::Ends(value) => list.finish(leaf(value)),
                    _ => list.finish(Leaf::Absent),
                };
            }
        }
    }
}

/// The value of a node as the end of a path.
fn leaf(value: Value<'_>) -> Leaf<'_> {
    match value {
        Value::None => Leaf::Absent,
        Value::Inline(bytes) => Leaf::Inline(bytes),
        Value::Long { hash, len } => Leaf::Long { hash, len },
    }
}

/// The listed nodes, read from the root down whatever their order.
pub(super) struct ProofNodes<'a, N> {
    nodes: &'a [N],
    /// Whether the root is the last node of the list.
    leaf_first: bool,
    /// Number of nodes that were read.
    next: usize,
    /// Hash of the first listed node, if it was computed to find the order.
    first_hash: Option<B256>,
}

impl<'a, N: AsRef<[u8]>> ProofNodes<'a, N> {
    /// Determines whether the root is listed first or last. In a list of several nodes, a first node without
    /// children is a leaf; otherwise the hash of the first node decides.
    pub(super) fn new(nodes: &'a [N], root: &B256) -> Result<Self, ProofError> {
        if nodes.len() > MAX_PROOF_NODES {
            let (count, max) = (nodes.len(), MAX_PROOF_NODES);
            return Err(ProofError::TooManyNodes { count, max });
        }
        let mut list = Self { nodes, leaf_first: false, next: 0, first_hash: None };
        if let [first, _, ..] = nodes {
            let first = unwrap_node(first.as_ref())?;
            if is_childless(first) {
                list.leaf_first = true;
            } else {
                let hash = keccak256(first);
                list.leaf_first = hash != *root;
                list.first_hash = Some(hash);
            }
        }
        Ok(list)
    }

    /// Position in the list of the next node.
    fn index(&self) -> usize {
        match self.leaf_first {
            true => self.nodes.len().saturating_sub(1).saturating_sub(self.next),
            false => self.next,
        }
    }

    /// The raw bytes of the next node, or `None` after the last one.
    fn peek(&self) -> Result<Option<&'a [u8]>, ProofError> {
        if self.next >= self.nodes.len() {
            return Ok(None);
        }
        self.nodes.get(self.index()).map(|node| unwrap_node(node.as_ref())).transpose()
    }

    /// The next node towards the leaf, unchecked, and its position in the list; `None` after the last one.
    pub(super) fn next(&mut self) -> Option<Result<(usize, &'a [u8]), ProofError>> {
        let index = self.index();
        let next = self.peek().map(|node| node.map(|bytes| (index, bytes))).transpose();
        self.next = self.next.saturating_add(1);
        next
    }

    /// The next node. Its hash must be `expected`.
    fn next_hashed(&mut self, expected: &B256) -> Result<&'a [u8], ProofError> {
        let bytes = self.peek()?.ok_or(ProofError::Missing { hash: *expected })?;
        let index = self.index();
        let found = match self.first_hash {
            Some(hash) if index == 0 => hash,
            _ => keccak256(bytes),
        };
        if found != *expected {
            return Err(ProofError::HashMismatch { index, expected: *expected, found });
        }
        self.next = self.next.saturating_add(1);
        Ok(bytes)
    }

    /// Skips the listed copy of an embedded node, if there is one. The copy must equal `embedded`.
    fn skip_embedded(&mut self, embedded: &[u8]) -> Result<(), ProofError> {
        match self.peek()? {
            Some(bytes) if bytes != embedded => Err(ProofError::EmbeddedDiffers { index: self.index() }),
            Some(_) => {
                self.next = self.next.saturating_add(1);
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Fails if nodes are left over.
    fn end(&self) -> Result<(), ProofError> {
        match self.next < self.nodes.len() {
            true => Err(ProofError::UnusedNode { index: self.index() }),
            false => Ok(()),
        }
    }

    /// Returns `leaf` if no nodes are left over.
    fn finish(&self, leaf: Leaf<'a>) -> Result<Leaf<'a>, ProofError> {
        self.end()?;
        Ok(leaf)
    }
}
