//! Makes the chunks that a snapshot server sends from a node store, byte for byte as the reference node (rskj) does.

use alloc::vec::Vec;

use alloy_primitives::{B256, Bytes};
use rootlight::trie::limits::MAX_PATH_BITS;
use rootlight::trie::{Child, EMPTY_ROOT, Node, NodeSource, Value, parse_node};
use rootlight::types::rlp::{put_list, put_str};

use super::extent::{Extent, child_hash};
use super::limits::SPAN;
use crate::message::limits::MAX_CHUNK_BYTES;

/// Bytes that a chunk contains for a node besides its form, rounded up: a hash with its RLP prefix (33), and the prefixes of node and
/// pair, 3 bytes each below 64 KiB. [`ChunkBuilder`] counts with it to stop early; [`chunk`] checks the exact length.
const PAIR_OVERHEAD: usize = 40;

/// A chunk as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedChunk {
    /// The RLP list of the chunk, whose parts `proven.rs` lists.
    pub bytes: Vec<u8>,
    /// The offset after the range.
    pub to: u64,
    /// Whether the range reaches the end of the trie.
    pub complete: bool,
}

/// Size in bytes of the trie with this root; the largest offset of a chunk. `None` if the source lacks the root or the
/// trie is empty.
pub fn trie_size(source: &dyn NodeSource, root: &B256) -> Option<u64> {
    StoredNodeBytes::load(source, root).map(|top| top.extent.total)
}

/// The chunk of the trie with this root from this offset on: the nodes that end in the [`SPAN`] bytes from `from` on, and
/// the path to them. The work is bounded by the length of the longest key and the number of nodes in the range.
///
/// `None` if the source lacks a node, the trie is empty or ends before `from`, or the chunk would be longer than
/// [`MAX_CHUNK_BYTES`].
pub fn chunk(source: &dyn NodeSource, root: &B256, from: u64) -> Option<ServedChunk> {
    let to = from.checked_add(SPAN)?;
    let mut builder = ChunkBuilder { source, waiting: Vec::new(), bytes: 0 };
    let top = StoredNodeBytes::load(source, root)?;
    if from > top.extent.total {
        return None;
    }
    let complete = to > top.extent.total;
    let pre = builder.descend(top, from)?;
    let first = builder.waiting.last()?.node.left;
    let (nodes, last) = builder.range(to)?;
    let mut post = Vec::new();
    while let Some(PassedNode { node, .. }) = builder.waiting.pop() {
        builder.put_pair(&node, node.right.as_ref(), &mut post)?;
    }
    let mut payload = Vec::with_capacity(builder.bytes.saturating_add(64));
    put_list(&mut payload, &pre);
    put_list(&mut payload, &nodes);
    put_hash(&mut payload, first.as_ref());
    put_list(&mut payload, &last);
    put_list(&mut payload, &post);
    let mut bytes = Vec::with_capacity(payload.len().saturating_add(5));
    put_list(&mut bytes, &payload);
    (bytes.len() <= MAX_CHUNK_BYTES).then_some(ServedChunk { bytes, to, complete })
}

/// A node of the source.
struct StoredNodeBytes {
    /// The serialization.
    bytes: Bytes,
    extent: Extent,
    /// Hash of the left child, unless it is absent or embedded.
    left: Option<B256>,
    /// Hash of the right child.
    right: Option<B256>,
}

/// A node whose left subtree was passed.
struct PassedNode {
    node: StoredNodeBytes,
    /// The offset at which the node itself ends, before its right subtree.
    end: u64,
}

/// Walks through the trie in the order of its bytes, and writes nodes.
struct ChunkBuilder<'s> {
    source: &'s dyn NodeSource,
    /// The nodes that come next, the last one first.
    waiting: Vec<PassedNode>,
    /// Bytes of nodes that were put into the chunk.
    bytes: usize,
}

impl StoredNodeBytes {
    /// Loads a node; `None` if the source lacks it, or if it is not a node.
    fn load(source: &dyn NodeSource, hash: &B256) -> Option<Self> {
        if *hash == EMPTY_ROOT {
            return None;
        }
        let bytes = source.node(hash)?;
        let node = parse_node(&bytes).ok()?;
        let extent = Extent::of(&node, bytes.len());
        let (left, right) = (child_hash(node.left).copied(), child_hash(node.right).copied());
        Some(Self { bytes, extent, left, right })
    }

    /// The left child; an inner `None` if it is absent or embedded.
    fn load_left(&self, source: &dyn NodeSource) -> Option<Option<Self>> {
        match &self.left {
            Some(hash) => Self::load(source, hash).map(Some),
            None => Some(None),
        }
    }
}

