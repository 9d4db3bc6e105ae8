//! One test for each strictness rule of trie nodes. Each input breaks only the rule in the test's name.

use crate::support;

use rootlight::trie::limits::*;
use rootlight::trie::*;
use support::nodes::{accepted, cat, leaf};

fn refused(bytes: &[u8], rule: NodeRule) {
    assert_eq!(parse_node(bytes), Err(NodeError { part: NodePart::Itself, rule }));
}

/// A leaf of `len` bytes with a path of 80 bits: 13 bytes without the value.
fn leaf_of_size(len: usize) -> Vec<u8> {
    cat(&[&[0x50, 0xff, 80], &[0x55; 10], &vec![7; len - 13]])
}

/// A leaf with a path of `bits` ones.
fn leaf_with_path(code: &[u8], bits: usize) -> Vec<u8> {
    let mut path = vec![0xff; bits.div_ceil(8)];
    if !bits.is_multiple_of(8) {
        *path.last_mut().unwrap() = !(0xff >> (bits % 8));
    }
    cat(&[&[0x50], code, &path, &[9]])
}

#[test]
fn node_without_bytes() {
    refused(&[], NodeRule::Empty);
}

#[test]
fn node_longer_than_the_limit() {
    let longest = cat(&[
        &[0x7f, 0xff, 0xfd, 0x00, 0x04],
        &[0xff; MAX_KEY_BYTES],
        &[44],
        &leaf_of_size(44),
        &[44],
        &leaf_of_size(44),
        &[0xff, 0, 0, 0, 0, 1, 0, 0, 0],
        &[1; 32],
        &[0, 0, 33],
    ]);
    assert_eq!(longest.len(), MAX_NODE_BYTES);
    accepted(&longest);
    refused(&cat(&[&longest, &[0]]), NodeRule::TooLarge(MAX_NODE_BYTES + 1));
}

#[test]
fn flags_version_bits() {
    accepted(&leaf(3));
    for version in [0x00, 0x80, 0xc0] {
        refused(&[version, 7, 7, 7], NodeRule::Version(version));
    }
}

#[test]
fn path_length_codes() {
    for (code, bits) in [
        (&[0u8][..], 1),
        (&[31], 32),
        (&[0xff, 33], 33),
        (&[0xff, 159], 159),
        (&[32], 160),
        (&[254], 382),
        (&[0xff, 0xfd, 0x7f, 0x01], 383),
        (&[0xff, 0xfd, 0x00, 0x04], MAX_PATH_BITS),
    ] {
        accepted(&leaf_with_path(code, bits));
    }
}

#[test]
fn path_length_with_another_code() {
    for (code, bits) in [
        (&[0xffu8, 1][..], 1),
        (&[0xff, 32], 32),
        (&[0xff, 160], 160),
        (&[0xff, 252], 252),
        (&[0xff, 0xfd, 0xfd, 0x00], 253),
        (&[0xff, 0xfd, 0x7e, 0x01], 382),
    ] {
        refused(&leaf_with_path(code, bits), NodeRule::PathCode(bits as u64));
    }
}

#[test]
fn path_flag_without_path() {
    refused(&[0x50, 0xff, 0, 9], NodeRule::PathCode(0));
}

#[test]
fn path_length_varint_minimal() {
    let field = NodeField::Path;
    refused(&leaf_with_path(&[0xff, 0xfd, 33, 0], 33), NodeRule::VarintNotMinimal(field, 33));
    refused(&leaf_with_path(&[0xff, 0xfe, 0x7f, 0x01, 0, 0], 383), NodeRule::VarintNotMinimal(field, 383));
    refused(
        &leaf_with_path(&[0xff, 0xff, 0x7f, 0x01, 0, 0, 0, 0, 0, 0], 383),
        NodeRule::VarintNotMinimal(field, 383),
    );
}

