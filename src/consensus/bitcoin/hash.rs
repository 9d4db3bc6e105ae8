//! Double SHA-256 as Bitcoin uses it, and SHA-256 continued from a midstate: the state after some whole 64-byte blocks.

use sha2::{Digest, Sha256, compress256};

use crate::types::{B256, U256};

/// Length of a Bitcoin block header, in bytes.
pub const HEADER_LEN: usize = 80;
/// Length of a SHA-256 block, in bytes.
const BLOCK_LEN: usize = 64;
/// Least length of SHA-256 padding, in bytes: the bit 1 and the length.
const PADDING_LEN: usize = 9;

/// SHA-256's state before the first block (FIPS 180-4).
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
/// The padding that SHA-256 appends to 64 bytes: the bit 1, zeros, the length 512.
const PADDING_OF_64: [u8; BLOCK_LEN] = padded(0, 512);
/// The last SHA-256 block of a 32-byte input, with zeros in place of the input.
const PADDING_OF_32: [u8; BLOCK_LEN] = padded(32, 256);
/// The last SHA-256 block of a Bitcoin header, with zeros in place of the header's last 16 bytes.
const PADDING_OF_80: [u8; BLOCK_LEN] = padded(HEADER_LEN - BLOCK_LEN, 640);

/// A block with the bit 1 at byte `at`, and the length `bits` at its end.
const fn padded(at: usize, bits: u16) -> [u8; BLOCK_LEN] {
    let mut block = [0; BLOCK_LEN];
    // Only constants call this function, so a wrong index fails the build.
    if let [first, ..] = block.split_at_mut(at).1 {
        *first = 0x80;
    }
    let [high, low] = bits.to_be_bytes();
    block[BLOCK_LEN - 2] = high;
    block[BLOCK_LEN - 1] = low;
    block
}

fn compress(state: &mut [u32; 8], block: &[u8; BLOCK_LEN]) {
    compress256(state, core::slice::from_ref(block.into()));
}

/// The hash of which this is the state after the last block.
fn hash_of(state: [u32; 8]) -> B256 {
    let mut out = [0u8; 32];
    // With arrays the compiler swaps the bytes of all words at once; with slices, a hash of a header takes a third longer.
    out.as_chunks_mut().0.iter_mut().zip(state).for_each(|(to, word)| *to = word.to_be_bytes());
    B256::from(out)
}

/// SHA-256 of a hash, which is one block: the second half of a double SHA-256.
pub(in crate::consensus) fn sha256_of_hash(first: &B256) -> B256 {
    let mut block = PADDING_OF_32;
    block.split_at_mut(32).0.copy_from_slice(first.as_slice());
    let mut state = INITIAL;
    compress(&mut state, &block);
    hash_of(state)
}

/// SHA-256 twice, in internal byte order (a displayed Bitcoin hash is this reversed).
#[must_use]
pub fn double_sha256(data: &[u8]) -> B256 {
    let digest: [u8; 32] = Sha256::digest(data).into();
    sha256_of_hash(&B256::from(digest))
}

/// Double SHA-256 of two concatenated hashes: three blocks, without the general hasher's buffer.
#[must_use]
pub fn hash_pair(left: &B256, right: &B256) -> B256 {
    let mut both = [0u8; BLOCK_LEN];
    let (l, r) = both.split_at_mut(32);
    l.copy_from_slice(left.as_slice());
    r.copy_from_slice(right.as_slice());
    let mut state = INITIAL;
    compress(&mut state, &both);
    compress(&mut state, &PADDING_OF_64);
    sha256_of_hash(&hash_of(state))
}

/// The hash in the other byte order.
#[must_use]
pub fn reversed(hash: &B256) -> B256 {
    // The number swaps four 64-bit words, which is faster than swapping thirty-two bytes.
    B256::from(U256::from_be_bytes(hash.0).to_le_bytes::<32>())
}

/// Double SHA-256 of a block header, in internal byte order: three SHA-256 blocks.
pub(super) fn header_hash(header: &[u8; HEADER_LEN]) -> B256 {
    let Some((first, rest)) = header.split_first_chunk::<BLOCK_LEN>() else {
        // Never reached: a header is longer than a block.
        return double_sha256(header);
    };
    let mut last = PADDING_OF_80;
    last.split_at_mut(HEADER_LEN - BLOCK_LEN).0.copy_from_slice(rest);
    let mut state = INITIAL;
    compress(&mut state, first);
    compress(&mut state, &last);
    sha256_of_hash(&hash_of(state))
}

/// A hash in internal byte order, as the number that is compared with a target.
#[must_use]
#[inline]
pub fn hash_number(hash: &B256) -> U256 {
    U256::from_le_bytes(hash.0)
}

/// SHA-256's state after the whole 64-byte blocks of `data`; the remaining bytes are ignored.
#[must_use]
pub fn sha256_midstate(data: &[u8]) -> B256 {
    let mut state = INITIAL;
    for block in data.as_chunks::<BLOCK_LEN>().0 {
        compress(&mut state, block);
    }
    hash_of(state)
}

/// SHA-256 of `tail`, continued from the state after `count` bytes.
///
/// The padding's length field counts `count` and `tail` together, but the padding's position follows from the length of
/// `tail` alone, as in the reference node's hash when it starts from a stored state. Honest counts are multiples of 64,
/// for which both agree.
#[must_use]
pub fn sha256_from_midstate(count: u64, state: &[u8; 32], tail: &[u8]) -> B256 {
    let mut h = [0u32; 8];
    for (word, bytes) in h.iter_mut().zip(state.chunks_exact(4)) {
        *word = bytes.first_chunk().map_or(0, |b| u32::from_be_bytes(*b));
    }
    let (whole, rest) = tail.as_chunks::<BLOCK_LEN>();
    for block in whole {
        compress(&mut h, block);
    }
    let bits = count.wrapping_add(tail.len() as u64).wrapping_mul(8);
    let mut last = [0u8; 2 * BLOCK_LEN];
    last.iter_mut().zip(rest.iter().chain([&0x80])).for_each(|(to, from)| *to = *from);
    let fits_one_block = rest.len().saturating_add(PADDING_LEN) <= BLOCK_LEN;
    let used = if fits_one_block { BLOCK_LEN } else { 2 * BLOCK_LEN };
    if let Some(field) = last.get_mut(..used).and_then(|l| l.last_chunk_mut::<8>()) {
        *field = bits.to_be_bytes();
    }
    for block in last.as_chunks::<BLOCK_LEN>().0.iter().take(used / BLOCK_LEN) {
        compress(&mut h, block);
    }
    hash_of(h)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_short_ways_give_the_plain_double_hash(bytes: [u8; 80]) {
            let plain = |data: &[u8]| B256::from_slice(&Sha256::digest(Sha256::digest(data)));
            prop_assert_eq!(double_sha256(&bytes), plain(&bytes));
            prop_assert_eq!(header_hash(&bytes), plain(&bytes));
            let (left, right) = (B256::from_slice(&bytes[..32]), B256::from_slice(&bytes[32..64]));
            prop_assert_eq!(hash_pair(&left, &right), plain(&bytes[..64]));
        }

        #[test]
        fn a_midstate_continues_the_hash(blocks in 0usize..4, tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            let front = vec![0x5au8; blocks * BLOCK_LEN];
            let state = sha256_midstate(&front);
            let got = sha256_from_midstate(front.len() as u64, &state.0, &tail);
            prop_assert_eq!(got, B256::from_slice(&Sha256::digest([front, tail].concat())));
        }
    }
}
