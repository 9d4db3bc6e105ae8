//! Proves a chunk under a state root: rebuilds the tree of its nodes, and hashes each of them up to the root.
//!
//! A chunk is a list of five: ancestors before the range with the hashes of their left children (`pre`), the nodes of the range
//! (`nodes`), the hash of the first node's left child (`firstLeft`), the hashes of the last node's children (`last`), and ancestors
//! after the range with the hashes of their right children (`post`).

use alloc::vec::Vec;

use alloy_primitives::B256;
use rootlight::types::FieldError;
use rootlight::types::rlp::{RlpReader, fixed};

use super::encoded::ChunkNode;
use super::error::ChunkError;
use super::extent::Extent;
use super::limits::{MAX_PATH_NODES, MAX_RANGE_NODES};
use super::pieces::Pieces;
use super::position::{CompleteNode, Positions};

/// Nodes and long values of a state, all of them committed to by its root.
#[derive(Debug, Clone)]
pub struct ProvenChunk<'a> {
    pieces: Pieces<'a>,
    trie_size: u64,
}

impl ProvenChunk<'_> {
    /// Each node and each long value with its keccak-256. Nodes are in the form of RSKIP-107.
    pub fn iter(&self) -> impl Iterator<Item = (&B256, &[u8])> {
        self.pieces.iter()
    }

    /// Number of nodes and long values.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// False: a proven chunk contains at least the root.
    pub fn is_empty(&self) -> bool {
        self.pieces.len() == 0
    }

    /// Size of the whole state in bytes, which the root commits to.
    pub const fn trie_size(&self) -> u64 {
        self.trie_size
    }
}

/// Proves that the chunk is the range of the state with this root that begins with the node at offset `from`. Every node
/// and every long value is hashed once; the root, a node in the chunk, commits to all others.
///
/// # Errors
/// [`ChunkError`]: the chunk is malformed, has another root, begins at another offset, or contains a node that no other of its
/// nodes commits to.
pub fn prove<'a>(chunk: &'a [u8], root: &B256, from: u64) -> Result<ProvenChunk<'a>, ChunkError> {
    let mut lists = RlpReader::list(chunk, "chunk")?;
    let before = lists.next_list("chunk.pre")?;
    let range = lists.next_list("chunk.nodes")?;
    let first_left = optional_hash(&mut lists, "chunk.firstLeft")?;
    let last = last_hashes(lists.next_list("chunk.last")?)?;
    let after = lists.next_list("chunk.post")?;
    lists.finish("chunk")?;

    let mut recovery = Recovery::new(chunk.len());
    let given = GivenHashes { first_left, last };
    recovery.read_before(before)?;
    recovery.first = recovery.count;
    recovery.read_range(range, &given)?;
    recovery.read_after(after, &given)?;
    recovery.finish(root, from)
}

/// The hashes that a chunk contains besides those in pairs with nodes.
struct GivenHashes {
    /// Left child of the first node of the range.
    first_left: Option<B256>,
    /// Children of the last node of the range. `None` if there is no node in the range.
    last: Option<[Option<B256>; 2]>,
}

/// A node whose left subtree is complete, and whose right subtree is not.
struct UnfinishedNode<'a> {
    index: usize,
    node: ChunkNode<'a>,
    /// The hash of its left child: the given one, or that of the node in the chunk.
    left: Option<B256>,
    /// The given hash of its right child.
    right: Option<B256>,
}

/// Builds the tree of the nodes, which come in the order of their keys. The size of its subtrees shows where a node belongs: it is an
/// ancestor of its neighbours with smaller sizes. All nodes on the stack `open` are ancestors of the next node, or become its left
/// subtree.
struct Recovery<'a> {
    open: Vec<UnfinishedNode<'a>>,
    pieces: Pieces<'a>,
    positions: Positions,
    /// Number of nodes that were added.
    count: usize,
    /// Position of the first node of the range.
    first: usize,
}

impl<'a> Recovery<'a> {
    /// `bytes` is the length of the chunk.
    fn new(bytes: usize) -> Self {
        // Estimates for the first allocation: a node takes about 16 bytes in a chunk, and four times as many with its hashes.
        let (nodes, bytes) = (bytes / 16, bytes.saturating_mul(4));
        Self {
            open: Vec::new(),
            pieces: Pieces::with_capacity(nodes, bytes),
            positions: Positions::with_capacity(nodes),
            count: 0,
            first: 0,
        }
    }

