//! The block header and its hashes (versions 0, 1 and 2; RSKIP-351, RSKIP-535).

use alloc::vec::Vec;
use core::ops::Deref;

use alloy_primitives::{Address, B256, Bloom, Bytes, U256, b256, keccak256};
use thiserror::Error;

use super::error::FieldError;
use super::number::{RawUint, SignedUint};

/// The tag before the merged-mining hash in a Bitcoin coinbase.
pub const MERGED_MINING_TAG: &[u8; 9] = b"RSKBLOCK:";
/// Bytes of fork-detection data at the end of the hash for merged mining (RSKIP-110).
pub const FORK_DETECTION_LEN: usize = 12;
/// Uncles hash of a block without uncles: keccak of the empty list.
pub const EMPTY_UNCLES_HASH: B256 = b256!("1dcc4de8dec75d7aab85b567b6ccd41ad312451b948a7413f0a142fd40d49347");
/// Number of leading bytes of the mining base hash that the coinbase repeats. The hash that mixes in the root of umbrella merged mining
/// (UMM) covers as many leading bytes of the hash without the root.
pub(super) const MINING_PREFIX_LEN: usize = 20;

/// Header layout versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HeaderVersion {
    /// The hashed list contains the bloom.
    V0,
    /// The hashed list contains a hash of bloom and sublist edges instead (RSKIP-351).
    V1,
    /// As version 1; the hash also covers the base event (RSKIP-535).
    V2,
}

impl HeaderVersion {
    /// The version byte of the encoding.
    pub const fn byte(self) -> u8 {
        match self {
            Self::V0 => 0,
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }
}

/// Layout of a header under the rules at its height. The network parameters create it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HeaderShape {
    /// Layout version.
    pub version: HeaderVersion,
    /// Whether the field of the UMM root exists (RSKIP-UMM active, not genesis).
    pub umm_root: bool,
    /// Whether the sublist edges field exists (RSKIP-144 and RSKIP-351 active).
    pub edges: bool,
    /// Whether Merkle proof and coinbase are part of the block hash (RSKIP-92 not active).
    pub hash_covers_proof: bool,
    /// Whether the hash for merged mining ends in fork-detection data (RSKIP-110 active, number >= 449).
    pub fork_detection: bool,
    /// Whether a version 2 header may lack its base event, which then counts as empty (testnet heights
    /// 7,604,200 to 7,799,999).
    pub base_event_optional: bool,
}

impl HeaderShape {
    /// Number of items of the uncompressed list before the mining fields: 16, and those of later rules.
    pub const fn base_items(&self) -> usize {
        // The version byte, in version 2 the base event, and the edges if there are any.
        let extension = match self.version {
            HeaderVersion::V0 => 0usize,
            HeaderVersion::V1 => 1usize.saturating_add(self.edges as usize),
            HeaderVersion::V2 => 2usize.saturating_add(self.edges as usize),
        };
        16usize.saturating_add(self.umm_root as usize).saturating_add(extension)
    }
}

/// The encodings of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderForm {
    /// All fields: used in block bodies, in uncle lists and for the block's `size`.
    Full,
    /// The result of `rsk_getRawBlockHeaderBy*`: without Merkle proof and coinbase from RSKIP-92 on.
    Raw,
    /// Peer-to-peer form: all mining fields. Versions 1 and 2 have one hash in place of the bloom, the edges and the base event (the
    /// extension).
    Compressed,
    /// Preimage of the block hash.
    Hash,
    /// Preimage of the merged-mining base hash: without mining fields.
    MergedMining,
}

