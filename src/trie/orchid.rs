//! The "orchid" node format of roots from before RSKIP-126 (Orchid is an earlier hard fork).
//!
//! ```text
//! 02 | flags: bit 0 secure, bit 1 long value | u16 children: bit 0 left, bit 1 right | u16 path bits
//!    | path | left hash | right hash | value, or its keccak-256 when longer than 32 bytes
//! ```
//! Numbers are big-endian; children are not embedded and no sizes are stored. This module only computes
//! roots; such nodes are never read.

use super::EMPTY_ROOT;
use super::tree::Trie;
use super::tree_node::{NodeValue, TreeNode};
use alloc::vec::Vec;
use alloy_primitives::{B256, keccak256};

/// First byte of every node: the number of children that a node may have.
const ARITY: u8 = 2;
/// Flag of a node in a trie whose keys are hashes.
const SECURE: u8 = 1;
/// Flag of a node that states its value by hash.
const LONG_VALUE: u8 = 2;

impl Trie {
    /// The root of the same keys and values in the orchid format. `secure` marks a trie whose keys are
    /// hashes: the old account trie, keyed by keccak-256 of the address. The caller hashes these keys.
    /// Transaction and receipt roots are not secure.
    pub fn orchid_root(&self, secure: bool) -> B256 {
        self.top.as_ref().map_or(EMPTY_ROOT, |top| hash(top, secure))
    }
}

/// The hash of a node in the orchid format, and of its descendants first.
fn hash(node: &TreeNode, secure: bool) -> B256 {
    let path = node.path.bits();
    let long = matches!(node.value, Some(NodeValue { long_hash: Some(_), .. }));
    let flags = [(secure, SECURE), (long, LONG_VALUE)];
    let children = [(node.left.is_some(), 1), (node.right.is_some(), 2)];
    // Keys have at most 32 bytes in these tries, so a path is far below 65,536 bits.
    let bits = u16::try_from(path.len()).unwrap_or(u16::MAX);
    let mut out = Vec::with_capacity(128);
    out.extend([ARITY, bitmap(flags), 0, bitmap(children)]);
    out.extend(bits.to_be_bytes());
    path.write_packed(&mut out);
    for child in [&node.left, &node.right].into_iter().flatten() {
        out.extend_from_slice(hash(child, secure).as_slice());
    }
    match &node.value {
        Some(NodeValue { long_hash: Some(hash), .. }) => out.extend_from_slice(hash.as_slice()),
        Some(NodeValue { bytes, .. }) => out.extend_from_slice(bytes),
        None => {}
    }
    keccak256(&out)
}

/// The bits that are set, as one byte.
fn bitmap(flags: [(bool, u8); 2]) -> u8 {
    flags.into_iter().filter(|(set, _)| *set).fold(0, |all, (_, flag)| all | flag)
}
