//! 0x01: hash, v, r, s in, the signer's address out, nothing for a bad signature.

use alloc::vec::Vec;

use alloy_primitives::keccak256;
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};

use super::padded;

/// Offset of the last byte of v; the reference ignores the other 31.
const V: usize = 63;
/// Offset of r.
const R: usize = 64;
/// Offset of s.
const S: usize = 96;

/// The signer as a 32-byte word, or nothing.
pub(super) fn run(input: &[u8]) -> Vec<u8> {
    recover(input).map_or_else(Vec::new, |address| address.to_vec())
}

fn recover(input: &[u8]) -> Option<[u8; 32]> {
    // Input that ends before s is no signature for the reference, not one padded with zeros.
    let _ = input.get(S..)?;
    let hash: [u8; 32] = padded(input, 0);
    let odd = match input.get(V)? {
        27 => false,
        28 => true,
        _ => return None,
    };
    let signature = Signature::from_scalars(padded::<32>(input, R), padded::<32>(input, S)).ok()?;
    // A high s is accepted; k256 wants the low one with the other parity.
    let (signature, odd) = match signature.normalize_s() {
        Some(low) => (low, !odd),
        None => (signature, odd),
    };
    let key = VerifyingKey::recover_from_prehash(&hash, &signature, RecoveryId::new(odd, false)).ok()?;
    let point = key.to_encoded_point(false);
    let mut word = keccak256(point.as_bytes().get(1..)?).0;
    word.iter_mut().take(12).for_each(|byte| *byte = 0);
    Some(word)
}
