//! Removes the RLP string around a trie node: in responses of `eth_getProof` nodes are wrapped, elsewhere raw.

use super::limits::MAX_NODE_BYTES;
use super::node_error::NodeRule;
use super::proof_error::ProofError;

/// Unwraps a node from its RLP string; a raw node is returned as it is. A raw node begins with 0x40 to 0x7f
/// and an RLP string of more than one byte with 0x80 or more, so the two cannot be confused. The RLP length
/// must be in its shortest form.
pub fn unwrap_node(bytes: &[u8]) -> Result<&[u8], ProofError> {
    let (content, claimed) = match bytes {
        [len @ 0x81..=0xb7, content @ ..] => (content, usize::from(len.saturating_sub(0x80))),
        [0xb8, len, content @ ..] => (content, usize::from(*len)),
        [0xb9, high, low, content @ ..] => (content, usize::from(u16::from_be_bytes([*high, *low]))),
        raw => return bounded(raw),
    };
    let shortest = match bytes.first() {
        Some(0x81) => content.first().is_some_and(|byte| *byte >= 0x80),
        Some(0xb8) => claimed > 55,
        Some(0xb9) => claimed > 255,
        _ => true,
    };
    if content.len() != claimed || !shortest {
        return Err(ProofError::BadWrapping { len: bytes.len() });
    }
    bounded(content)
}

/// Refuses a node that is longer than any valid one, before it is hashed.
fn bounded(node: &[u8]) -> Result<&[u8], ProofError> {
    match node.len() {
        0..=MAX_NODE_BYTES => Ok(node),
        len => Err(ProofError::Node(NodeRule::TooLarge(len).into())),
    }
}
