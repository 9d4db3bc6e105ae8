//! Strict RLP: a reader that accepts only shortest forms, and a buffer for lists that are hashed.

use alloc::vec;
use alloc::vec::Vec;
use alloy_primitives::U256;
use alloy_rlp::{Encodable, Header};

use super::error::{FieldError, FieldRule};

/// Most bytes of an RLP list header: one byte and eight bytes of length.
const LIST_HEADER_MAX: usize = 9;

/// Reads RLP items one after another. Lengths and single bytes must be in their shortest form.
#[derive(Debug, Clone, Copy)]
pub struct RlpReader<'a> {
    rest: &'a [u8],
}

impl<'a> RlpReader<'a> {
    /// Starts reading the items of a list's payload.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload }
    }

    /// Reads `input` as exactly one list and returns a reader of its items.
    pub fn list(input: &'a [u8], field: &'static str) -> Result<Self, FieldError> {
        let mut outer = Self::new(input);
        let inner = outer.next_list(field)?;
        outer.finish(field)?;
        Ok(inner)
    }

    /// Reads the next item, which must be a string.
    pub fn next_str(&mut self, field: &'static str) -> Result<&'a [u8], FieldError> {
        if let Some((string, rest)) = short_string(self.rest) {
            self.rest = rest;
            return Ok(string);
        }
        self.other_str(field)
    }

    /// Reads a long string, or returns the error of any other item.
    #[cold]
    fn other_str(&mut self, field: &'static str) -> Result<&'a [u8], FieldError> {
        Header::decode_bytes(&mut self.rest, false).map_err(|e| FieldError::new(field, FieldRule::Rlp(e)))
    }

    /// Reads the next item, which must be a list.
    pub fn next_list(&mut self, field: &'static str) -> Result<Self, FieldError> {
        Header::decode_bytes(&mut self.rest, true)
            .map(Self::new)
            .map_err(|e| FieldError::new(field, FieldRule::Rlp(e)))
    }

    /// Reads the next item, a list or a string, and returns it with its RLP header.
    pub fn next_raw(&mut self, field: &'static str) -> Result<&'a [u8], FieldError> {
        let start = self.rest;
        let header = Header::decode(&mut self.rest).map_err(|e| FieldError::new(field, FieldRule::Rlp(e)))?;
        // `decode` has checked that the whole payload is there.
        self.rest = self.rest.get(header.payload_length..).unwrap_or(&[]);
        Ok(start.get(..start.len().saturating_sub(self.rest.len())).unwrap_or(&[]))
    }

    /// Whether all items have been read.
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The bytes not read yet.
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Number of bytes not read yet.
    pub const fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// Fails if bytes are left.
    pub fn finish(self, field: &'static str) -> Result<(), FieldError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(FieldError::new(field, FieldRule::Trailing(self.rest.len())))
        }
    }
}

/// Splits off the first item if it is a well-formed string of at most 255 bytes; `None` for any other item. Nearly all items of a
/// header are such strings, and the general decoder takes ten times as long.
fn short_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (first, after) = bytes.split_first()?;
    match first {
        0..=0x7f => bytes.split_at_checked(1),
        0x80..=0xb7 => {
            let (string, rest) = after.split_at_checked(usize::from(first.saturating_sub(0x80)))?;
            // A single byte below 0x80 is its own encoding, so this form of it is not the shortest.
            let shortest = !matches!(string, [0..=0x7f]);
            shortest.then_some((string, rest))
        }
        0xb8 => {
            let (len, after) = after.split_first()?;
            let shortest = *len > 55;
            after.split_at_checked(usize::from(*len)).filter(|_| shortest)
        }
        _ => None,
    }
}

/// Converts a string item of exactly `N` bytes.
pub fn fixed<const N: usize>(bytes: &[u8], field: &'static str) -> Result<[u8; N], FieldError> {
    bytes
        .try_into()
        .map_err(|_| FieldError::new(field, FieldRule::Length { expected: N, found: bytes.len() }))
}

/// Converts an unsigned number without leading zeros; zero is the empty string.
pub fn uint(bytes: &[u8], field: &'static str) -> Result<U256, FieldError> {
    if bytes.first() == Some(&0) {
        return Err(FieldError::new(field, FieldRule::NotMinimal));
    }
    U256::try_from_be_slice(bytes).ok_or(FieldError::new(field, FieldRule::TooLarge(256)))
}

/// [`uint`] for numbers that the reference node keeps in a signed 64-bit integer (at most 2^63 - 1).
pub fn uint63(bytes: &[u8], field: &'static str) -> Result<u64, FieldError> {
    if bytes.first() == Some(&0) {
        return Err(FieldError::new(field, FieldRule::NotMinimal));
    }
    let too_large = FieldError::new(field, FieldRule::TooLarge(63));
    if bytes.len() > 8 {
        return Err(too_large);
    }
    let value = bytes.iter().fold(0u64, |acc, byte| (acc << 8) | u64::from(*byte));
    if value > i64::MAX as u64 {
        return Err(too_large);
    }
    Ok(value)
}

