//! SHA-256's state after the front of a coinbase, computed apart from the code under test.

use sha2::compress256;
use sha2::digest::generic_array::GenericArray;

/// The bytes before a hash for merged mining.
pub const TAG: &[u8] = b"RSKBLOCK:";
/// SHA-256's initial state.
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

/// Count and state after `prefix`, whose length is a multiple of 64.
pub fn midstate(prefix: &[u8]) -> Vec<u8> {
    let mut state = INITIAL;
    for block in prefix.chunks_exact(64) {
        compress256(&mut state, &[*GenericArray::from_slice(block)]);
    }
    let words = state.iter().flat_map(|word| word.to_be_bytes());
    (prefix.len() as u64).to_be_bytes().into_iter().chain(words).collect()
}