impl ChunkBuilder<'_> {
    /// Goes down to the node at `from`, which becomes the next one. Returns the ancestors before the range, encoded with the hashes of
    /// their left children.
    fn descend(&mut self, top: StoredNodeBytes, from: u64) -> Option<Vec<u8>> {
        let (mut at, mut start, mut before) = (top, 0u64, Vec::new());
        for _ in 0..=MAX_PATH_BITS {
            let left = at.load_left(self.source)?;
            let own_start = start.checked_add(left.as_ref().map_or(0, |left| left.extent.total))?;
            let end = own_start.checked_add(at.extent.own)?;
            match left {
                Some(below) if from <= own_start => {
                    self.push(at, end)?;
                    at = below;
                }
                _ if from <= end => {
                    self.push(at, end)?;
                    return Some(before);
                }
                _ => {
                    let right = StoredNodeBytes::load(self.source, &at.right?)?;
                    self.put_pair(&at, at.left.as_ref(), &mut before)?;
                    (at, start) = (right, end);
                }
            }
        }
        None
    }

    /// Takes the nodes that end before `to`. Returns them encoded, and the hashes of the last node's children.
    fn range(&mut self, to: u64) -> Option<(Vec<u8>, Vec<u8>)> {
        let (mut nodes, mut last) = (Vec::new(), Vec::new());
        while let Some(PassedNode { node, end }) = self.waiting.pop_if(|next| next.end < to) {
            self.put_node(&node, &mut nodes)?;
            last.clear();
            put_hash(&mut last, node.left.as_ref());
            put_hash(&mut last, node.right.as_ref());
            let mut next = match node.right {
                Some(hash) => Some(StoredNodeBytes::load(self.source, &hash)?),
                None => None,
            };
            while let Some(below) = next {
                next = below.load_left(self.source)?;
                let start = end.checked_add(next.as_ref().map_or(0, |left| left.extent.total))?;
                let end = start.checked_add(below.extent.own)?;
                self.push(below, end)?;
            }
        }
        Some((nodes, last))
    }

    /// Adds the node that comes next. Fails if more nodes wait than a valid trie is deep: one for each bit of a key.
    fn push(&mut self, node: StoredNodeBytes, end: u64) -> Option<()> {
        self.waiting.push(PassedNode { node, end });
        (self.waiting.len() <= MAX_PATH_BITS.saturating_add(1)).then_some(())
    }

    /// Appends a list of a node and a hash.
    fn put_pair(&mut self, node: &StoredNodeBytes, hash: Option<&B256>, out: &mut Vec<u8>) -> Option<()> {
        let mut pair = Vec::new();
        self.put_node(node, &mut pair)?;
        put_hash(&mut pair, hash);
        put_list(out, &pair);
        Some(())
    }

    /// Appends a node in the form of chunks.
    fn put_node(&mut self, stored: &StoredNodeBytes, out: &mut Vec<u8>) -> Option<()> {
        let node = parse_node(&stored.bytes).ok()?;
        let mut form = Vec::with_capacity(stored.bytes.len());
        self.encode(&stored.bytes, &node, &mut form)?;
        self.bytes = self.bytes.saturating_add(form.len()).saturating_add(PAIR_OVERHEAD);
        put_str(out, &form);
        (self.bytes <= MAX_CHUNK_BYTES).then_some(())
    }

    /// Appends the chunk form of a node: without hashes of children, and with long values in full.
    fn encode(&self, bytes: &[u8], node: &Node<'_>, out: &mut Vec<u8>) -> Option<()> {
        // Flags and path are the serialization of a node without anything else.
        let bare = Node { left: None, right: None, children_size: 0, value: Value::None, ..*node };
        let (head, mut rest) = bytes.split_at_checked(bare.encoded_len())?;
        out.extend_from_slice(head);
        for child in [node.left, node.right].into_iter().flatten() {
            let Child::Embedded(embedded) = child else {
                rest = rest.get(32..)?;
                continue;
            };
            let mut form = Vec::with_capacity(embedded.len());
            self.put_rest(embedded, parse_node(embedded).ok()?.value, &mut form)?;
            let [_, length @ ..] = u32::try_from(form.len()).ok()?.to_be_bytes();
            out.extend_from_slice(&length);
            out.extend_from_slice(&form);
            rest = rest.get(1..)?.get(embedded.len()..)?;
        }
        self.put_rest(rest, node.value, out)
    }

    /// Appends the end of a serialization, with a long value instead of its hash and length.
    fn put_rest(&self, bytes: &[u8], value: Value<'_>, out: &mut Vec<u8>) -> Option<()> {
        let Value::Long { hash, len } = value else {
            out.extend_from_slice(bytes);
            return Some(());
        };
        // Without the hash and the length in three bytes.
        let (kept, _) = bytes.split_at_checked(bytes.len().checked_sub(32 + 3)?)?;
        out.extend_from_slice(kept);
        let value = self.source.node(hash).filter(|value| value.len() == len as usize)?;
        out.extend_from_slice(&value);
        Some(())
    }
}

/// Appends a hash, or the empty string for none.
fn put_hash(out: &mut Vec<u8>, hash: Option<&B256>) {
    put_str(out, hash.map_or(&[], |hash| hash.as_slice()));
}