/// A block header. Fields keep the byte form that is hashed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Layout of the header at this height.
    pub shape: HeaderShape,
    /// Hash of the parent header.
    pub parent_hash: B256,
    /// Keccak-256 of the RLP list of full uncle headers.
    pub uncles_hash: B256,
    /// Fee receiver; `None` is encoded as the empty string.
    pub coinbase: Option<Address>,
    /// Root of the state trie after the block.
    pub state_root: B256,
    /// Root of the transactions trie.
    pub transactions_root: B256,
    /// Root of the receipts trie.
    pub receipts_root: B256,
    /// Bloom of all logs.
    pub logs_bloom: Bloom,
    /// Block difficulty.
    pub difficulty: SignedUint,
    /// Block number (at most 2^63 - 1).
    pub number: u64,
    /// Block gas limit in the byte form received.
    pub gas_limit: RawUint,
    /// Gas used by all transactions (at most 2^63 - 1).
    pub gas_used: u64,
    /// Unix time in seconds (at most 2^63 - 1).
    pub timestamp: u64,
    /// Extra data chosen by the miner. Decoding does not check the length rule.
    pub extra_data: Bytes,
    /// Fees paid by all transactions, in wei.
    pub paid_fees: U256,
    /// Lowest gas price accepted in the block, in wei.
    pub minimum_gas_price: SignedUint,
    /// Number of uncles as stated by the miner (at most 2^31 - 1).
    pub uncle_count: u32,
    /// Root of umbrella merged mining (RSKIP-UMM): empty or 20 bytes.
    pub umm_root: Bytes,
    /// Ends of the parallel transaction sublists (RSKIP-144).
    pub edges: Vec<u16>,
    /// Bridge event of the block (RSKIP-535), or empty. Decoding does not check the length rule.
    pub base_event: Bytes,
    /// Bitcoin block header: 80 bytes (genesis and fallback-mined headers differ).
    pub bitcoin_header: Bytes,
    /// Merkle branch of the coinbase; empty if not available.
    pub merkle_proof: Bytes,
    /// Count of bytes and SHA-256 midstate (40 bytes), and tail of the coinbase transaction; empty if not available.
    pub coinbase_tx: Bytes,
}

/// Both hashes of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeaderHashes {
    /// The block hash.
    pub hash: B256,
    /// The mining base hash, after the UMM step.
    pub mining_base: B256,
}

/// Why bytes do not decode as a header, or why a header has no hash for merged mining.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum HeaderError {
    /// A field breaks a rule.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// No form of a header at this height has this number of items.
    #[error("header {number}: {found} items, expected {base} without or {} with mining fields", base.saturating_add(3))]
    Items {
        number: u64,
        found: usize,
        /// Number of items of a header at this height without mining fields.
        base: usize,
    },
    /// All mining fields are empty. Such a header is encoded without them.
    #[error("header {0}: empty mining fields")]
    EmptyMiningFields(u64),
    /// The coinbase contains no complete tag with fork-detection data (RSKIP-110).
    #[error("header {0}: no fork-detection data in the coinbase")]
    NoForkDetectionData(u64),
}

impl Header {
    /// A header of this layout at this height without uncles and mining fields. Every other field is zero or empty.
    #[must_use]
    pub fn empty(shape: HeaderShape, number: u64) -> Self {
        Self {
            shape,
            parent_hash: B256::ZERO,
            uncles_hash: EMPTY_UNCLES_HASH,
            coinbase: None,
            state_root: B256::ZERO,
            transactions_root: B256::ZERO,
            receipts_root: B256::ZERO,
            logs_bloom: Bloom::ZERO,
            difficulty: SignedUint::new(U256::ZERO),
            number,
            gas_limit: RawUint::minimal(U256::ZERO),
            gas_used: 0,
            timestamp: 0,
            extra_data: Bytes::new(),
            paid_fees: U256::ZERO,
            minimum_gas_price: SignedUint::new(U256::ZERO),
            uncle_count: 0,
            umm_root: Bytes::new(),
            edges: Vec::new(),
            base_event: Bytes::new(),
            bitcoin_header: Bytes::new(),
            merkle_proof: Bytes::new(),
            coinbase_tx: Bytes::new(),
        }
    }

    /// Whether any mining field is present. A header without mining fields has not been mined yet.
    pub fn has_mining_fields(&self) -> bool {
        !(self.bitcoin_header.is_empty() && self.merkle_proof.is_empty() && self.coinbase_tx.is_empty())
    }

    /// The block hash.
    pub fn hash(&self) -> B256 {
        keccak256(self.encode(HeaderForm::Hash))
    }

    /// The base of the hash for merged mining: keccak-256 of the header without mining fields, combined with
    /// the UMM root if there is one.
    pub fn mining_base_hash(&self) -> B256 {
        self.mix_umm_root(keccak256(self.encode(HeaderForm::MergedMining)))
    }

    /// Computes both hashes from one encoding.
    pub fn hashes(&self) -> HeaderHashes {
        // Both hashes are of the compressed form.
        let mut list = self.encode_base(true);
        let bare = keccak256(list.as_list());
        let hash = if self.has_mining_fields() {
            self.put_mining_fields(list.items(), self.shape.hash_covers_proof);
            keccak256(list.as_list())
        } else {
            bare
        };
        HeaderHashes { hash, mining_base: self.mix_umm_root(bare) }
    }

