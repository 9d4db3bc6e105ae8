//! The fields of a Bitcoin block header.

use super::hash::{HEADER_LEN, header_hash};
use crate::types::B256;

/// Offsets of a header's fields, in bytes.
const PREVIOUS_AT: usize = 4;
const ROOT_AT: usize = 36;
const TIME_AT: usize = 68;
const BITS_AT: usize = 72;

/// A Bitcoin header: 80 bytes. A Rootstock header has one in the field of its proof of work, where bytes may follow.
#[derive(Debug, Clone, Copy)]
pub struct BitcoinHeader<'a>(&'a [u8; HEADER_LEN]);

impl<'a> From<&'a [u8; HEADER_LEN]> for BitcoinHeader<'a> {
    #[inline]
    fn from(header: &'a [u8; HEADER_LEN]) -> Self {
        Self(header)
    }
}

impl<'a> BitcoinHeader<'a> {
    /// The header in the first 80 bytes of a field; `None` if there are fewer.
    #[must_use]
    pub fn first_of(field: &'a [u8]) -> Option<Self> {
        field.first_chunk::<HEADER_LEN>().map(Self)
    }

    /// Hash in internal byte order.
    pub fn hash(&self) -> B256 {
        header_hash(self.0)
    }

    /// Hash of the previous Bitcoin block, in internal byte order.
    #[inline]
    pub fn previous(&self) -> B256 {
        self.word(PREVIOUS_AT)
    }

    /// Merkle root of the transactions, in internal byte order.
    pub fn merkle_root(&self) -> B256 {
        self.word(ROOT_AT)
    }

    /// Time in seconds since 1970.
    #[inline]
    pub fn time(&self) -> u32 {
        self.number(TIME_AT)
    }

    /// The target that the header states, in compact form (`nBits`).
    #[inline]
    pub fn bits(&self) -> u32 {
        self.number(BITS_AT)
    }

    #[inline]
    fn number(&self, at: usize) -> u32 {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    }

    #[inline]
    fn word(&self, at: usize) -> B256 {
        self.0
            .get(at..)
            .and_then(|rest| rest.first_chunk::<32>())
            .map_or(B256::ZERO, |word| B256::from(*word))
    }
}

/// A header with its hash, so that the hash is computed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedHeader {
    header: [u8; HEADER_LEN],
    hash: B256,
}

impl HashedHeader {
    /// Hashes a header.
    #[must_use]
    #[inline]
    pub fn new(header: [u8; HEADER_LEN]) -> Self {
        Self { hash: header_hash(&header), header }
    }

    /// The header's hash, in internal byte order.
    #[must_use]
    #[inline]
    pub const fn hash(&self) -> &B256 {
        &self.hash
    }

    /// The header.
    #[must_use]
    #[inline]
    pub const fn header(&self) -> &[u8; HEADER_LEN] {
        &self.header
    }
}
