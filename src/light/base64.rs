//! Base64 (RFC 4648, section 4).
//!
//! This is our own code because the crate `base64` 0.23 makes a browser module 4,671 bytes larger (brotli), and the
//! light client's has room for 1,700. Natively the crate decodes 271 kB in 0.07 ms, this code in 0.11 ms.

use alloc::{string::String, vec, vec::Vec};

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Encodes bytes as padded base64.
pub(super) fn encode(bytes: &[u8]) -> String {
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

/// Marks a byte that is not a base64 digit.
const NONE: u8 = 0xff;

/// Values of the digits, as a table: a day of headers has four million digits.
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

fn value(digit: u8) -> u8 {
    VALUES.get(usize::from(digit)).copied().unwrap_or(NONE)
}

/// Joins four digit values into three bytes. The second result is the bitwise or of the values: 64 or more if one of
/// them is not a digit.
fn group([a, b, c, d]: [u8; 4]) -> ([u8; 3], u8) {
    let bits = u32::from(a) << 18 | u32::from(b) << 12 | u32::from(c) << 6 | u32::from(d);
    let [_, bytes @ ..] = bits.to_be_bytes();
    (bytes, a | b | c | d)
}

/// Decodes canonical base64 only: padded, no stray bits.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let body = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len().saturating_sub(body.len()) > 2 {
        return None;
    }
    let (whole, rest) = body.as_bytes().as_chunks::<4>();
    let mut bytes = vec![0; whole.len().saturating_mul(3)];
    let mut all = 0;
    for (three, digits) in bytes.as_chunks_mut::<3>().0.iter_mut().zip(whole) {
        let bits;
        (*three, bits) = group(digits.map(value));
        all |= bits;
    }
    let mut last = [0; 4];
    last.iter_mut().zip(rest).for_each(|(to, digit)| *to = value(*digit));
    let (three, bits) = group(last);
    let (own, stray) = three.split_at_checked(rest.len().saturating_sub(1))?;
    bytes.extend_from_slice(own);
    (all | bits < 64 && rest.len() != 1 && stray.iter().all(|byte| *byte == 0)).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoding_and_decoding_agree() {
        for (bytes, text) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
        for text in [
            "Zg", "Zg=", "Zh==", "Zm9", "Zm9=", "Z===", "====", "Zm 9", "Zm9v\n", "Zm9v Zg=", "Zm9vZ-==",
            "Zm9*Zm9v",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
