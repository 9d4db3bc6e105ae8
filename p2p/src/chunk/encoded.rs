//! Reads the form that a node has in chunks, and makes the node's serialization (RSKIP-107) from it, whose hash proves the node.
//!
//! ```text
//! chunk          flags | path | embedded children: 3 bytes of length, chunk form | size | value, however long
//! serialization  flags | path | children: hash, or 1 byte of length, serialization | size | value, or its hash and length
//! ```
//! `flags` is one byte; `path` is the part of the key that the node shares, with its length; `size` is the size of both subtrees. A
//! long value is one of more than 32 bytes, which is stored apart from its node. Fields that both forms share are copied without
//! interpretation, because the hash of the serialization covers them.

use alloy_primitives::{B256, keccak256};
use rootlight::trie::flags::{
    LEFT, LEFT_EMBEDDED, LONG_VALUE, PATH, RIGHT, RIGHT_EMBEDDED, VERSION, VERSION_MASK,
};
use rootlight::trie::limits::{MAX_EMBEDDED_BYTES, MAX_INLINE_VALUE, MAX_PATH_BITS};

use super::error::EncodingRule;
use super::extent::Extent;
use super::pieces::Pieces;

/// Longest value: its length has three bytes.
const MAX_VALUE: usize = 0xff_ffff;

/// A node in the form of chunks, split into its fields.
#[derive(Clone, Copy)]
pub(super) struct ChunkNode<'a> {
    /// The parts of the node itself.
    own: OwnParts<'a>,
    left: ChunkChild<'a>,
    right: ChunkChild<'a>,
    /// The size as serialized; empty without children.
    size: &'a [u8],
    /// Bytes of both subtrees, as the node states them.
    pub(super) children_size: u64,
}

/// A child in the form of chunks.
#[derive(Clone, Copy)]
enum ChunkChild<'a> {
    Absent,
    /// The child is a node of its own; a chunk has its hash elsewhere, or computes it.
    Hashed,
    /// The child is a part of its parent's serialization.
    Embedded(OwnParts<'a>),
}

/// The parts of a node besides its children.
#[derive(Clone, Copy)]
struct OwnParts<'a> {
    /// Flags and path.
    head: &'a [u8],
    value: &'a [u8],
    /// Whether the value is long: the serialization has its hash and length.
    long: bool,
}

impl<'a> ChunkNode<'a> {
    /// Splits the fields.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, EncodingRule> {
        let mut rest = bytes;
        let flags = read_head(&mut rest)?;
        let head = before(bytes, rest);
        let left = read_child(&mut rest, flags & LEFT, flags & LEFT_EMBEDDED)?;
        let right = read_child(&mut rest, flags & RIGHT, flags & RIGHT_EMBEDDED)?;
        let after_children = rest;
        let is_leaf = flags & (LEFT | RIGHT) == 0;
        let children_size = if is_leaf { 0 } else { varint(&mut rest)? };
        let size = before(after_children, rest);
        if is_leaf && rest.is_empty() {
            return Err(EncodingRule::Nothing);
        }
        let own = OwnParts::new(head, rest, flags)?;
        Ok(Self { own, left, right, size, children_size })
    }

    /// Whether the left child is stored by hash.
    pub(super) const fn has_left_hash(&self) -> bool {
        matches!(self.left, ChunkChild::Hashed)
    }

    /// Whether the right child is stored by hash.
    pub(super) const fn has_right_hash(&self) -> bool {
        matches!(self.right, ChunkChild::Hashed)
    }

    /// Adds the serialization, and the long values of the node and its embedded children, to `pieces`. `left` and `right` are the
    /// hashes of children that are stored by hash. Returns the node's hash and extent; `None` if the hash of a child is missing.
    pub(super) fn serialize(
        &self,
        left: Option<&B256>,
        right: Option<&B256>,
        pieces: &mut Pieces<'a>,
    ) -> Option<(B256, Extent)> {
        let start = pieces.next_start();
        let mut embedded = 0u64;
        pieces.append(self.own.head);
        for (side, hash) in [(self.left, left), (self.right, right)] {
            match side {
                ChunkChild::Absent => {}
                ChunkChild::Hashed => pieces.append(hash?.as_slice()),
                ChunkChild::Embedded(own) => {
                    let len = own.serialized_len();
                    embedded = embedded.saturating_add(len as u64).saturating_add(own.long_len());
                    // The length was checked to be at most 44.
                    pieces.append(&[u8::try_from(len).unwrap_or(u8::MAX)]);
                    pieces.append(own.head);
                    own.append_value(pieces);
                }
            }
        }
        pieces.append(self.size);
        self.own.append_value(pieces);
        let (hash, len) = pieces.finish_node(start);
        Some((hash, Extent::new(len as u64, self.own.long_len(), self.children_size, embedded)))
    }
}

