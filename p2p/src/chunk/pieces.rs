//! The nodes and long values of a chunk, each with its hash.

use alloc::vec::Vec;

use alloy_primitives::{B256, keccak256};

/// Nodes and long values by hash. Nodes are serialized one after the other into one buffer; long values stay in the
/// chunk.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces<'a> {
    buffer: Vec<u8>,
    list: Vec<(B256, PieceData<'a>)>,
}

/// The bytes of a node or a long value.
#[derive(Debug, Clone, Copy)]
enum PieceData<'a> {
    /// Start and length in the buffer.
    Node(usize, usize),
    Value(&'a [u8]),
}

impl<'a> Pieces<'a> {
    /// Allocates memory for so many nodes, and so many bytes of their serializations.
    pub(super) fn with_capacity(nodes: usize, bytes: usize) -> Self {
        Self { buffer: Vec::with_capacity(bytes), list: Vec::with_capacity(nodes) }
    }

    /// Where the next node starts in the buffer.
    pub(super) fn next_start(&self) -> usize {
        self.buffer.len()
    }

    /// Appends bytes to the node that is being serialized.
    pub(super) fn append(&mut self, part: &[u8]) {
        self.buffer.extend_from_slice(part);
    }

    /// Ends the node that starts at `start`, and returns its hash and length.
    pub(super) fn finish_node(&mut self, start: usize) -> (B256, usize) {
        let bytes = self.buffer.get(start..).unwrap_or(&[]);
        let (hash, len) = (keccak256(bytes), bytes.len());
        self.list.push((hash, PieceData::Node(start, len)));
        (hash, len)
    }

    /// Adds a long value with its hash.
    pub(super) fn push_value(&mut self, hash: B256, value: &'a [u8]) {
        self.list.push((hash, PieceData::Value(value)));
    }

    /// Number of nodes and values.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The nodes and values with their hashes.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&B256, &[u8])> {
        self.list.iter().map(|(hash, data)| {
            let bytes = match data {
                PieceData::Node(start, len) => {
                    self.buffer.get(*start..start.saturating_add(*len)).unwrap_or(&[])
                }
                PieceData::Value(value) => value,
            };
            (hash, bytes)
        })
    }
}