    /// RSKIP-UMM: keccak-256 of the first 20 bytes of the hash followed by the UMM root.
    pub(super) fn mix_umm_root(&self, bare: B256) -> B256 {
        if self.umm_root.is_empty() {
            return bare;
        }
        // The root has as many bytes as the prefix.
        let mut preimage = [0u8; 2 * MINING_PREFIX_LEN];
        let parts = mining_prefix(&bare).iter().chain(self.umm_root.iter());
        preimage.iter_mut().zip(parts).for_each(|(to, from)| *to = *from);
        keccak256(preimage)
    }

    /// The hash that the Bitcoin coinbase must commit to.
    pub fn hash_for_merged_mining(&self) -> Result<B256, HeaderError> {
        self.complete_mining_hash(self.mining_base_hash())
    }

    /// Computes [`Self::hash_for_merged_mining`] from [`HeaderHashes::mining_base`].
    pub fn complete_mining_hash(&self, mining_base: B256) -> Result<B256, HeaderError> {
        if !self.shape.fork_detection {
            return Ok(mining_base);
        }
        let data = find_fork_detection(&self.coinbase_tx, &mining_base)
            .ok_or(HeaderError::NoForkDetectionData(self.number))?;
        Ok(with_fork_detection(&mining_base, &data))
    }

    /// The fork-detection data in the coinbase (RSKIP-110). `None` if the header has none.
    pub fn fork_detection_data(&self) -> Option<[u8; FORK_DETECTION_LEN]> {
        if !self.shape.fork_detection {
            return None;
        }
        find_fork_detection(&self.coinbase_tx, &self.mining_base_hash())
    }

    /// Computes the block hash and stores it with the header.
    pub fn seal(self) -> SealedHeader {
        let hash = self.hash();
        SealedHeader { header: self, hash }
    }

    /// As [`Self::seal`], but also returns the mining base hash.
    pub fn seal_with_mining_base(self) -> (SealedHeader, B256) {
        let HeaderHashes { hash, mining_base } = self.hashes();
        (SealedHeader { header: self, hash }, mining_base)
    }
}

/// The first 20 bytes of a hash followed by fork-detection data.
pub fn with_fork_detection(mining_base: &B256, data: &[u8; FORK_DETECTION_LEN]) -> B256 {
    let mut out = *mining_base;
    out.iter_mut().skip(MINING_PREFIX_LEN).zip(data).for_each(|(to, from)| *to = *from);
    out
}

/// The bytes of the hash that the coinbase repeats before the fork-detection data.
fn mining_prefix(hash: &B256) -> &[u8] {
    hash.as_slice().split_at(MINING_PREFIX_LEN).0
}

/// The 12 bytes after the last tag that is followed by the prefix of this hash. As in the reference node, the last such tag counts, and
/// the search covers the whole field, the midstate included.
fn find_fork_detection(coinbase: &[u8], mining_base: &B256) -> Option<[u8; FORK_DETECTION_LEN]> {
    const TAG_LEN: usize = MERGED_MINING_TAG.len();
    let prefix = mining_prefix(mining_base);
    let start = coinbase
        .windows(TAG_LEN + MINING_PREFIX_LEN)
        .rposition(|window| {
            let (tag, hash) = window.split_at(TAG_LEN);
            // The first byte alone rules out nearly every window.
            tag.first() == MERGED_MINING_TAG.first() && tag == MERGED_MINING_TAG && hash == prefix
        })?
        .checked_add(TAG_LEN + MINING_PREFIX_LEN)?;
    coinbase.get(start..)?.first_chunk::<FORK_DETECTION_LEN>().copied()
}

/// A header with its hash, which is always computed from the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedHeader {
    header: Header,
    hash: B256,
}

impl SealedHeader {
    /// The block hash.
    pub const fn hash(&self) -> B256 {
        self.hash
    }

    /// The header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the header without its hash.
    pub fn into_header(self) -> Header {
        self.header
    }

    /// Creates the pair from a hash that the decoder computed from the bytes it read.
    pub(super) const fn from_parts(header: Header, hash: B256) -> Self {
        Self { header, hash }
    }
}

impl Deref for SealedHeader {
    type Target = Header;

    fn deref(&self) -> &Header {
        &self.header
    }
}
