//! Bitcoin encodings that native contracts use: Base58Check, hash160, scripts.

use alloc::string::String;
use alloc::vec::Vec;

use sha2::{Digest, Sha256};

/// Opcode after the keys and their number in a script that checks several signatures.
pub(super) const OP_CHECKMULTISIG: u8 = 0xae;
/// Opcode that pushes data whose length is in the next byte.
const OP_PUSHDATA1: u8 = 0x4c;
/// Opcode that pushes data whose length is in the next two bytes, in little endian.
const OP_PUSHDATA2: u8 = 0x4d;
/// Longest data that a push has without an opcode: the length itself is the opcode.
const MAX_DIRECT_PUSH: u8 = 0x4b;
/// The opcode of the number 1 less 1.
const OP_NUMBERS: u8 = 0x50;
/// Length of a Base58 checksum in bytes.
const CHECKSUM: usize = 4;
/// The Base58 digits.
const DIGITS: &[u8; 58] = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
/// Longest Base58 text that is decoded. An extended key has 111 characters, an address 35.
const MAX_TEXT: usize = 128;

/// RIPEMD-160 of the SHA-256 hash of data: the hash in addresses.
pub(super) fn hash160(data: &[u8]) -> [u8; 20] {
    <ripemd::Ripemd160 as ripemd::Digest>::digest(Sha256::digest(data)).into()
}

/// The script that requires `required` signatures of these keys, in this order (at most 16 keys).
pub(super) fn multisig(required: usize, keys: &[Vec<u8>]) -> Vec<u8> {
    let mut script = alloc::vec![number_opcode(required)];
    for key in keys {
        push(&mut script, key);
    }
    script.extend([number_opcode(keys.len()), OP_CHECKMULTISIG]);
    script
}

/// Opcode of a number from 1 to 16.
pub(super) fn number_opcode(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX).saturating_add(OP_NUMBERS)
}

/// Appends a push of up to 65,535 bytes; appends nothing for longer data.
pub(super) fn push(script: &mut Vec<u8>, data: &[u8]) {
    match (u8::try_from(data.len()), u16::try_from(data.len())) {
        (Ok(len @ 0..=MAX_DIRECT_PUSH), _) => script.push(len),
        (Ok(len), _) => script.extend([OP_PUSHDATA1, len]),
        (_, Ok(len)) => {
            script.push(OP_PUSHDATA2);
            script.extend_from_slice(&len.to_le_bytes());
        }
        _ => return,
    }
    script.extend_from_slice(data);
}

/// Encodes bytes and their checksum in Base58.
pub(super) fn base58check(bytes: &[u8]) -> String {
    let mut full = bytes.to_vec();
    full.extend_from_slice(&checksum(bytes));
    let zeros = full.iter().take_while(|byte| **byte == 0).count();
    // The number in base 58, the lowest digit first; each byte multiplies it by 256 and is added.
    let mut digits: Vec<u8> = Vec::new();
    for byte in full.iter().skip(zeros) {
        let mut carry = u32::from(*byte);
        for digit in &mut digits {
            carry = carry.saturating_add(u32::from(*digit) << 8);
            *digit = (carry % 58) as u8;
            carry /= 58;
        }
        while carry > 0 {
            digits.push((carry % 58) as u8);
            carry /= 58;
        }
    }
    digits.extend(core::iter::repeat_n(0, zeros));
    digits.iter().rev().filter_map(|digit| DIGITS.get(usize::from(*digit))).map(|c| char::from(*c)).collect()
}

/// Decodes a Base58 text and removes its checksum. `None` if the checksum is wrong.
pub(super) fn from_base58check(text: &str) -> Option<Vec<u8>> {
    if text.len() > MAX_TEXT {
        return None;
    }
    let zeros = text.bytes().take_while(|c| *c == b'1').count();
    let mut bytes: Vec<u8> = Vec::new();
    for c in text.bytes().skip(zeros) {
        let mut carry = u32::try_from(DIGITS.iter().position(|digit| *digit == c)?).ok()?;
        for byte in &mut bytes {
            carry = carry.saturating_add(u32::from(*byte).saturating_mul(58));
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry > 0 {
            bytes.push(carry as u8);
        }
    }
    bytes.extend(core::iter::repeat_n(0, zeros));
    bytes.reverse();
    let body = bytes.len().checked_sub(CHECKSUM)?;
    let (body, sum) = bytes.split_at_checked(body)?;
    (checksum(body) == sum).then(|| body.to_vec())
}

/// The first four bytes of the double SHA-256 hash.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let digest: [u8; 32] = Sha256::digest(Sha256::digest(bytes)).into();
    digest.first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_encoded_and_decoded() {
        let hash = hex::decode("00010966776006953d5567439e5e39f86a0d273bee").unwrap();
        let text = base58check(&hash);
        assert_eq!(text, "16UwLL9Risc3QfPqBUvKofHmBQ7wMtjvM");
        assert_eq!(from_base58check(&text), Some(hash));
        assert_eq!(from_base58check("16UwLL9Risc3QfPqBUvKofHmBQ7wMtjvN"), None, "checksum");
        assert_eq!(from_base58check("0"), None);
        assert_eq!(from_base58check(""), None);
    }
}