    /// Reads the ancestors in whose right subtree the range begins.
    fn read_before(&mut self, mut list: RlpReader<'a>) -> Result<(), ChunkError> {
        let mut count = 0usize;
        while !list.is_empty() {
            let (node, left) = pair(&mut list, "chunk.pre")?;
            self.add(node, [left, None])?;
            count = at_most(count, MAX_PATH_NODES)?;
        }
        Ok(())
    }

    /// Reads the nodes of the range.
    fn read_range(&mut self, mut list: RlpReader<'a>, given: &GivenHashes) -> Result<(), ChunkError> {
        let mut count = 0usize;
        if list.is_empty() != given.last.is_none() {
            return Err(ChunkError::LastHashes);
        }
        while !list.is_empty() {
            let node = list.next_str("chunk.nodes")?;
            let mut hashes = [None; 2];
            if count == 0 {
                hashes = [given.first_left, None];
            }
            if let (true, Some([left, right])) = (list.is_empty(), given.last) {
                // A single node is the first and the last one: both given hashes are of its left child.
                let [first_left, _] = hashes;
                if count == 0 && first_left != left {
                    return Err(ChunkError::HashDiffers(self.count));
                }
                hashes = [left, right];
            }
            self.add(node, hashes)?;
            count = at_most(count, MAX_RANGE_NODES)?;
        }
        Ok(())
    }

    /// Reads the ancestors of the last node that come after it, the nearest first.
    fn read_after(&mut self, mut list: RlpReader<'a>, given: &GivenHashes) -> Result<(), ChunkError> {
        let mut count = 0usize;
        while !list.is_empty() {
            let (node, right) = pair(&mut list, "chunk.post")?;
            // Without a node in the range, the first one after it is the first node of all.
            let left = given.first_left.filter(|_| count == 0 && given.last.is_none());
            self.add(node, [left, right])?;
            count = at_most(count, MAX_PATH_NODES)?;
        }
        Ok(())
    }

    /// Adds the next node with the hashes that are given for its children.
    fn add(&mut self, bytes: &'a [u8], [left, right]: [Option<B256>; 2]) -> Result<(), ChunkError> {
        let index = self.count;
        let node = ChunkNode::parse(bytes).map_err(|rule| ChunkError::Node { index, rule })?;
        // The last closed node, which is the right child of the one below it on the stack, and in the end the left child of the new
        // node.
        let mut below = None;
        while let Some(top) = self.open.pop_if(|top| top.node.children_size < node.children_size) {
            below = Some(self.close(top, below)?);
        }
        let left = child(node.has_left_hash(), left, below, index)?;
        self.positions.push(below.map(|(index, _)| index));
        self.open.push(UnfinishedNode { index, node, left, right });
        self.count = self.count.saturating_add(1);
        Ok(())
    }

    /// Serializes and hashes a node whose subtree is complete; `below` is its right child.
    fn close(
        &mut self,
        open: UnfinishedNode<'a>,
        below: Option<(usize, B256)>,
    ) -> Result<(usize, B256), ChunkError> {
        let UnfinishedNode { index, node, left, right } = open;
        let right = child(node.has_right_hash(), right, below, index)?;
        let serialized = node.serialize(left.as_ref(), right.as_ref(), &mut self.pieces);
        let (hash, extent) = serialized.ok_or(ChunkError::MissingHash(index))?;
        let (left_hashed, right_hashed) = (left.is_some(), right.is_some());
        let right = below.map(|(index, _)| index);
        self.positions.set_complete(index, CompleteNode { extent, left_hashed, right_hashed, right });
        Ok((index, hash))
    }

    /// Closes all open nodes, and checks the root and the offset of the range.
    fn finish(mut self, root: &B256, from: u64) -> Result<ProvenChunk<'a>, ChunkError> {
        let mut below = None;
        while let Some(top) = self.open.pop() {
            below = Some(self.close(top, below)?);
        }
        let (top, found) = below.ok_or(ChunkError::Empty)?;
        if found != *root {
            return Err(ChunkError::Root { expected: *root, found });
        }
        let Extent { total, .. } = self.positions.extent(top).ok_or(ChunkError::Empty)?;
        match self.positions.contains(top, self.first, from) {
            Some(true) => Ok(ProvenChunk { pieces: self.pieces, trie_size: total }),
            // `None`: the sizes contradict each other, so the offset cannot be shown to be that of the range.
            _ => Err(ChunkError::Elsewhere { from }),
        }
    }
}

/// The hash of a child: that of the child in the chunk, or the given one. If there are both, they must be equal.
fn child(
    exists: bool,
    given: Option<B256>,
    below: Option<(usize, B256)>,
    index: usize,
) -> Result<Option<B256>, ChunkError> {
    let below = below.map(|(_, hash)| hash);
    match (given, below) {
        (None, None) => Ok(None),
        _ if !exists => Err(ChunkError::NoSuchChild(index)),
        (Some(given), Some(below)) if given != below => Err(ChunkError::HashDiffers(index)),
        _ => Ok(below.or(given)),
    }
}