impl<'a> OwnParts<'a> {
    /// Checks that the length of the value agrees with the flags.
    fn new(head: &'a [u8], value: &'a [u8], flags: u8) -> Result<Self, EncodingRule> {
        let long = flags & LONG_VALUE != 0;
        let agrees = match long {
            true => (MAX_INLINE_VALUE.saturating_add(1)..=MAX_VALUE).contains(&value.len()),
            false => value.len() <= MAX_INLINE_VALUE,
        };
        match agrees {
            true => Ok(Self { head, value, long }),
            false => Err(EncodingRule::Value(value.len())),
        }
    }

    /// Parses an embedded child: it has no children, and a serialization of at most 44 bytes.
    fn parse_embedded(bytes: &'a [u8]) -> Result<Self, EncodingRule> {
        let mut rest = bytes;
        let flags = read_head(&mut rest)?;
        if flags & (LEFT | RIGHT | LEFT_EMBEDDED | RIGHT_EMBEDDED) != 0 {
            return Err(EncodingRule::Embedded);
        }
        if rest.is_empty() {
            return Err(EncodingRule::Nothing);
        }
        let own = Self::new(before(bytes, rest), rest, flags)?;
        match own.serialized_len() <= MAX_EMBEDDED_BYTES {
            true => Ok(own),
            false => Err(EncodingRule::Embedded),
        }
    }

    /// Length of the long value, or 0.
    const fn long_len(&self) -> u64 {
        if self.long { self.value.len() as u64 } else { 0 }
    }

    /// Length of the serialization of a node without children.
    const fn serialized_len(&self) -> usize {
        // A hash and a length in three bytes.
        let value = if self.long { 32 + 3 } else { self.value.len() };
        self.head.len().saturating_add(value)
    }

    /// Appends the value, or hash and length of a long one, which becomes a piece of its own.
    fn append_value(&self, pieces: &mut Pieces<'a>) {
        if !self.long {
            return pieces.append(self.value);
        }
        let hash = keccak256(self.value);
        let [_, length @ ..] = u32::try_from(self.value.len()).unwrap_or(u32::MAX).to_be_bytes();
        pieces.append(hash.as_slice());
        pieces.append(&length);
        pieces.push_value(hash, self.value);
    }
}

/// Reads flags and path, and returns the flags.
fn read_head(rest: &mut &[u8]) -> Result<u8, EncodingRule> {
    let flags = byte(rest)?;
    if flags & VERSION_MASK != VERSION {
        return Err(EncodingRule::Version(flags));
    }
    if flags & PATH != 0 {
        // The length in bits: short ones in one byte, others as a variable-length integer.
        let bits = match byte(rest)? {
            code @ 0..=31 => u64::from(code).saturating_add(1),
            code @ 32..=254 => u64::from(code).saturating_add(128),
            255 => varint(rest)?,
        };
        let bits = usize::try_from(bits).ok().filter(|bits| *bits <= MAX_PATH_BITS);
        take(rest, bits.ok_or(EncodingRule::Path)?.div_ceil(8))?;
    }
    Ok(flags)
}

/// Reads a child; `present` and `embedded` are its flags, 0 if not set.
fn read_child<'a>(rest: &mut &'a [u8], present: u8, embedded: u8) -> Result<ChunkChild<'a>, EncodingRule> {
    match (present, embedded) {
        (0, 0) => Ok(ChunkChild::Absent),
        (0, _) => Err(EncodingRule::EmbeddedWithoutChild),
        (_, 0) => Ok(ChunkChild::Hashed),
        _ => {
            let length = take(rest, 3)?.iter().fold(0usize, |sum, byte| (sum << 8) | usize::from(*byte));
            OwnParts::parse_embedded(take(rest, length)?).map(ChunkChild::Embedded)
        }
    }
}

