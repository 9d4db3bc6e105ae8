//! What a host stores of a start by window beside its headers.

use alloc::vec::Vec;

use thiserror::Error;

use crate::{
    consensus::Checkpoint,
    types::{B256, U256},
};

/// Version of the bytes of a [`WindowRecord`].
const VERSION: u8 = 1;

/// Bytes of a [`WindowRecord`].
const RECORD_BYTES: usize = 1 + 8 + 32 + 8 + 8 + 32 + 8 + 32;

/// The newest chain that a run has proven, in four numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvenMark {
    /// Number of a final block of the chain.
    pub number: u64,
    /// Hash of that block.
    pub hash: B256,
    /// Time of the chain's head, in seconds since 1970.
    pub time: u64,
    /// Proven work of the newest headers of the chain: of those of 12 hours.
    pub work: U256,
}

/// What a host stores of a start by window, beside the pages of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRecord {
    /// The block at which the chain starts.
    pub base: Checkpoint,
    /// Number of the lowest stored header.
    pub lowest: u64,
    /// What was proven.
    pub mark: ProvenMark,
}

/// The bytes are not a [`WindowRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the record of the start does not decode")]
pub struct WindowRecordError;

impl WindowRecord {
    /// The record as bytes: a version, then base, lowest number and mark. Numbers are big-endian.
    pub fn encode(&self) -> Vec<u8> {
        let Self { base, lowest, mark } = self;
        let numbers = [base.number, *lowest, mark.number, mark.time].map(u64::to_be_bytes);
        let [number, lowest, mark_number, time] = numbers.each_ref().map(|bytes| &bytes[..]);
        let work = mark.work.to_be_bytes::<32>();
        [&[VERSION][..], number, &base.hash[..], lowest, mark_number, &mark.hash[..], time, &work].concat()
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// The bytes have another length or version, or name a lowest header above the base.
    pub fn decode(bytes: &[u8]) -> Result<Self, WindowRecordError> {
        let record = Self::read(bytes).filter(|record| record.lowest <= record.base.number);
        record
            .filter(|_| bytes.len() == RECORD_BYTES && bytes.first() == Some(&VERSION))
            .ok_or(WindowRecordError)
    }

    /// Reads the fields.
    fn read(bytes: &[u8]) -> Option<Self> {
        let number = |at: usize| bytes.get(at..)?.first_chunk().copied().map(u64::from_be_bytes);
        let hash = |at: usize| bytes.get(at..)?.first_chunk().copied().map(B256::new);
        let base = Checkpoint { number: number(1)?, hash: hash(9)?, total_difficulty: None };
        let work = U256::from_be_bytes(hash(97)?.0);
        let mark = ProvenMark { number: number(49)?, hash: hash(57)?, time: number(89)?, work };
        Some(Self { base, lowest: number(41)?, mark })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_as_they_were_written_and_other_bytes_are_not() {
        let base = Checkpoint { number: 9_000, hash: B256::repeat_byte(1), total_difficulty: None };
        let mark =
            ProvenMark { number: 9_500, hash: B256::repeat_byte(2), time: 7, work: U256::from(1) << 80 };
        let record = WindowRecord { base, lowest: 8_551, mark };
        let bytes = record.encode();
        assert_eq!(WindowRecord::decode(&bytes), Ok(record));
        for cut in 0..bytes.len() {
            assert_eq!(WindowRecord::decode(&bytes[..cut]), Err(WindowRecordError));
        }
        let longer = [&bytes[..], &[0]].concat();
        let other = [&[2], &bytes[1..]].concat();
        let above = WindowRecord { lowest: 9_001, ..record }.encode();
        for wrong in [longer, other, above] {
            assert_eq!(WindowRecord::decode(&wrong), Err(WindowRecordError));
        }
    }
}
