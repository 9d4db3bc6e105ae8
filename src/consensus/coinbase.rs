//! The merged-mining commitment in a Bitcoin coinbase, as proof of work (`consensus::pow`) checks it.
//!
//! The coinbase field of a Rootstock header is `8-byte big-endian count of bytes already hashed | 32-byte SHA-256 state | tail`. The
//! coinbase transaction is cut between two SHA-256 blocks: only its end, which contains the tag `RSKBLOCK:` and the header's hash for
//! merged mining, is given in full.

use thiserror::Error;

use super::bitcoin::{sha256_from_midstate, sha256_of_hash};
use crate::types::{B256, MERGED_MINING_TAG};

/// Length of the count and the state (the midstate) before the tail, in bytes.
pub const MIDSTATE_LEN: usize = 40;
/// Highest offset of the tag in the tail: the tag must start within the first SHA-256 block. Otherwise there would be several valid
/// cuts of one coinbase.
pub const MAX_TAG_POSITION: usize = 63;
/// Most bytes after the commitment, as in the reference node.
pub const MAX_TRAILING_BYTES: usize = 128;
/// A coinbase transaction must have more bytes than this: an inner Merkle node has 64 bytes.
pub const MIN_COINBASE_EXCLUDED: i64 = 64;
/// Length of tag and hash, in bytes.
const COMMITMENT_LEN: usize = MERGED_MINING_TAG.len() + 32;

/// Why a coinbase field is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum CoinbaseError {
    #[error("{found} bytes, the midstate alone has {MIDSTATE_LEN}")]
    TooShort { found: usize },
    /// The tail has no tag with the header's hash for merged mining.
    #[error("no RSKBLOCK: tag with {expected}")]
    TagMissing { expected: B256 },
    /// The tag starts too late in the tail.
    #[error("tag at byte {found} of the tail, at most {MAX_TAG_POSITION}")]
    TagPosition { found: usize },
    /// The tag with the right hash is not the last tag.
    #[error("tag at byte {found} of the tail is not the last, another is at {last}")]
    NotLastTag { found: usize, last: usize },
    /// Too many bytes follow the commitment.
    #[error("{found} bytes after the tag's hash, at most {MAX_TRAILING_BYTES}")]
    TrailingBytes { found: usize },
    /// The coinbase transaction is too short.
    #[error("coinbase transaction of {found} bytes, more than {MIN_COINBASE_EXCLUDED} needed")]
    TransactionLength {
        /// Length of the transaction: the midstate's count and the tail, in 64-bit signed arithmetic.
        found: i64,
    },
}

/// A coinbase field cut into its parts.
#[derive(Debug, Clone, Copy)]
pub struct Coinbase<'a> {
    count: u64,
    state: &'a [u8; 32],
    tail: &'a [u8],
}

impl<'a> Coinbase<'a> {
    /// Splits the field into its parts.
    pub fn parse(field: &'a [u8]) -> Result<Self, CoinbaseError> {
        let short = CoinbaseError::TooShort { found: field.len() };
        let (count, rest) = field.split_first_chunk::<8>().ok_or(short.clone())?;
        let (state, tail) = rest.split_first_chunk::<32>().ok_or(short)?;
        Ok(Self { count: u64::from_be_bytes(*count), state, tail })
    }

    /// Checks that the coinbase commits to `hash_for_merged_mining` by its last tag, and that this tag has the right position.
    pub fn check_commitment(&self, hash_for_merged_mining: &B256) -> Result<(), CoinbaseError> {
        let missing = CoinbaseError::TagMissing { expected: *hash_for_merged_mining };
        let last = self.last_tag(None).ok_or(missing.clone())?;
        // Nearly always there is only one tag.
        let found = match self.names(last, hash_for_merged_mining) {
            true => last,
            false => self.last_tag(Some(hash_for_merged_mining)).ok_or(missing)?,
        };
        if found > MAX_TAG_POSITION {
            return Err(CoinbaseError::TagPosition { found });
        }
        if found != last {
            return Err(CoinbaseError::NotLastTag { found, last });
        }
        let trailing = self.tail.len().saturating_sub(found).saturating_sub(COMMITMENT_LEN);
        if trailing > MAX_TRAILING_BYTES {
            return Err(CoinbaseError::TrailingBytes { found: trailing });
        }
        // The count and the sum wrap in the reference node's 64-bit signed arithmetic.
        let length = (self.count as i64).wrapping_add(self.tail.len() as i64);
        if length <= MIN_COINBASE_EXCLUDED {
            return Err(CoinbaseError::TransactionLength { found: length });
        }
        Ok(())
    }

