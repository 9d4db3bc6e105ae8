//! One trie node: strict parser and serializer (RSKIP-107).
//!
//! ```text
//! flags 01LPlrEe: bits 7-6 version 01, 5 long value, 4 shared path, 3 left, 2 right, 1 left embedded, 0 right embedded
//! [path]   length code, then the bits packed from the most significant on, unused low bits zero
//! [left]   32-byte hash, or one length byte and the child's serialization
//! [right]  the same
//! [size]   Bitcoin varint, if there is a child: bytes of everything below
//! [value]  up to 32 bytes to the end, or keccak-256 and three bytes of length
//! ```
//!
//! The parser accepts exactly the bytes that the serializer writes, so a hash identifies one node only.

use super::bits::Bits;
use super::flags::{LEFT, LEFT_EMBEDDED, LONG_VALUE, PATH, RIGHT, RIGHT_EMBEDDED, VERSION, VERSION_MASK};
use super::limits::{MAX_EMBEDDED_BYTES, MAX_INLINE_VALUE, MAX_NODE_BYTES, MAX_PATH_BITS};
use super::node_error::{NodeError, NodeField, NodePart, NodeRule};
use super::reader::{NodeReader, varint_len, write_varint};
use alloc::vec::Vec;
use alloy_primitives::B256;

/// A child as stored in its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Child<'a> {
    /// keccak-256 of the child's serialization.
    Hash(&'a B256),
    /// The serialization itself: a node without children, of at most 44 bytes.
    Embedded(&'a [u8]),
}

/// The value at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// No value: no key ends here.
    None,
    /// 1 to 32 bytes.
    Inline(&'a [u8]),
    /// More than 32 bytes, stored separately.
    Long {
        /// keccak-256 of the value.
        hash: &'a B256,
        /// Length of the value in bytes, below 2^24.
        len: u32,
    },
}

/// A parsed node. All fields borrow from the serialization.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node<'a> {
    /// Key bits shared by all keys at and below this node.
    pub path: Bits<'a>,
    /// The child for keys whose next bit is 0.
    pub left: Option<Child<'a>>,
    /// The child for keys whose next bit is 1.
    pub right: Option<Child<'a>>,
    /// Total bytes of all nodes and long values below. Without children it is 0 and not serialized.
    pub children_size: u64,
    /// Value of the key that ends here.
    pub value: Value<'a>,
}

/// Result of following a key through a node.
#[derive(Clone, Copy, Debug)]
pub enum NodeStep<'a, 'k> {
    /// The key diverges from the trie here: neither this key nor any key that begins with it has a value.
    Leaves,
    /// The key ends at this node.
    Ends(Value<'a>),
    /// The key continues in this child; the bits are those left after the child was chosen.
    Goes(Child<'a>, Bits<'k>),
}

/// Parses the serialization of a node. Only its one valid form is accepted.
pub fn parse_node(bytes: &[u8]) -> Result<Node<'_>, NodeError> {
    if bytes.len() > MAX_NODE_BYTES {
        return Err(NodeRule::TooLarge(bytes.len()).into());
    }
    let mut reader = NodeReader::new(bytes);
    let flags = reader.byte().ok_or(NodeRule::Empty)?;
    if flags & VERSION_MASK != VERSION {
        return Err(NodeRule::Version(flags).into());
    }
    let path = if flags & PATH != 0 { parse_path(&mut reader)? } else { Bits::first(&[], 0) };
    let left = parse_child(&mut reader, NodeField::LeftChild, flags & LEFT, flags & LEFT_EMBEDDED)?;
    let right = parse_child(&mut reader, NodeField::RightChild, flags & RIGHT, flags & RIGHT_EMBEDDED)?;
    let mut children_size = 0;
    if left.is_some() || right.is_some() {
        let field = NodeField::ChildrenSize;
        let (size, shortest) = reader.varint().ok_or(NodeRule::Truncated(field))?;
        if !shortest {
            return Err(NodeRule::VarintNotMinimal(field, size).into());
        }
        children_size = size;
    }
    let value = parse_value(reader, flags & LONG_VALUE != 0)?;
    Ok(Node { path, left, right, children_size, value })
}

