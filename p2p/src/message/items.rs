//! Lists of RLP items that are not copied: an item is a part of the received bytes.

use alloc::vec::Vec;

use rootlight::types::rlp::{self, RlpReader};

use super::error::MessageError;

/// A list of RLP items. Headers, uncles and transactions are lists; blocks and total difficulties are strings. A transaction can also
/// be a string that contains its list. Each item is well formed at its first level; deeper levels are not checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Items<'a> {
    /// The encoded items, one after the other.
    payload: &'a [u8],
    /// Number of items.
    len: usize,
}

impl<'a> Items<'a> {
    /// Reads the items of a list's payload, each of which must be a list.
    ///
    /// # Errors
    /// An item is malformed or a string, or there are more than `most`. `list` names the list in errors.
    pub fn lists(payload: &'a [u8], most: usize, list: &'static str) -> Result<Self, MessageError> {
        let len = count(payload, most, list, Shape::List)?;
        Ok(Self { payload, len })
    }

    /// Reads the items of a list's payload, each of which must be a string.
    ///
    /// # Errors
    /// An item is malformed or a list, or there are more than `most`. `list` names the list in errors.
    pub fn strings(payload: &'a [u8], most: usize, list: &'static str) -> Result<Self, MessageError> {
        let len = count(payload, most, list, Shape::String)?;
        Ok(Self { payload, len })
    }

    /// Reads the items of a list's payload, whether lists or strings.
    ///
    /// # Errors
    /// An item is malformed, or there are more than `most`. `list` names the list in errors.
    pub fn any(payload: &'a [u8], most: usize, list: &'static str) -> Result<Self, MessageError> {
        let len = count(payload, most, list, Shape::Any)?;
        Ok(Self { payload, len })
    }

    /// Number of items.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True if there is no item.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The encoded items, one after the other.
    pub const fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The items: lists with their RLP headers, strings without them.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let mut reader = RlpReader::new(self.payload);
        // Up to 0xbf the first byte of an item is that of a string.
        core::iter::from_fn(move || match reader.rest().first()? {
            0..=0xbf => reader.next_str("item").ok(),
            _ => reader.next_raw("item").ok(),
        })
    }
}

/// The payload of a list of already encoded items, for [`Items::lists`].
pub fn list_payload(items: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut payload = Vec::new();
    items.into_iter().for_each(|item| payload.extend_from_slice(item.as_ref()));
    payload
}

/// The payload of a list of strings, for [`Items::strings`].
pub fn string_payload(strings: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut payload = Vec::new();
    strings.into_iter().for_each(|string| rlp::put_str(&mut payload, string.as_ref()));
    payload
}

/// The form of every item of a list.
#[derive(Clone, Copy, PartialEq)]
enum Shape {
    List,
    String,
    Any,
}

/// Counts the items of a payload and checks their shape.
fn count(payload: &[u8], most: usize, list: &'static str, shape: Shape) -> Result<usize, MessageError> {
    let (mut reader, mut len) = (RlpReader::new(payload), 0usize);
    while let Some(first) = reader.rest().first() {
        if len >= most {
            return Err(MessageError::TooMany { list, most });
        }
        match first {
            0..=0xbf if shape == Shape::List => {
                return Err(MessageError::Shape { list, index: len, expected: "list" });
            }
            0xc0..=0xff if shape == Shape::String => {
                return Err(MessageError::Shape { list, index: len, expected: "string" });
            }
            // A string is read with `next_str`, because only this function checks that the string is in its shortest form.
            0..=0xbf => reader.next_str(list)?,
            0xc0..=0xff => reader.next_raw(list)?,
        };
        len = len.saturating_add(1);
    }
    Ok(len)
}
