//! The record of a start by window, which a host stores beside the headers: the block at which the window starts, and the mark
//! that later runs must not contradict.

use alloc::vec::Vec;

use alloy_primitives::keccak256;
use thiserror::Error;

use crate::{
    consensus::Checkpoint,
    types::{
        B256, FieldError, U256,
        rlp::{ListBuf, RlpReader, fixed, put_str, put_u64, put_u256, uint, uint63},
    },
};

/// Version of the bytes of a [`WindowRecord`].
const VERSION: u64 = 2;

/// Bytes of the checksum behind a record, the first ones of its hash. The checksum finds accidental damage: with a wrong mark, honest
/// windows would be refused.
const CHECKSUM_LEN: usize = 8;

/// The capacity that is allocated for a [`WindowRecord`], in bytes; with the largest numbers it takes 146.
const MOST_BYTES: usize = 168;

/// Depth of the block that a mark names: that of final blocks, which no honest chain replaces.
pub(super) const MARK_DEPTH: u64 = 120;

/// The name of the fields in decoding errors, which are not shown: [`WindowRecordError`] replaces them.
const FIELD: &str = "window";

/// The mark of the newest chain that a run has proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvenMark {
    /// Number of a final block of the chain.
    pub number: u64,
    /// Hash of that block.
    pub hash: B256,
    /// Time of the chain's head, in seconds since 1970.
    pub time: u64,
    /// Proven work of the newest headers of the chain, as many as a short window has: those of 12 hours on mainnet.
    pub work: U256,
}

/// The record of a start by window, which a host stores beside the pages of headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRecord {
    /// The block at which the chain starts.
    pub base: Checkpoint,
    /// Number of the lowest stored header.
    pub lowest: u64,
    /// The proven mark.
    pub mark: ProvenMark,
}

/// The bytes are not a [`WindowRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("the record of the start does not decode")]
pub struct WindowRecordError;

impl WindowRecord {
    /// The record as bytes: the RLP list of version, number of the base, lowest number, number and time of the mark, hash of the base,
    /// hash of the mark, and work; then the checksum.
    pub fn encode(&self) -> Vec<u8> {
        let Self { base, lowest, mark } = self;
        let mut list = ListBuf::with_capacity(MOST_BYTES);
        for number in [VERSION, base.number, *lowest, mark.number, mark.time] {
            put_u64(list.items(), number);
        }
        for hash in [&base.hash, &mark.hash] {
            put_str(list.items(), hash.as_slice());
        }
        put_u256(list.items(), &mark.work);
        with_checksum(list.into_list())
    }

    /// Reads what [`Self::encode`] wrote.
    ///
    /// # Errors
    /// The bytes are damaged, have another form or version, or name a lowest header above the base.
    pub fn decode(bytes: &[u8]) -> Result<Self, WindowRecordError> {
        let (list, sum) = bytes.split_last_chunk::<CHECKSUM_LEN>().ok_or(WindowRecordError)?;
        if !keccak256(list).starts_with(sum) {
            return Err(WindowRecordError);
        }
        let record = Self::read(list).map_err(|_| WindowRecordError)?;
        record.filter(|record| record.lowest <= record.base.number).ok_or(WindowRecordError)
    }

    /// Reads the fields; `None` in another version.
    fn read(bytes: &[u8]) -> Result<Option<Self>, FieldError> {
        let mut list = RlpReader::list(bytes, FIELD)?;
        let (mut numbers, mut hashes) = ([0; 5], [B256::ZERO; 2]);
        for number in &mut numbers {
            *number = uint63(list.next_str(FIELD)?, FIELD)?;
        }
        for hash in &mut hashes {
            *hash = fixed(list.next_str(FIELD)?, FIELD)?.into();
        }
        let work = uint(list.next_str(FIELD)?, FIELD)?;
        list.finish(FIELD)?;
        let ([version, base, lowest, number, time], [base_hash, hash]) = (numbers, hashes);
        let mark = ProvenMark { number, hash, time, work };
        let base = Checkpoint { number: base, hash: base_hash, total_difficulty: None };
        Ok(Some(Self { base, lowest, mark }).filter(|_| version == VERSION))
    }
}

/// Puts the checksum behind the list of a record.
fn with_checksum(mut list: Vec<u8>) -> Vec<u8> {
    let sum = keccak256(&list);
    list.extend(sum.iter().take(CHECKSUM_LEN));
    list
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::rlp::list_of;

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
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(WindowRecord::decode(&damaged), Err(WindowRecordError), "byte {at}");
        }
        let list = &bytes[..bytes.len() - CHECKSUM_LEN];
        assert_eq!(with_checksum(list.to_vec()), bytes);
        let longer = [list, &[0]].concat();
        let item_more = list_of([&list[2..], &[0]]);
        // The version follows the header of the list.
        let other = [&list[..2], &[1], &list[3..]].concat();
        let above = WindowRecord { lowest: 9_001, ..record }.encode();
        for wrong in [with_checksum(longer), with_checksum(item_more), with_checksum(other), above] {
            assert_eq!(WindowRecord::decode(&wrong), Err(WindowRecordError));
        }
    }
}