#[test]
fn path_longer_than_a_key() {
    refused(&leaf_with_path(&[0xff, 0xfd, 0x01, 0x04], 1025), NodeRule::PathTooLong(1025));
    let huge = [0x50, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    refused(&huge, NodeRule::PathTooLong(u64::MAX));
}

#[test]
fn path_padding_bits() {
    accepted(&[0x50, 4, 0b1010_1000, 9]);
    for bit in 0..3 {
        let last = 0b1010_1000 | 1 << bit;
        refused(&[0x50, 4, last, 9], NodeRule::PathPadding(last));
    }
}

#[test]
fn bytes_end_inside_a_field() {
    let truncated = |bytes: &[u8], field| refused(bytes, NodeRule::Truncated(field));
    truncated(&[0x50], NodeField::Path);
    truncated(&[0x50, 15, 0xff], NodeField::Path);
    truncated(&[0x50, 0xff, 0xfd, 1], NodeField::Path);
    truncated(&cat(&[&[0x48], &[1; 31]]), NodeField::LeftChild);
    truncated(&cat(&[&[0x44], &[1; 31]]), NodeField::RightChild);
    truncated(&[0x4a], NodeField::LeftChild);
    truncated(&[0x4a, 2, 0x40], NodeField::LeftChild);
    truncated(&[0x45, 2, 0x40], NodeField::RightChild);
    truncated(&cat(&[&[0x48], &[1; 32]]), NodeField::ChildrenSize);
    truncated(&cat(&[&[0x48], &[1; 32], &[0xfd, 1]]), NodeField::ChildrenSize);
    truncated(&cat(&[&[0x60], &[1; 31]]), NodeField::Value);
    truncated(&cat(&[&[0x60], &[1; 32], &[0, 1]]), NodeField::Value);
}

#[test]
fn embedded_flag_without_child() {
    refused(&[0x42, 7], NodeRule::EmbeddedWithoutChild(NodeField::LeftChild));
    refused(&[0x41, 7], NodeRule::EmbeddedWithoutChild(NodeField::RightChild));
    let right_only = cat(&[&[0x46], &[1; 32], &[5]]);
    refused(&right_only, NodeRule::EmbeddedWithoutChild(NodeField::LeftChild));
}

#[test]
fn embedded_node_size() {
    accepted(&cat(&[&[0x4a, 44], &leaf_of_size(44), &[45]]));
    let rule = NodeRule::EmbeddedTooLong(NodeField::LeftChild, 45);
    refused(&cat(&[&[0x4a, 45], &leaf_of_size(45), &[46]]), rule);
    let rule = NodeRule::EmbeddedTooLong(NodeField::RightChild, 45);
    refused(&cat(&[&[0x45, 45], &leaf_of_size(45), &[46]]), rule);
}

#[test]
fn embedded_node_with_children() {
    let inner = cat(&[&[0x48], &[1; 32], &[5]]);
    accepted(&inner);
    let rule = NodeRule::EmbeddedWithChildren(NodeField::LeftChild);
    refused(&cat(&[&[0x4a, 34], &inner, &[40]]), rule);
    let inner = cat(&[&[0x44], &[1; 32], &[5]]);
    let rule = NodeRule::EmbeddedWithChildren(NodeField::RightChild);
    refused(&cat(&[&[0x45, 34], &inner, &[40]]), rule);
    let nested = cat(&[&[0x4a, 1, 0x40, 2], &[7; 3]]);
    let rule = NodeRule::EmbeddedWithChildren(NodeField::LeftChild);
    refused(&cat(&[&[0x4a, nested.len() as u8], &nested, &[9]]), rule);
}

#[test]
fn embedded_node_must_obey_the_rules() {
    let at = |bytes: &[u8], part, rule| {
        assert_eq!(parse_node(bytes), Err(NodeError { part, rule }));
    };
    at(&[0x4a, 0, 9], NodePart::Left, NodeRule::Empty);
    at(&[0x4a, 2, 0x80, 7, 3], NodePart::Left, NodeRule::Version(0x80));
    at(&[0x45, 4, 0x50, 4, 0xff, 7, 5], NodePart::Right, NodeRule::PathPadding(0xff));
}

#[test]
fn children_size_varint_minimal() {
    let with = |size: &[u8]| cat(&[&[0x48], &[1; 32], size]);
    for size in [&[0u8][..], &[252], &[0xfd, 253, 0], &[0xfe, 0, 0, 1, 0], &[0xff, 0, 0, 0, 0, 1, 0, 0, 0]] {
        accepted(&with(size));
    }
    let field = NodeField::ChildrenSize;
    for (size, value) in [
        (&[0xfdu8, 252, 0][..], 252),
        (&[0xfe, 0xff, 0xff, 0, 0], 0xffff),
        (&[0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0], 0xffff_ffff),
    ] {
        refused(&with(size), NodeRule::VarintNotMinimal(field, value));
    }
}

#[test]
fn value_too_long_to_be_inside_the_node() {
    accepted(&leaf(0));
    accepted(&leaf(32));
    refused(&leaf(33), NodeRule::InlineValueTooLong(33));
}

#[test]
fn value_by_hash_too_short() {
    let with = |len: [u8; 3]| cat(&[&[0x60], &[1; 32], &len]);
    accepted(&with([0, 0, 33]));
    accepted(&with([0xff; 3]));
    refused(&with([0, 0, 32]), NodeRule::LongValueTooShort(32));
    refused(&with([0, 0, 0]), NodeRule::LongValueTooShort(0));
}

#[test]
fn bytes_after_a_value_by_hash() {
    refused(&cat(&[&[0x60], &[1; 32], &[0, 0, 33], &[0]]), NodeRule::TrailingBytes(1));
}