/// Parses the length code of a path and its bits. The codes 0 to 31 stand for 1 to 32 bits, 32 to 254 for 160 to 382; a varint after 255
/// gives all other lengths.
fn parse_path<'a>(reader: &mut NodeReader<'a>) -> Result<Bits<'a>, NodeRule> {
    let truncated = NodeRule::Truncated(NodeField::Path);
    let code = reader.byte().ok_or(truncated)?;
    let bits = match code {
        0..=31 => u64::from(code).saturating_add(1),
        32..=254 => u64::from(code).saturating_add(128),
        255 => {
            let (bits, shortest) = reader.varint().ok_or(truncated)?;
            if !shortest {
                return Err(NodeRule::VarintNotMinimal(NodeField::Path, bits));
            }
            if matches!(bits, 0..=32 | 160..=382) {
                return Err(NodeRule::PathCode(bits));
            }
            bits
        }
    };
    let len = usize::try_from(bits).unwrap_or(usize::MAX);
    if len > MAX_PATH_BITS {
        return Err(NodeRule::PathTooLong(bits));
    }
    let packed = reader.take(len.div_ceil(8)).ok_or(truncated)?;
    let last = packed.last().copied().unwrap_or(0);
    if len % 8 != 0 && last & (0xff >> (len % 8)) != 0 {
        return Err(NodeRule::PathPadding(last));
    }
    Ok(Bits::first(packed, len))
}

/// Parses a child. `present` and `embedded` are its flags, zero if they are not set.
fn parse_child<'a>(
    reader: &mut NodeReader<'a>,
    field: NodeField,
    present: u8,
    embedded: u8,
) -> Result<Option<Child<'a>>, NodeError> {
    if present == 0 {
        return match embedded {
            0 => Ok(None),
            _ => Err(NodeRule::EmbeddedWithoutChild(field).into()),
        };
    }
    let truncated = NodeRule::Truncated(field);
    if embedded == 0 {
        return Ok(Some(Child::Hash(reader.array::<32>().ok_or(truncated)?.into())));
    }
    let len = reader.byte().ok_or(truncated)?;
    if usize::from(len) > MAX_EMBEDDED_BYTES {
        return Err(NodeRule::EmbeddedTooLong(field, len).into());
    }
    let bytes = reader.take(usize::from(len)).ok_or(truncated)?;
    // Checked before parsing the child, so that parsing never recurses more than one level.
    if !is_childless(bytes) {
        return Err(NodeRule::EmbeddedWithChildren(field).into());
    }
    let part = if field == NodeField::LeftChild { NodePart::Left } else { NodePart::Right };
    parse_node(bytes).map_err(|error| NodeError { part, ..error })?;
    Ok(Some(Child::Embedded(bytes)))
}

/// True unless the flags of this serialization state a child.
pub(super) fn is_childless(bytes: &[u8]) -> bool {
    bytes.first().is_none_or(|flags| flags & (LEFT | RIGHT) == 0)
}

