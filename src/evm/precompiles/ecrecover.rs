//! 0x01 (ECRECOVER): the input is hash, v, r and s; the output is the signer's address, or empty for an
//! invalid signature.

use alloc::vec::Vec;

use alloy_primitives::keccak256;
use k256::ecdsa::{RecoveryId, Signature, VerifyingKey};

use super::padded;

/// Offset of the last byte of v. The reference node ignores the other 31 bytes.
const V: usize = 63;
/// Offset of r.
const R: usize = 64;
/// Offset of s.
const S: usize = 96;

/// The signer as a 32-byte word, or empty.
pub(super) fn run(input: &[u8]) -> Vec<u8> {
    recover(input).map_or_else(Vec::new, |address| address.to_vec())
}

fn recover(input: &[u8]) -> Option<[u8; 32]> {
    // The reference node refuses input that ends before s, and does not pad it with zeros.
    let _ = input.get(S..)?;
    let hash: [u8; 32] = padded(input, 0);
    let odd = match input.get(V)? {
        27 => false,
        28 => true,
        _ => return None,
    };
    let signature = Signature::from_scalars(padded::<32>(input, R), padded::<32>(input, S)).ok()?;
    // A high s is accepted. k256 requires the equivalent low s with the other parity.
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