/// Reads a Bitcoin variable-length integer (little-endian after the first byte), in any of its forms, the shortest or not.
fn varint(rest: &mut &[u8]) -> Result<u64, EncodingRule> {
    let len = match byte(rest)? {
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
        small => return Ok(small.into()),
    };
    Ok(take(rest, len)?.iter().rev().fold(0, |sum, byte| (sum << 8) | u64::from(*byte)))
}

/// Takes one byte off the front.
fn byte(rest: &mut &[u8]) -> Result<u8, EncodingRule> {
    let (first, after) = rest.split_first().ok_or(EncodingRule::Truncated)?;
    *rest = after;
    Ok(*first)
}

/// Takes bytes off the front.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], EncodingRule> {
    let (taken, after) = rest.split_at_checked(len).ok_or(EncodingRule::Truncated)?;
    *rest = after;
    Ok(taken)
}

/// The part of `bytes` before `rest`, which is its end.
fn before<'a>(bytes: &'a [u8], rest: &[u8]) -> &'a [u8] {
    bytes.get(..bytes.len().saturating_sub(rest.len())).unwrap_or(&[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(bytes: &[u8]) -> Option<EncodingRule> {
        ChunkNode::parse(bytes).err()
    }

    #[test]
    fn malformed_nodes_are_refused() {
        assert_eq!(rule(&[]), Some(EncodingRule::Truncated));
        assert_eq!(rule(&[0x80, 1]), Some(EncodingRule::Version(0x80)));
        assert_eq!(rule(&[0x40]), Some(EncodingRule::Nothing));
        assert_eq!(rule(&[0x40, 1]), None);
        // A path of 32 bits of which one byte is there, and one of 2,048 bits.
        assert_eq!(rule(&[0x50, 31, 1]), Some(EncodingRule::Truncated));
        assert_eq!(rule(&[0x50, 255, 0xfd, 0, 8]), Some(EncodingRule::Path));
        assert_eq!(rule(&[0x42, 1]), Some(EncodingRule::EmbeddedWithoutChild));
        assert_eq!(rule(&[0x41, 1]), Some(EncodingRule::EmbeddedWithoutChild));
        // The size of the children is missing, and cut.
        assert_eq!(rule(&[0x48]), Some(EncodingRule::Truncated));
        assert_eq!(rule(&[0x48, 0xfd, 1]), Some(EncodingRule::Truncated));
    }

    #[test]
    fn values_agree_with_the_flag_of_long_ones() {
        let node = |flags: u8, len: usize| [&[flags][..], &alloc::vec![7; len]].concat();
        assert_eq!(rule(&node(0x40, 32)), None);
        assert_eq!(rule(&node(0x40, 33)), Some(EncodingRule::Value(33)));
        assert_eq!(rule(&node(0x60, 32)), Some(EncodingRule::Value(32)));
        assert_eq!(rule(&node(0x60, 33)), None);
    }

    #[test]
    fn embedded_children_are_short_leaves() {
        // A node with one embedded left child, of this content.
        let parent = |child: &[u8]| [&[0x4a, 0, 0, child.len() as u8], child, &[9]].concat();
        assert_eq!(rule(&parent(&[0x40, 5])), None);
        assert_eq!(rule(&parent(&[0x40])), Some(EncodingRule::Nothing));
        assert_eq!(rule(&parent(&[])), Some(EncodingRule::Truncated));
        assert_eq!(rule(&parent(&[0x48, 5])), Some(EncodingRule::Embedded));
        // Flags, path code, a path and 32 bytes: 38 bytes, and 54.
        assert_eq!(rule(&parent(&[&[0x50, 31, 1, 1, 1, 1][..], &[1; 32]].concat())), None);
        let long = [&[0x50, 32][..], &[0; 20], &[1; 32]].concat();
        assert_eq!(rule(&parent(&long)), Some(EncodingRule::Embedded));
        assert_eq!(rule(&[0x4a, 0, 0, 9, 0x40, 1]), Some(EncodingRule::Truncated));
    }
}
