//! Trie nodes built by hand.

use rootlight::trie::parse_node;

/// Concatenates parts.
pub fn cat(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Checks that the node is accepted and encodes to the same bytes.
pub fn accepted(bytes: &[u8]) {
    let node = parse_node(bytes).unwrap();
    assert_eq!(node.to_bytes(), bytes);
    assert_eq!(node.encoded_len(), bytes.len());
}

/// A leaf without a path and with a value of `len` bytes.
pub fn leaf(len: usize) -> Vec<u8> {
    cat(&[&[0x40], &vec![7; len]])
}