/// Appends a string item.
pub fn put_str(out: &mut Vec<u8>, bytes: &[u8]) {
    bytes.encode(out);
}

/// Appends an unsigned number without leading zeros; zero is the empty string.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    value.encode(out);
}

/// Appends an unsigned number without leading zeros; zero is the empty string.
pub fn put_u256(out: &mut Vec<u8>, value: &U256) {
    put_str(out, trim(&value.to_be_bytes::<32>()));
}

/// Strips the leading zeros of a big-endian number.
pub fn trim(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    bytes.get(zeros..).unwrap_or(&[])
}

/// Length of a list in bytes, its header included.
pub fn list_len(payload_length: usize) -> usize {
    Header { list: true, payload_length }.length_with_payload()
}

/// Appends a list with the given payload.
pub fn put_list(out: &mut Vec<u8>, payload: &[u8]) {
    Header { list: true, payload_length: payload.len() }.encode(out);
    out.extend_from_slice(payload);
}

/// A list under construction that can be hashed, extended and hashed again, so that two hashes over a growing
/// list share one buffer.
#[derive(Debug)]
pub struct ListBuf {
    /// `LIST_HEADER_MAX` bytes reserved for the list header, then the payload.
    buf: Vec<u8>,
}

impl ListBuf {
    /// Creates an empty list with space for `capacity` payload bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        let mut buf = Vec::with_capacity(capacity.saturating_add(LIST_HEADER_MAX));
        buf.resize(LIST_HEADER_MAX, 0);
        Self { buf }
    }

    /// Creates a list from the encodings of its items.
    pub fn of_payload(payload: &[u8]) -> Self {
        let mut list = Self::with_capacity(payload.len());
        list.buf.extend_from_slice(payload);
        list
    }

    /// The encoded items so far.
    pub fn payload(&self) -> &[u8] {
        self.buf.get(LIST_HEADER_MAX..).unwrap_or(&[])
    }

    /// The list of the first `len` payload bytes, with its RLP header.
    pub fn prefix(&mut self, len: usize) -> &[u8] {
        let start = self.write_header(len);
        self.buf.get(start..LIST_HEADER_MAX.saturating_add(len)).unwrap_or(&[])
    }

    /// The buffer to which callers append items. They must not change the bytes that it has.
    pub fn items(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    /// The list so far, with its RLP header.
    pub fn as_list(&mut self) -> &[u8] {
        self.prefix(self.payload().len())
    }

    /// Finishes the list and returns it.
    pub fn into_list(mut self) -> Vec<u8> {
        let start = self.write_header(self.payload().len());
        self.buf.drain(..start);
        self.buf
    }

    /// Writes the header of a list of `payload_length` bytes right before the payload and returns the
    /// position of its first byte.
    fn write_header(&mut self, payload_length: usize) -> usize {
        let header = Header { list: true, payload_length };
        let start = LIST_HEADER_MAX.saturating_sub(header.length());
        if let Some(mut reserved) = self.buf.get_mut(start..LIST_HEADER_MAX) {
            header.encode(&mut reserved);
        }
        start
    }
}

/// Encodes the list of already encoded items.
pub fn list_of<'a>(items: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut list = ListBuf { buf: vec![0; LIST_HEADER_MAX] };
    for item in items {
        list.items().extend_from_slice(item);
    }
    list.into_list()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Strings with headers of a chosen kind: right, wrong by one, or arbitrary.
    fn items() -> impl Strategy<Value = Vec<u8>> {
        let header = prop_oneof![
            any::<u8>().prop_map(|first| vec![first]),
            (0xb7u8..=0xba, any::<u8>()).prop_map(|(first, len)| vec![first, len]),
            (0x80u8..=0x82).prop_map(|first| vec![first]),
        ];
        (header, proptest::collection::vec(any::<u8>(), 0..300))
            .prop_map(|(header, rest)| [header, rest].concat())
    }

    proptest! {
        #[test]
        fn strings_are_read_as_the_general_decoder_reads_them(bytes in items()) {
            let (mut fast, mut general) = (RlpReader::new(&bytes), &bytes[..]);
            let plain = Header::decode_bytes(&mut general, false);
            match fast.next_str("field") {
                Ok(string) => prop_assert_eq!((Ok(string), fast.rest()), (plain, general)),
                Err(error) => prop_assert_eq!(error.rule, FieldRule::Rlp(plain.unwrap_err())),
            }
        }
    }

    #[test]
    fn a_list_buffer_returns_the_list_of_a_prefix_of_its_payload() {
        let mut list = ListBuf::of_payload(&[0x61; 60]);
        assert_eq!(list.prefix(2), [0xc2, 0x61, 0x61]);
        assert_eq!(list.prefix(60)[..3], [0xf8, 60, 0x61]);
        assert_eq!(list.as_list().len(), 62);
        assert_eq!(list.payload(), [0x61; 60]);
    }
}
