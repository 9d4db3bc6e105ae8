//! The native contracts 0x02 (SHA-256) and 0x03 (RIPEMD-160).

use alloc::vec::Vec;

use sha2::{Digest, Sha256};

/// SHA-256, 32 bytes.
pub(super) fn sha256(input: &[u8]) -> Vec<u8> {
    Sha256::digest(input).to_vec()
}

/// RIPEMD-160, left-padded to 32 bytes.
pub(super) fn ripemd160(input: &[u8]) -> Vec<u8> {
    let mut word = Vec::with_capacity(32);
    word.resize(12, 0);
    word.extend_from_slice(&<ripemd::Ripemd160 as ripemd::Digest>::digest(input));
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_abc() {
        let sha = hex::decode("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").unwrap();
        assert_eq!(sha256(b"abc"), sha);
        let ripemd = hex::decode("0000000000000000000000008eb208f7e05d987a9b044a8e98c6b087f15a0bfc").unwrap();
        assert_eq!(ripemd160(b"abc"), ripemd);
    }
}
