//! The parts of Bitcoin that merged mining needs: double SHA-256, block header fields, a hash continued from a
//! midstate, and the shape of a 64-byte transaction.

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
    // Runs at compile time only.
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

/// The hash that a state stands for after the last block.
fn hash_of(state: [u32; 8]) -> B256 {
    let mut out = [0u8; 32];
    out.chunks_exact_mut(4).zip(state).for_each(|(to, word)| to.copy_from_slice(&word.to_be_bytes()));
    B256::from(out)
}

/// SHA-256 of a hash, which is one block: the second half of a double SHA-256.
pub(super) fn sha256_of_hash(first: &B256) -> B256 {
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
    // Four swapped words are faster than thirty-two bytes.
    B256::from(U256::from_be_bytes(hash.0).to_le_bytes::<32>())
}

/// The first 80 bytes of a Bitcoin header field.
#[derive(Debug, Clone, Copy)]
pub struct BitcoinHeader<'a>(&'a [u8; HEADER_LEN]);

impl<'a> From<&'a [u8; HEADER_LEN]> for BitcoinHeader<'a> {
    fn from(header: &'a [u8; HEADER_LEN]) -> Self {
        Self(header)
    }
}

impl<'a> BitcoinHeader<'a> {
    /// Reads the first 80 bytes; `None` if there are fewer.
    #[must_use]
    pub fn first_of(field: &'a [u8]) -> Option<Self> {
        field.first_chunk::<HEADER_LEN>().map(Self)
    }

    /// Hash in internal byte order.
    pub fn hash(&self) -> B256 {
        let Some((first, rest)) = self.0.split_first_chunk::<BLOCK_LEN>() else {
            return double_sha256(self.0);
        };
        let mut last = PADDING_OF_80;
        last.split_at_mut(HEADER_LEN - BLOCK_LEN).0.copy_from_slice(rest);
        let mut state = INITIAL;
        compress(&mut state, first);
        compress(&mut state, &last);
        sha256_of_hash(&hash_of(state))
    }

    /// Hash of the previous Bitcoin block, in internal byte order. No Rootstock rule uses it.
    pub fn previous(&self) -> B256 {
        self.word(4)
    }

    /// Merkle root of the transactions, in internal byte order.
    pub fn merkle_root(&self) -> B256 {
        self.word(36)
    }