    /// Offset of the last tag; if a hash is given, of the last tag with this hash.
    fn last_tag(&self, hash: Option<&B256>) -> Option<usize> {
        let tag = MERGED_MINING_TAG.as_slice();
        let starts = self
            .tail
            .windows(tag.len())
            .enumerate()
            .rev()
            .filter(|(_, window)| window.first() == tag.first() && *window == tag);
        let mut positions = starts.map(|(at, _)| at);
        match hash {
            None => positions.next(),
            Some(hash) => positions.find(|at| self.names(*at, hash)),
        }
    }

    /// Whether `hash` follows the tag at the offset `tag` of the tail.
    fn names(&self, tag: usize, hash: &B256) -> bool {
        let behind = tag.checked_add(MERGED_MINING_TAG.len()).and_then(|start| self.tail.get(start..));
        behind.is_some_and(|rest| rest.starts_with(hash.as_slice()))
    }

    /// The transaction's hash in internal byte order.
    pub fn transaction_hash(&self) -> B256 {
        sha256_of_hash(&sha256_from_midstate(self.count, self.state, self.tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HASH: B256 = B256::repeat_byte(0x77);

    fn field(count: u64, before: usize, hash: &B256, after: &[u8]) -> Vec<u8> {
        let mut out = count.to_be_bytes().to_vec();
        out.extend([1; 32]);
        out.extend(vec![0x20; before]);
        out.extend(MERGED_MINING_TAG);
        out.extend(hash.as_slice());
        out.extend(after);
        out
    }

    fn check(field: &[u8]) -> Result<(), CoinbaseError> {
        Coinbase::parse(field)?.check_commitment(&HASH)
    }

    #[test]
    fn a_field_shorter_than_a_midstate_is_refused() {
        assert_eq!(check(&[0; 39]), Err(CoinbaseError::TooShort { found: 39 }));
        assert_eq!(check(&[]), Err(CoinbaseError::TooShort { found: 0 }));
        assert_eq!(check(&[0; 40]), Err(CoinbaseError::TagMissing { expected: HASH }));
    }

    #[test]
    fn the_tag_must_carry_the_hash() {
        assert_eq!(check(&field(64, 4, &HASH, &[])), Ok(()));
        let missing = Err(CoinbaseError::TagMissing { expected: HASH });
        assert_eq!(check(&field(64, 4, &B256::repeat_byte(0x78), &[])), missing);
        let mut cut = field(64, 4, &HASH, &[]);
        cut.pop();
        assert_eq!(check(&cut), missing);
    }

    #[test]
    fn the_tag_must_start_in_the_first_block() {
        assert_eq!(check(&field(64, 63, &HASH, &[])), Ok(()));
        assert_eq!(check(&field(64, 64, &HASH, &[])), Err(CoinbaseError::TagPosition { found: 64 }));
    }

    #[test]
    fn the_tag_must_be_the_last() {
        let after = field(64, 10, &B256::ZERO, &[]).split_off(MIDSTATE_LEN);
        assert_eq!(
            check(&field(64, 4, &HASH, &after)),
            Err(CoinbaseError::NotLastTag { found: 4, last: 55 })
        );
        // If the same commitment occurs again, the last one counts.
        let again = field(64, 10, &HASH, &[]).split_off(MIDSTATE_LEN);
        assert_eq!(check(&field(64, 4, &HASH, &again)), Ok(()));
        // An earlier tag of another chain does no harm.
        let mut two = field(64, 4, &B256::ZERO, &[]);
        two.extend(field(64, 3, &HASH, &[]).split_off(MIDSTATE_LEN));
        assert_eq!(check(&two), Ok(()));
    }

    #[test]
    fn at_most_128_bytes_follow() {
        assert_eq!(check(&field(64, 0, &HASH, &[0; 128])), Ok(()));
        assert_eq!(check(&field(64, 0, &HASH, &[0; 129])), Err(CoinbaseError::TrailingBytes { found: 129 }));
    }

    #[test]
    fn the_transaction_is_longer_than_64_bytes() {
        let len = |found| Err(CoinbaseError::TransactionLength { found });
        assert_eq!(check(&field(23, 0, &HASH, &[])), len(64));
        assert_eq!(check(&field(24, 0, &HASH, &[])), Ok(()));
        assert_eq!(check(&field(u64::MAX, 0, &HASH, &[])), len(40));
        assert_eq!(check(&field(i64::MAX as u64, 0, &HASH, &[])), len(i64::MIN + 40));
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            if let Ok(coinbase) = Coinbase::parse(&bytes) {
                let _ = coinbase.check_commitment(&HASH);
                let _ = coinbase.transaction_hash();
            }
        }

        #[test]
        fn any_tail_around_a_tag_is_answered(before in 0usize..80, after in proptest::collection::vec(any::<u8>(), 0..200), count: u64) {
            let bytes = field(count, before, &HASH, &after);
            let _ = check(&bytes);
        }
    }
}
