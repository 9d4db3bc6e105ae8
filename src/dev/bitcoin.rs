//! Bitcoin blocks as external miners submit them, decoded as far as the proof of the coinbase needs.

use alloc::vec::Vec;

use alloy_primitives::B256;

use super::error::DevError;
use crate::consensus::bitcoin::{HEADER_LEN, double_sha256};
use crate::consensus::mining::{BitcoinWork, committed_hash};

/// The largest number of transactions in a block. A Bitcoin block of 4 MB cannot hold more.
const MAX_TRANSACTIONS: u64 = 100_000;

/// A submitted Bitcoin block: header, coinbase, Merkle branch, and the hash in its coinbase.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Header, coinbase and Merkle branch.
    pub(super) work: BitcoinWork,
    /// The hash after the last `RSKBLOCK:` tag in the coinbase, which names the mined block. Zero, which is no block's hash, if there
    /// is no tag.
    pub(super) named: B256,
}

impl Submission {
    /// Header, coinbase and Merkle branch, as the header of the mined block gets them.
    pub const fn work(&self) -> &BitcoinWork {
        &self.work
    }

    /// Reads the hash that the coinbase names.
    fn new(work: BitcoinWork) -> Self {
        Self { named: committed_hash(&work.coinbase).unwrap_or_default(), work }
    }

    /// Decodes a whole block in Bitcoin's encoding.
    ///
    /// # Errors
    /// [`DevError::NotBitcoin`].
    pub fn block(bytes: &[u8]) -> Result<Self, DevError> {
        Self::read_block(bytes).ok_or(DevError::NotBitcoin("block"))
    }

    /// As [`Self::block`], without the reason of a failure.
    fn read_block(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_LEN>()?;
        let mut reader = BitcoinReader(rest);
        let count = reader.varint().filter(|count| (1..=MAX_TRANSACTIONS).contains(count))?;
        let mut hashes = Vec::new();
        let mut coinbase = Vec::new();
        for index in 0..count {
            let transaction = reader.transaction()?;
            hashes.push(double_sha256(transaction));
            if index == 0 {
                coinbase = transaction.to_vec();
            }
        }
        Some(Self::new(BitcoinWork::with_transactions(*header, coinbase, &hashes)))
    }

    /// Decodes a header, the coinbase, and the hashes of all transactions in internal byte order, the coinbase's first.
    ///
    /// # Errors
    /// [`DevError::NotBitcoin`].
    pub fn transactions(header: &[u8], coinbase: &[u8], hashes: &[B256]) -> Result<Self, DevError> {
        let (header, coinbase) = header_and_coinbase(header, coinbase)?;
        Ok(Self::new(BitcoinWork::with_transactions(header, coinbase, hashes)))
    }

    /// Decodes a header, the coinbase, the Merkle branch in internal byte order with the coinbase's own hash first,
    /// and the number of transactions.
    ///
    /// # Errors
    /// [`DevError::NotBitcoin`], [`DevError::NoMerkleHashes`].
    pub fn partial(header: &[u8], coinbase: &[u8], branch: &[B256], count: u32) -> Result<Self, DevError> {
        let (_, siblings) = branch.split_first().ok_or(DevError::NoMerkleHashes)?;
        let (header, coinbase) = header_and_coinbase(header, coinbase)?;
        Ok(Self::new(BitcoinWork { header, coinbase, branch: siblings.to_vec(), transactions: count }))
    }
}

/// Reads the header and the coinbase transaction; bytes after them are ignored.
fn header_and_coinbase(header: &[u8], coinbase: &[u8]) -> Result<([u8; HEADER_LEN], Vec<u8>), DevError> {
    let header = header.first_chunk::<HEADER_LEN>().ok_or(DevError::NotBitcoin("header"))?;
    let read = BitcoinReader(coinbase).transaction().ok_or(DevError::NotBitcoin("transaction"))?;
    Ok((*header, read.to_vec()))
}

/// Reads Bitcoin's encoding from the front of a slice. The methods return `None` if the slice is too short.
struct BitcoinReader<'a>(&'a [u8]);

impl<'a> BitcoinReader<'a> {
    /// Reads bytes.
    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(usize::try_from(len).ok()?)?;
        self.0 = rest;
        Some(front)
    }

    /// Reads a number of 1, 3, 5 or 9 bytes: a small number itself, or a mark of its length and the number in little endian.
    fn varint(&mut self) -> Option<u64> {
        let first = *self.take(1)?.first()?;
        let len = match first {
            0xfd => 2,
            0xfe => 4,
            0xff => 8,
            small => return Some(u64::from(small)),
        };
        let bytes = self.take(len)?;
        Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
    }

    /// Skips a script, which follows its length.
    fn script(&mut self) -> Option<()> {
        let len = self.varint()?;
        self.take(len).map(drop)
    }

    /// Reads a transaction without witness data; mining pools submit the coinbase in this form.
    fn transaction(&mut self) -> Option<&'a [u8]> {
        let start = self.0;
        // The version.
        self.take(4)?;
        for _ in 0..self.varint()? {
            // The spent output (transaction hash and index), the script, and the sequence number.
            self.take(36)?;
            self.script()?;
            self.take(4)?;
        }
        for _ in 0..self.varint()? {
            // The amount and the script.
            self.take(8)?;
            self.script()?;
        }
        // The lock time.
        self.take(4)?;
        start.get(..start.len().checked_sub(self.0.len())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_block_with_generated_work_decodes_to_the_same_work() {
        let hash = B256::repeat_byte(5);
        let work = BitcoinWork::new(&hash, 7);
        let block = [&work.header[..], &[1], &work.coinbase].concat();
        let read = Submission::block(&block).unwrap();
        assert_eq!((read.named, &read.work), (hash, &work));
        let leaf = double_sha256(&work.coinbase);
        let partial = Submission::partial(&work.header, &work.coinbase, &[leaf], 1).unwrap();
        assert_eq!(partial.work, work);
        let listed = Submission::transactions(&work.header, &work.coinbase, &[leaf]).unwrap();
        assert_eq!(listed.work, work);
        assert!(Submission::partial(&work.header, &work.coinbase, &[], 1).is_err());
        assert!(Submission::block(&block[..block.len() - 1]).is_err());
        assert!(Submission::block(&[0]).is_err());
    }

    proptest! {
        #[test]
        fn decoding_arbitrary_bytes_does_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = Submission::block(&bytes);
        }
    }
}