    /// Time in seconds since 1970.
    pub fn time(&self) -> u32 {
        self.0.get(68..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    fn word(&self, at: usize) -> B256 {
        self.0
            .get(at..)
            .and_then(|rest| rest.first_chunk::<32>())
            .map_or(B256::ZERO, |word| B256::from(*word))
    }
}

/// A hash in internal byte order, as the number that is compared with a target.
#[must_use]
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
    let one = rest.len().saturating_add(PADDING_LEN) <= BLOCK_LEN;
    let used = if one { BLOCK_LEN } else { 2 * BLOCK_LEN };
    if let Some(field) = last.get_mut(..used).and_then(|l| l.last_chunk_mut::<8>()) {
        *field = bits.to_be_bytes();
    }
    for block in last.as_chunks::<BLOCK_LEN>().0.iter().take(used / BLOCK_LEN) {
        compress(&mut h, block);
    }
    hash_of(h)
}

/// Largest possible amount, in satoshis.
const MAX_SATOSHIS: i64 = 21_000_000 * 100_000_000;
/// Highest output index that the reference node accepts in this check.
const MAX_OUTPUT_INDEX: u32 = 1_000_000;
/// Offsets of the parts of a transaction with one input and one output.
const INPUT_COUNT_AT: usize = 4;
const OUTPUT_INDEX_AT: usize = 37;
const INPUT_SCRIPT_AT: usize = 41;
/// Total length of both scripts in a 64-byte transaction, in bytes.
const SCRIPTS_LEN: u8 = 4;

/// Whether an inner Merkle node could be read as a 64-byte transaction. Such a node could be used to pass off a leaf as a
/// node.
///
/// The reference node reads the two child hashes in display order, one after the other, rather than the bytes that are
/// hashed; so does this code. Both hashes are given in internal byte order.
#[must_use]
pub fn looks_like_transaction(left: &B256, right: &B256) -> bool {
    // This check alone refuses 255 of 256 nodes.
    if left.iter().rev().nth(INPUT_COUNT_AT) != Some(&1) {
        return false;
    }
    let mut node = [0u8; 64];
    let (l, r) = node.split_at_mut(32);
    l.copy_from_slice(reversed(left).as_slice());
    r.copy_from_slice(reversed(right).as_slice());
    transaction_shape(&node).unwrap_or(false)
}

/// `None` if a field would lie beyond the end, which the limit on the scripts excludes.
fn transaction_shape(node: &[u8; 64]) -> Option<bool> {
    if *node.get(INPUT_COUNT_AT)? != 1 {
        return Some(false);
    }
    let index = u32::from_le_bytes(*node.get(OUTPUT_INDEX_AT..)?.first_chunk()?);
    if index > MAX_OUTPUT_INDEX && index != u32::MAX {
        return Some(false);
    }
    let input_script = *node.get(INPUT_SCRIPT_AT)?;
    if input_script > SCRIPTS_LEN {
        return Some(false);
    }
    // Length byte, script, sequence number.
    let output_count_at = INPUT_SCRIPT_AT.checked_add(5)?.checked_add(usize::from(input_script))?;
    let (count, after) = node.get(output_count_at..)?.split_first()?;
    let value = i64::from_le_bytes(*after.first_chunk()?);
    let output_script = *after.get(8)?;
    Some(
        *count == 1
            && (1..=MAX_SATOSHIS).contains(&value)
            && output_script <= SCRIPTS_LEN
            && input_script.checked_add(output_script)? == SCRIPTS_LEN,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A transaction of 64 bytes with one input and one output, and scripts of `input` and `4 - input` bytes.
    pub(crate) fn transaction64(input: u8, index: u32, value: i64) -> [u8; 64] {
        let mut t = vec![1, 0, 0, 0, 1];
        t.extend([7; 32]);
        t.extend(index.to_le_bytes());
        t.push(input);
        t.extend(vec![9; usize::from(input)]);
        t.extend([0xff; 4]);
        t.push(1);
        t.extend(value.to_le_bytes());
        t.push(4 - input);
        t.extend(vec![8; usize::from(4 - input)]);
        t.extend([0; 4]);
        t.try_into().unwrap()
    }

    proptest! {
        #[test]
        fn the_short_ways_give_the_plain_double_hash(bytes: [u8; 80]) {
            let plain = |data: &[u8]| B256::from_slice(&Sha256::digest(Sha256::digest(data)));
            prop_assert_eq!(double_sha256(&bytes), plain(&bytes));
            prop_assert_eq!(BitcoinHeader(&bytes).hash(), plain(&bytes));
            let (left, right) = (B256::from_slice(&bytes[..32]), B256::from_slice(&bytes[32..64]));
            prop_assert_eq!(hash_pair(&left, &right), plain(&bytes[..64]));
        }
    }

    fn shape(t: &[u8; 64]) -> bool {
        let half = |bytes: &[u8]| reversed(&B256::from_slice(bytes));
        looks_like_transaction(&half(&t[..32]), &half(&t[32..]))
    }

    #[test]
    fn a_64_byte_transaction_is_recognised() {
        for input in 0..=4 {
            for index in [0, 1, MAX_OUTPUT_INDEX, u32::MAX] {
                for value in [1, MAX_SATOSHIS] {
                    assert!(shape(&transaction64(input, index, value)));
                }
            }
        }
    }

    #[test]
    fn similar_bytes_are_not_a_transaction() {
        assert!(!shape(&transaction64(2, MAX_OUTPUT_INDEX + 1, 5)));
        assert!(!shape(&transaction64(2, 0, 0)));
        assert!(!shape(&transaction64(2, 0, -1)));
        assert!(!shape(&transaction64(2, 0, MAX_SATOSHIS + 1)));
        let good = transaction64(2, 0, 5);
        for (at, value) in [(4, 2), (41, 1), (41, 5), (41, 0xff), (48, 2), (57, 1), (57, 5), (57, 0xfe)] {
            let mut t = good;
            t[at] = value;
            assert!(!shape(&t), "byte {at} = {value}");
        }
    }

    proptest! {
        #[test]
        fn a_midstate_continues_the_hash(blocks in 0usize..4, tail in proptest::collection::vec(any::<u8>(), 0..300)) {
            let front = vec![0x5au8; blocks * BLOCK_LEN];
            let state = sha256_midstate(&front);
            let got = sha256_from_midstate(front.len() as u64, &state.0, &tail);
            prop_assert_eq!(got, B256::from_slice(&Sha256::digest([front, tail].concat())));
        }

        #[test]
        fn any_64_bytes_have_or_have_not_the_shape(node in proptest::collection::vec(any::<u8>(), 64..=64)) {
            let node: [u8; 64] = node.try_into().unwrap();
            prop_assert!(transaction_shape(&node).is_some());
        }
    }
}
