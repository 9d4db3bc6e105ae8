//! 0x01 (ECRECOVER): the input is hash, v, r and s; the output is the signer's address, or empty for an
//! invalid signature.

use alloc::vec::Vec;

use super::padded;
use crate::types::{RecoveryId, U256, keccak256, recover as recover_key};

/// Offset of the last byte of v. The reference node ignores the other 31 bytes.
const V: usize = 63;
/// Offset of r.
const R: usize = 64;
/// Offset of s.
const S: usize = 96;

/// The signer's address as a 32-byte word; empty for an invalid signature.
pub(super) fn run(input: &[u8]) -> Vec<u8> {
    recover(input).map_or_else(Vec::new, |address| address.to_vec())
}

/// The signer's address as a 32-byte word; `None` for an invalid signature.
fn recover(input: &[u8]) -> Option<[u8; 32]> {
    // The reference node refuses input that ends before s, and does not pad it with zeros.
    let _ = input.get(S..)?;
    let hash: [u8; 32] = padded(input, 0);
    let odd = match input.get(V)? {
        27 => false,
        28 => true,
        _ => return None,
    };
    // A high s is accepted.
    let (r, s) = (U256::from_be_bytes(padded::<32>(input, R)), U256::from_be_bytes(padded::<32>(input, S)));
    let key = recover_key(&hash.into(), &r, &s, RecoveryId::of(odd))?;
    let mut word = keccak256(key).0;
    word.iter_mut().take(12).for_each(|byte| *byte = 0);
    Some(word)
}
