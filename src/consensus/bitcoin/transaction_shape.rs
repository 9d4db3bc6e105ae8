//! The shape of a 64-byte transaction, which an inner Merkle node must not have: the checks of Merkle branches (`consensus::merkle`,
//! `consensus::partial_merkle`) refuse nodes of this shape.

use super::hash::reversed;
use crate::types::B256;

/// Largest possible amount, in satoshis.
const MAX_SATOSHIS: i64 = 21_000_000 * 100_000_000;
/// Highest output index that the reference node accepts in this check.
const MAX_OUTPUT_INDEX: u32 = 1_000_000;
/// Offsets of the parts of a transaction with one input and one output, in bytes.
const INPUT_COUNT_AT: usize = 4;
const OUTPUT_INDEX_AT: usize = 37;
const INPUT_SCRIPT_AT: usize = 41;
/// Total length of both scripts in a 64-byte transaction, in bytes.
const SCRIPTS_LEN: u8 = 4;

/// Whether an inner Merkle node could be read as a 64-byte transaction. An attacker could pass off a transaction of this shape, which is a
/// leaf, as an inner node, and prove a false transaction below it.
///
/// Like the reference node, this function reads the two child hashes in display order, one after the other, rather than the bytes that
/// are hashed. `left` and `right` are in internal byte order.
#[must_use]
pub fn looks_like_transaction(left: &B256, right: &B256) -> bool {
    // Most nodes need no further check: 255 of 256 random nodes do not state one input.
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
    // A coinbase has the index u32::MAX.
    if index > MAX_OUTPUT_INDEX && index != u32::MAX {
        return Some(false);
    }
    let input_script = *node.get(INPUT_SCRIPT_AT)?;
    if input_script > SCRIPTS_LEN {
        return Some(false);
    }
    // A byte for the script's length, the script, and four bytes for the sequence number.
    let output_count_at = INPUT_SCRIPT_AT.checked_add(5)?.checked_add(usize::from(input_script))?;
    let (count, after) = node.get(output_count_at..)?.split_first()?;
    let value = i64::from_le_bytes(*after.first_chunk()?);
    let output_script = *after.get(8)?;
    Some(
        // Like the reference node, this check leaves out the amount 0, although Bitcoin permits it.
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
        fn any_64_bytes_have_or_have_not_the_shape(node in proptest::collection::vec(any::<u8>(), 64..=64)) {
            let node: [u8; 64] = node.try_into().unwrap();
            prop_assert!(transaction_shape(&node).is_some());
        }
    }
}
