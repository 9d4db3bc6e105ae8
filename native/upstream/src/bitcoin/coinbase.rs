//! Coinbase transactions as sources send them.

use rootlight::consensus::bitcoin::{CoinbaseProofBuf, reversed};
use rootlight::types::B256;

/// The bytes after the version that say that witnesses follow the outputs (BIP-144): no inputs, and a flag.
const WITNESS_MARK: [u8; 2] = [0, 1];

/// The coinbase of a Bitcoin block as a source gives it. Only its form is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawCoinbase {
    /// Height for which it was asked.
    pub height: u32,
    /// The transaction, whole or cut, and its branch.
    pub proof: CoinbaseProofBuf,
}

impl RawCoinbase {
    /// A whole transaction without its witness, whose double SHA-256 is the left-most leaf of the block's Merkle tree, and the
    /// siblings on the way to the root, in internal byte order.
    pub(super) fn whole(height: u32, transaction: Vec<u8>, branch: &[B256]) -> Self {
        let branch = branch.iter().flat_map(|sibling| reversed(sibling).0).collect();
        Self { height, proof: CoinbaseProofBuf { is_cut: false, coinbase: transaction, branch } }
    }
}

/// The transaction without its witness, as the hash in the block's Merkle tree covers it; `None` if the bytes do not decode as
/// one transaction.
pub(super) fn without_witness(bytes: &[u8]) -> Option<Vec<u8>> {
    let (version, rest) = bytes.split_first_chunk::<4>()?;
    let (rest, has_witness) = match rest.strip_prefix(&WITNESS_MARK) {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let mut reader = Reader(rest);
    let inputs = reader.count()?;
    for _ in 0..inputs {
        reader.take(36)?;
        reader.bytes()?;
        reader.take(4)?;
    }
    for _ in 0..reader.count()? {
        reader.take(8)?;
        reader.bytes()?;
    }
    let body = rest.get(..rest.len() - reader.0.len())?;
    if has_witness {
        for _ in 0..inputs {
            for _ in 0..reader.count()? {
                reader.bytes()?;
            }
        }
    }
    let lock_time = reader.take(4)?;
    (inputs > 0 && reader.0.is_empty()).then(|| [version.as_slice(), body, lock_time].concat())
}

/// Reads Bitcoin's encoding from the front of a slice.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(front)
    }

    /// Reads a number. A count that is larger than the rest of the bytes ends the loop over it at the first part that is missing.
    fn count(&mut self) -> Option<u64> {
        let [first] = *self.take(1)? else { return None };
        let length = match first {
            0xfd => 2,
            0xfe => 4,
            0xff => 8,
            small => return Some(u64::from(small)),
        };
        let bytes = self.take(length)?;
        Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        self.take(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A coinbase with one input, two outputs and, if wanted, the witness that a segwit block's coinbase has.
    fn coinbase(with_witness: bool) -> Vec<u8> {
        let mut bytes = vec![2, 0, 0, 0];
        if with_witness {
            bytes.extend(WITNESS_MARK);
        }
        bytes.push(1);
        bytes.extend([0; 32]);
        bytes.extend([0xff; 4]);
        bytes.extend([3, 1, 2, 3]);
        bytes.extend([0xff; 4]);
        bytes.extend([2, 9, 9, 9, 9, 9, 9, 9, 9, 1, 0x51]);
        bytes.extend([0, 0, 0, 0, 0, 0, 0, 0, 0xfd, 2, 0, 0x6a, 0x24]);
        if with_witness {
            bytes.extend([1, 32]);
            bytes.extend([7; 32]);
        }
        bytes.extend([5, 0, 0, 0]);
        bytes
    }

    #[test]
    fn a_witness_is_left_out() {
        let plain = coinbase(false);
        assert_eq!(without_witness(&plain).as_ref(), Some(&plain));
        assert_eq!(without_witness(&coinbase(true)), Some(plain));
    }

    #[test]
    fn bytes_that_are_not_exactly_one_transaction_are_refused() {
        for whole in [coinbase(false), coinbase(true)] {
            for end in 0..whole.len() {
                assert_eq!(without_witness(&whole[..end]), None, "{end} bytes");
            }
            assert_eq!(without_witness(&[&whole[..], &[0]].concat()), None, "a byte follows");
        }
        assert_eq!(without_witness(&[2, 0, 0, 0, 0, 0, 0, 0, 0, 0]), None, "no input");
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Some(read) = without_witness(&bytes) {
                prop_assert!(read.len() <= bytes.len());
            }
        }

        #[test]
        fn a_changed_coinbase_is_answered(at in 0usize..120, value: u8) {
            let mut bytes = coinbase(true);
            let at = at % bytes.len();
            bytes[at] = value;
            let _ = without_witness(&bytes);
        }
    }
}
