//! The answer of `rootlight_getHeaders`: consecutive headers with merge-mining proofs and uncles, in base64.
//!
//! `base64(RLP([[header, [uncle, ...]], ...]))`, headers in full form, oldest first. Nothing in it is believed: each
//! header is hashed, linked and checked for work like any other.

use alloc::{string::String, vec::Vec};

use thiserror::Error;

use crate::{
    consensus::Network,
    types::{
        header::HeaderForm,
        rlp::{ListBuf, Reader},
        FieldError, Header, HeaderError, SealedHeader,
    },
};

/// Most headers of one answer: with uncles some 700 kB.
pub const MAX_BATCH_HEADERS: u64 = 256;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Why an answer is no batch of headers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BatchError {
    /// Not base64.
    #[error("headers: not base64")]
    Base64,
    /// Not the list it must be.
    #[error(transparent)]
    Rlp(#[from] FieldError),
    /// A header that is none.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// More headers than were asked for.
    #[error("more than {asked} headers")]
    TooMany {
        /// Headers asked for.
        asked: usize,
    },
}

/// Writes headers, each with its uncles.
pub fn encode_headers<'a>(headers: impl Iterator<Item = (&'a Header, &'a [SealedHeader])>) -> String {
    base64(encode_list(headers).as_list())
}

/// The list in binary.
pub(super) fn encode_list<'a>(headers: impl Iterator<Item = (&'a Header, &'a [SealedHeader])>) -> ListBuf {
    let mut list = ListBuf::with_capacity(0);
    for (header, uncles) in headers {
        let mut entry = ListBuf::with_capacity(0);
        entry.items().extend(header.encode(HeaderForm::Full));
        let mut family = ListBuf::with_capacity(0);
        uncles.iter().for_each(|uncle| family.items().extend(uncle.encode(HeaderForm::Full)));
        entry.items().extend(family.as_list());
        list.items().extend(entry.as_list());
    }
    list
}

/// Reads at most `most` headers with their uncles.
///
/// # Errors
/// [`BatchError`].
pub fn decode_headers(
    text: &str,
    most: usize,
    network: &Network,
) -> Result<Vec<(SealedHeader, Vec<Header>)>, BatchError> {
    decode_list(&unbase64(text).ok_or(BatchError::Base64)?, most, network)
}

/// Reads the list in binary.
pub(super) fn decode_list(
    bytes: &[u8],
    most: usize,
    network: &Network,
) -> Result<Vec<(SealedHeader, Vec<Header>)>, BatchError> {
    let shape = |number| network.header_shape(number);
    let mut list = Reader::list(bytes, "headers")?;
    let mut headers = Vec::new();
    while !list.is_empty() {
        if headers.len() >= most {
            return Err(BatchError::TooMany { asked: most });
        }
        let mut entry = list.next_list("entry")?;
        let (header, _) = Header::decode_sealed(entry.next_raw("header")?, &shape)?;
        let (mut family, mut uncles) = (entry.next_list("uncles")?, Vec::new());
        while !family.is_empty() {
            uncles.push(Header::decode(family.next_raw("uncle")?, &shape)?);
        }
        entry.finish("entry")?;
        headers.push((header, uncles));
    }
    Ok(headers)
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3).saturating_mul(4));
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let group = at(0) << 16 | at(1) << 8 | at(2);
        for (place, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            let digit = ALPHABET.get((group >> shift & 63) as usize).copied().unwrap_or(b'A');
            text.push(if place <= chunk.len() { char::from(digit) } else { '=' });
        }
    }
    text
}

/// No digit of base64.
const NONE: u8 = 0xff;

/// Values of the digits: a table, since a day of headers has four million of them.
const VALUES: [u8; 256] = values();

#[expect(clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "evaluated while compiling")]
const fn values() -> [u8; 256] {
    let (mut table, mut value) = ([NONE; 256], 0);
    while value < ALPHABET.len() {
        table[ALPHABET[value] as usize] = value as u8;
        value += 1;
    }
    table
}

/// Up to three bytes from up to four digits, and whether they are digits without stray bits.
fn group(digits: &[u8]) -> ([u8; 3], bool) {
    let (mut bits, mut seen) = (0u32, 0u8);
    for place in 0..4 {
        let value =
            digits.get(place).map_or(0, |digit| VALUES.get(usize::from(*digit)).copied().unwrap_or(NONE));
        seen |= value;
        bits = bits << 6 | u32::from(value);
    }
    let [_, bytes @ ..] = bits.to_be_bytes();
    let stray = match digits.len() {
        2 => bits & 0xffff,
        3 => bits & 0xff,
        _ => 0,
    };
    (bytes, seen < 64 && stray == 0)
}

/// Canonical base64 only: padded, no stray bits.
fn unbase64(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len().saturating_sub(body.len()) > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len());
    let whole = body.as_bytes().chunks_exact(4);
    let rest = whole.remainder();
    for digits in whole {
        let (three, good) = group(digits);
        if !good {
            return None;
        }
        bytes.extend_from_slice(&three);
    }
    let (three, good) = group(rest);
    bytes.extend_from_slice(three.get(..rest.len().saturating_sub(1))?);
    (good && rest.len() != 1).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_both_ways() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(base64(bytes.as_bytes()), text);
            assert_eq!(unbase64(text).as_deref(), Some(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(unbase64(&base64(&all)), Some(all));
        for text in ["Zg", "Zg=", "Zh==", "Zm9", "Zm9=", "Z===", "====", "Zm 9", "Zm9v\n"] {
            assert_eq!(unbase64(text), None, "{text}");
        }
    }
}