/// Reads a pair of a node and a hash.
fn pair<'a>(list: &mut RlpReader<'a>, field: &'static str) -> Result<(&'a [u8], Option<B256>), FieldError> {
    let mut pair = list.next_list(field)?;
    let node = pair.next_str(field)?;
    let hash = optional_hash(&mut pair, field)?;
    pair.finish(field)?;
    Ok((node, hash))
}

/// Reads the hashes of the last node's children; `None` if the list is empty.
fn last_hashes(mut list: RlpReader<'_>) -> Result<Option<[Option<B256>; 2]>, FieldError> {
    let field = "chunk.last";
    if list.is_empty() {
        return Ok(None);
    }
    let hashes = [optional_hash(&mut list, field)?, optional_hash(&mut list, field)?];
    list.finish(field)?;
    Ok(Some(hashes))
}

/// Reads a hash, or nothing as the empty string.
fn optional_hash(reader: &mut RlpReader<'_>, field: &'static str) -> Result<Option<B256>, FieldError> {
    match reader.next_str(field)? {
        [] => Ok(None),
        bytes => fixed::<32>(bytes, field).map(|hash| Some(hash.into())),
    }
}

/// Counts one more node, if there are fewer than `most`.
fn at_most(count: usize, most: usize) -> Result<usize, ChunkError> {
    match count < most {
        true => Ok(count.saturating_add(1)),
        false => Err(ChunkError::TooManyNodes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rootlight::types::rlp::{put_list, put_str};

    /// A chunk of these nodes in the range.
    fn chunk_of(nodes: &[Vec<u8>]) -> Vec<u8> {
        let (mut list, mut payload, mut out) = (Vec::new(), Vec::new(), Vec::new());
        nodes.iter().for_each(|node| put_str(&mut list, node));
        put_list(&mut payload, &[]);
        put_list(&mut payload, &list);
        put_str(&mut payload, &[]);
        put_list(&mut payload, if nodes.is_empty() { &[] } else { &[0x80, 0x80] });
        put_list(&mut payload, &[]);
        put_list(&mut out, &payload);
        out
    }

    fn refusal(nodes: &[Vec<u8>]) -> Option<ChunkError> {
        prove(&chunk_of(nodes), &B256::ZERO, 0).err()
    }

    /// A node whose only child has this size and is on the right.
    fn above(size: u32) -> Vec<u8> {
        [&[0x44, 0xfe][..], &size.to_le_bytes(), &[1]].concat()
    }

    #[test]
    fn a_trie_of_one_node_is_proven() {
        let node = alloc::vec![0x40, 1, 2, 3];
        let (root, chunk) = (alloy_primitives::keccak256(&node), chunk_of(core::slice::from_ref(&node)));
        for from in 0..=4 {
            let proven = prove(&chunk, &root, from).unwrap();
            assert_eq!((proven.len(), proven.trie_size()), (1, 4));
            assert!(proven.iter().all(|(hash, bytes)| *hash == root && bytes == node));
        }
        assert_eq!(prove(&chunk, &root, 5).err(), Some(ChunkError::Elsewhere { from: 5 }));
    }

    #[test]
    fn more_nodes_than_fit_into_the_range_are_refused() {
        let nodes = |count: usize| (0..count).map(|at| above(u32::MAX - at as u32)).collect::<Vec<_>>();
        // The last one lacks its child; the depth of all of them needs no stack.
        let last = MAX_RANGE_NODES - 1;
        assert_eq!(refusal(&nodes(MAX_RANGE_NODES)), Some(ChunkError::MissingHash(last)));
        assert_eq!(refusal(&nodes(MAX_RANGE_NODES + 1)), Some(ChunkError::TooManyNodes));
        assert_eq!(refusal(&[]), Some(ChunkError::Empty));
    }

    /// Leaves beside each other belong to nothing, whatever is above them.
    #[test]
    fn nodes_without_a_parent_are_refused() {
        let leaf = || alloc::vec![0x40, 1];
        assert_eq!(refusal(&[leaf(), leaf()]), Some(ChunkError::NoSuchChild(0)));
        assert_eq!(refusal(&[leaf(), above(100), leaf()]), Some(ChunkError::NoSuchChild(1)));
        assert!(matches!(refusal(&[above(100), leaf()]), Some(ChunkError::Root { .. })));
    }
}