fn parse_value(mut reader: NodeReader<'_>, long: bool) -> Result<Value<'_>, NodeRule> {
    if long {
        let truncated = NodeRule::Truncated(NodeField::Value);
        let hash = reader.array::<32>().ok_or(truncated)?.into();
        let [a, b, c] = *reader.array::<3>().ok_or(truncated)?;
        let len = u32::from_be_bytes([0, a, b, c]);
        if len as usize <= MAX_INLINE_VALUE {
            return Err(NodeRule::LongValueTooShort(len));
        }
        return match reader.rest().len() {
            0 => Ok(Value::Long { hash, len }),
            more => Err(NodeRule::TrailingBytes(more)),
        };
    }
    match reader.rest() {
        [] => Ok(Value::None),
        value if value.len() <= MAX_INLINE_VALUE => Ok(Value::Inline(value)),
        value => Err(NodeRule::InlineValueTooLong(value.len())),
    }
}

impl<'a> Node<'a> {
    /// True if the node has no children.
    pub fn is_terminal(&self) -> bool {
        self.left.is_none() && self.right.is_none()
    }

    /// Follows `key` (the bits not consumed above this node) through this node.
    pub fn step<'k>(&self, key: Bits<'k>) -> NodeStep<'a, 'k> {
        if key.common_prefix(self.path) < self.path.len() {
            return NodeStep::Leaves;
        }
        let Some((bit, rest)) = key.skip(self.path.len()).split_first() else {
            return NodeStep::Ends(self.value);
        };
        match if bit { self.right } else { self.left } {
            Some(child) => NodeStep::Goes(child, rest),
            None => NodeStep::Leaves,
        }
    }

    /// Length of the serialization in bytes.
    pub fn encoded_len(&self) -> usize {
        let mut size = path_encoded_len(self.path.len()).saturating_add(1);
        for child in [self.left, self.right].into_iter().flatten() {
            size = size.saturating_add(match child {
                Child::Hash(_) => 32,
                Child::Embedded(bytes) => bytes.len().saturating_add(1),
            });
        }
        if !self.is_terminal() {
            size = size.saturating_add(varint_len(self.children_size));
        }
        size.saturating_add(match self.value {
            Value::None => 0,
            Value::Inline(value) => value.len(),
            // A hash and three bytes of length.
            Value::Long { .. } => 35,
        })
    }

    /// Appends the serialization to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.flags());
        if !self.path.is_empty() {
            write_path_len(self.path.len(), out);
            self.path.write_packed(out);
        }
        for child in [self.left, self.right].into_iter().flatten() {
            match child {
                Child::Hash(hash) => out.extend_from_slice(hash.as_slice()),
                Child::Embedded(bytes) => {
                    out.push(u8::try_from(bytes.len()).unwrap_or(u8::MAX));
                    out.extend_from_slice(bytes);
                }
            }
        }
        if !self.is_terminal() {
            write_varint(self.children_size, out);
        }
        match self.value {
            Value::None => {}
            Value::Inline(value) => out.extend_from_slice(value),
            Value::Long { hash, len } => {
                let [_, length @ ..] = len.to_be_bytes();
                out.extend_from_slice(hash.as_slice());
                out.extend_from_slice(&length);
            }
        }
    }

    /// The serialization.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.encoded_len());
        self.encode(&mut out);
        out
    }

    fn flags(&self) -> u8 {
        let mut flags = VERSION;
        for (set, flag) in [
            (matches!(self.value, Value::Long { .. }), LONG_VALUE),
            (!self.path.is_empty(), PATH),
            (self.left.is_some(), LEFT),
            (self.right.is_some(), RIGHT),
            (matches!(self.left, Some(Child::Embedded(_))), LEFT_EMBEDDED),
            (matches!(self.right, Some(Child::Embedded(_))), RIGHT_EMBEDDED),
        ] {
            if set {
                flags |= flag;
            }
        }
        flags
    }
}

/// Length of a serialized path of `bits` bits: length code and packed bits, or 0 for an empty path.
pub(super) fn path_encoded_len(bits: usize) -> usize {
    let code = match bits {
        0 => return 0,
        1..=32 | 160..=382 => 1,
        _ => varint_len(bits as u64).saturating_add(1),
    };
    bits.div_ceil(8).saturating_add(code)
}

/// Appends the length code of a path that is not empty (see [`parse_path`]).
fn write_path_len(bits: usize, out: &mut Vec<u8>) {
    let one_byte = match bits {
        1..=32 => u8::try_from(bits.saturating_sub(1)).ok(),
        160..=382 => u8::try_from(bits.saturating_sub(128)).ok(),
        _ => None,
    };
    match one_byte {
        Some(code) => out.push(code),
        None => {
            out.push(u8::MAX);
            write_varint(bits as u64, out);
        }
    }
}
