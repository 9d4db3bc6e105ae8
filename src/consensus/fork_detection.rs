//! Fork detection data (RSKIP-110): the last twelve bytes of a header's hash for merged mining, which commit to earlier Bitcoin headers.
//!
//! Layout: 7 bytes, one byte of the Bitcoin header's hash of each of the blocks `s`, `s - 64` ... `s - 384` (the first byte in
//! internal byte order, the last one as displayed); 1 byte, the number of uncles that the last 32 blocks state, at most 255; 4 bytes,
//! the block number, big-endian. `s` is the parent's number rounded down to a multiple of 64.

use thiserror::Error;

use super::bitcoin::BitcoinHeader;
use super::network::FORK_DETECTION_FIRST;
use crate::types::{B256, FORK_DETECTION_LEN, Header};

/// Distance in blocks between two commitments.
pub const COMMITMENT_STEP: u64 = 64;
/// Number of commitments.
pub const COMMITMENTS: usize = 7;
/// Number of blocks whose uncles are counted.
pub const UNCLE_BLOCKS: u64 = 32;
/// Number of consecutive ancestors that a chain needs to check all parts.
pub const ANCESTORS_NEEDED: u64 = FORK_DETECTION_FIRST;

/// The parts of a header's fork detection data that were checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ForkDetection {
    /// The rules at this height do not check the data.
    #[default]
    NotRequired,
    /// The block number was checked, and the parts that follow from the ancestors of the chain.
    Checked {
        /// Number of commitments checked, of seven, newest first.
        commitments: u8,
        /// Whether the uncle count was checked.
        uncles: bool,
    },
}

impl ForkDetection {
    /// Whether all parts that the rules require were checked.
    #[must_use]
    pub const fn is_complete(self) -> bool {
        matches!(self, Self::NotRequired | Self::Checked { commitments: 7, uncles: true })
    }
}

/// A part of the data that contradicts the ancestors.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ForkDetectionError {
    /// A commitment to an earlier Bitcoin header is wrong.
    #[error("commitment {index} is {found:#04x}, block {block} gives {expected:#04x}")]
    Commitment { index: usize, block: u64, expected: u8, found: u8 },
    #[error("uncle count {found}, the last 32 blocks state {expected}")]
    Uncles {
        /// The sum in 32-bit signed arithmetic, as in the reference node. A negative sum equals no byte.
        expected: i32,
        found: u8,
    },
    #[error("number {found}, block {expected}")]
    Number { expected: u32, found: u32 },
}

/// Summary of a header and its ancestors in the chain, from which the fork detection data of its children are computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ForkContext {
    /// Commitments at and below this header, newest first. Only the first `known` are set.
    commitments: [u8; COMMITMENTS],
    /// Number of commitments that are set.
    known: u8,
    /// Sum of the uncle counts stated by this header and all its ancestors in the chain. The sum may wrap, because only
    /// differences are used.
    uncles: u32,
    /// Number of consecutive headers of the chain up to this one.
    headers: u32,
}

impl ForkContext {
    /// The context of `header`, given its parent's context. For the lowest header of a chain, the parent's context is the default.
    pub fn extended(&self, header: &Header) -> Self {
        let mut next = *self;
        next.uncles = self.uncles.wrapping_add(header.uncle_count);
        next.headers = self.headers.saturating_add(1);
        if header.number.is_multiple_of(COMMITMENT_STEP) {
            next.commitments.rotate_right(1);
            // Genesis and fallback blocks have no Bitcoin header. Data that the rules check never commit to such blocks.
            let byte = BitcoinHeader::first_of(&header.bitcoin_header).map_or(0, |btc| btc.hash().0[0]);
            if let Some(first) = next.commitments.first_mut() {
                *first = byte;
            }
            next.known = self.known.saturating_add(1).min(COMMITMENTS as u8);
        }
        next
    }

    /// Number of uncles stated by the last 32 headers up to this one. `below` is the context 32 headers earlier. Without `below` the
    /// result is `None`, unless the chain has exactly 32 headers.
    pub fn uncle_sum(&self, below: Option<&Self>) -> Option<i32> {
        let complete = below.is_some() || u64::from(self.headers) == UNCLE_BLOCKS;
        let before = below.map_or(0, |context| context.uncles);
        complete.then(|| self.uncles.wrapping_sub(before) as i32)
    }

    /// The data to which a child with this number must commit. Commitments that are not set are zero. `uncle_sum` is [`Self::uncle_sum`] of
    /// this header.
    pub fn data(&self, number: u64, uncle_sum: Option<i32>) -> [u8; FORK_DETECTION_LEN] {
        let uncles = uncle_sum.map_or(0, |sum| u8::try_from(sum.max(0)).unwrap_or(u8::MAX));
        let parts = self.commitments.into_iter().chain([uncles]).chain((number as u32).to_be_bytes());
        let mut data = [0; FORK_DETECTION_LEN];
        data.iter_mut().zip(parts).for_each(|(to, from)| *to = from);
        data
    }

    /// Checks the data of a child with this number, as far as the chain has the ancestors. `uncle_sum` is [`Self::uncle_sum`] of
    /// this header, the parent.
    pub fn check(
        &self,
        number: u64,
        data: &[u8; FORK_DETECTION_LEN],
        uncle_sum: Option<i32>,
    ) -> Result<ForkDetection, ForkDetectionError> {
        let [commitments @ .., uncles, a, b, c, d] = data;
        let (expected, found) = (number as u32, u32::from_be_bytes([*a, *b, *c, *d]));
        if expected != found {
            return Err(ForkDetectionError::Number { expected, found });
        }
        let newest_step = number.saturating_sub(1) / COMMITMENT_STEP;
        let known = self.commitments.iter().zip(commitments).take(usize::from(self.known));
        for (index, (expected, found)) in known.enumerate() {
            if expected != found {
                let block = newest_step.saturating_sub(index as u64).saturating_mul(COMMITMENT_STEP);
                return Err(ForkDetectionError::Commitment {
                    index,
                    block,
                    expected: *expected,
                    found: *found,
                });
            }
        }
        match uncle_sum {
            Some(expected) if expected < 0 || expected.min(255) != i32::from(*uncles) => {
                Err(ForkDetectionError::Uncles { expected, found: *uncles })
            }
            sum => Ok(ForkDetection::Checked { commitments: self.known, uncles: sum.is_some() }),
        }
    }
}

/// The data at the end of a hash for merged mining, if the rules check them at this height. The rules do not check the data of block
/// [`FORK_DETECTION_FIRST`] itself.
#[must_use]
pub fn checked_data(header: &Header, hash_for_merged_mining: &B256) -> Option<[u8; FORK_DETECTION_LEN]> {
    if !header.shape.fork_detection || header.number <= FORK_DETECTION_FIRST {
        return None;
    }
    hash_for_merged_mining.last_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: u64 = 5_000;
    const UNCLES: i32 = 9;

    fn context() -> ForkContext {
        ForkContext { commitments: [1, 2, 3, 4, 5, 6, 7], known: 7, uncles: 0, headers: 500 }
    }

    fn data() -> [u8; FORK_DETECTION_LEN] {
        let [.., a, b, c, d] = NUMBER.to_be_bytes();
        [1, 2, 3, 4, 5, 6, 7, UNCLES as u8, a, b, c, d]
    }

    fn changed(at: usize) -> Result<ForkDetection, ForkDetectionError> {
        let mut data = data();
        data[at] ^= 0x40;
        context().check(NUMBER, &data, Some(UNCLES))
    }

    #[test]
    fn data_that_match_the_ancestors_are_accepted() {
        let checked = context().check(NUMBER, &data(), Some(UNCLES)).unwrap();
        assert!(checked.is_complete());
    }

    #[test]
    fn data_made_for_a_child_pass_the_check() {
        assert_eq!(context().data(NUMBER, Some(UNCLES)), data());
        assert_eq!(context().data(NUMBER, Some(300))[7], 255);
        assert_eq!(context().data(NUMBER, None)[7], 0);
    }

    #[test]
    fn each_commitment_is_compared() {
        for at in 0..COMMITMENTS {
            let error = changed(at).unwrap_err();
            assert!(matches!(error, ForkDetectionError::Commitment { index, .. } if index == at), "{error}");
        }
    }

    #[test]
    fn the_number_is_compared() {
        for at in 8..FORK_DETECTION_LEN {
            let error = changed(at).unwrap_err();
            assert!(matches!(error, ForkDetectionError::Number { expected: 5_000, .. }), "{error}");
        }
    }

    #[test]
    fn the_uncle_count_is_compared() {
        let error = changed(7).unwrap_err();
        assert_eq!(error, ForkDetectionError::Uncles { expected: UNCLES, found: 0x49 });
        assert!(context().check(NUMBER, &data(), Some(-1)).is_err(), "a negative sum equals no byte");
        let mut full = data();
        full[7] = 255;
        assert!(context().check(NUMBER, &full, Some(256)).is_ok(), "counts above 255 are written as 255");
        assert!(context().check(NUMBER, &data(), None).is_ok_and(|checked| !checked.is_complete()));
    }
}
