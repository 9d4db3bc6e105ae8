//! A Bitcoin block's coinbase, proven by its Merkle branch, and the Rootstock tag in it.
//!
//! A miner who merge-mines Rootstock writes a tag into the coinbase: `RSKBLOCK:` and a Rootstock header's hash for merged mining. The
//! proof shows to which Rootstock block, if any, a block of the Bitcoin chain commits, also if no upstream has shown that Rootstock
//! block.

use alloc::borrow::Cow;

use thiserror::Error;

use super::hash::{HEADER_LEN, double_sha256, reversed, sha256_midstate};
use super::header::BitcoinHeader;
use crate::consensus::coinbase::{Coinbase, MIDSTATE_LEN};
use crate::consensus::merkle::{BranchError, branch_root};
use crate::types::{B256, MERGED_MINING_TAG};

/// Most bytes of a coinbase transaction, witness data included. Pools that pay hundreds of miners in the coinbase need
/// up to 30 kB; Bitcoin relays no transaction above 100 kB.
pub const MAX_COINBASE_LEN: usize = 100_000;
/// Least bytes of a coinbase transaction: an inner Merkle node has 64 bytes, and could be passed off as a shorter transaction.
pub const MIN_COINBASE_LEN: usize = 65;
/// Length of a SHA-256 block, in bytes.
pub(super) const SHA256_BLOCK: usize = 64;
/// Length of a transaction's version, in bytes.
const VERSION_LEN: usize = 4;
/// Marker and flag of a transaction with witness data (BIP 144), where other transactions count their inputs.
const WITNESS_MARKER: [u8; 2] = [0, 1];
/// Length of an output's amount, in bytes.
const AMOUNT_LEN: usize = 8;
/// Length of the sequence number, and of the lock time, in bytes.
const WORD_LEN: usize = 4;

/// The 32 bytes after a tag, as RSKIP-110 lays them out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tag {
    /// First bytes of the header's hash for merged mining.
    pub hash20: [u8; 20],
    /// Commitments to earlier Bitcoin headers of the same Rootstock chain ("CPV"), newest first: byte `i` is the last
    /// byte of the displayed Bitcoin hash of the Rootstock block at `floor((number - 1) / 64) * 64 - 64 * i`.
    pub cpv: [u8; 7],
    /// Number of uncles that the last 32 blocks state, at most 255.
    pub uncles: u8,
    /// Number of the Rootstock block.
    pub number: u32,
}

impl From<[u8; 32]> for Tag {
    fn from(bytes: [u8; 32]) -> Self {
        let (mut hash20, mut cpv, mut number) = ([0; 20], [0; 7], [0; 4]);
        let mut rest = bytes.into_iter();
        hash20.iter_mut().zip(rest.by_ref()).for_each(|(to, from)| *to = from);
        cpv.iter_mut().zip(rest.by_ref()).for_each(|(to, from)| *to = from);
        let uncles = rest.next().unwrap_or_default();
        number.iter_mut().zip(rest).for_each(|(to, from)| *to = from);
        Self { hash20, cpv, uncles, number: u32::from_be_bytes(number) }
    }
}

/// Why a coinbase is not proven.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages show the fields")]
pub enum CoinbaseProofError {
    /// The transaction has an impossible or unreasonable length. 64 bytes could be an inner Merkle node.
    #[error("coinbase of {found} bytes, {MIN_COINBASE_LEN} to {MAX_COINBASE_LEN} expected")]
    Length { found: u64 },
    #[error("{found} bytes, the midstate alone has {MIDSTATE_LEN}")]
    NoMidstate { found: usize },
    /// The transaction is not cut at a SHA-256 block, or the state after no bytes is not SHA-256's first.
    #[error(
        "midstate after {count} bytes, which is not a whole number of SHA-256 blocks or has another state"
    )]
    Midstate { count: u64 },
    /// The bytes are not one transaction with one input that spends nothing.
    #[error("the bytes are not a coinbase transaction")]
    NotACoinbase,
    #[error("Merkle branch: {0}")]
    Branch(#[from] BranchError),
    /// The coinbase is not the first transaction of this Bitcoin block.
    #[error("Merkle root {computed}, the Bitcoin header has {expected}")]
    MerkleRoot { computed: B256, expected: B256 },
    /// A tail without a tag proves nothing: the tag may be in the part that is not shown.
    #[error("the tail has no RSKBLOCK: tag, the whole coinbase is needed")]
    WholeNeeded,
}

/// A coinbase transaction as a source gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoinbaseBytes<'a> {
    /// The whole transaction. Witness data may be included; the transaction's id does not cover them, so they are left
    /// out before it is computed, and no tag is read from them.
    Whole(&'a [u8]),
    /// The form of Rootstock headers: 8-byte big-endian count of the bytes at the start of the transaction that are left out, 32-byte
    /// SHA-256 state after these bytes (the midstate), and the rest of the transaction (the tail).
    Midstate(&'a [u8]),
}

/// A coinbase with its Merkle branch, as a source gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoinbaseProof<'a> {
    /// The transaction.
    pub coinbase: CoinbaseBytes<'a>,
    /// The siblings from the leaf up, 32 bytes each in display order, at most 30. The coinbase is the left-most leaf.
    pub branch: &'a [u8],
}

/// The commitment in the coinbase of a Bitcoin block. Only [`CoinbaseProof::prove`] makes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProvenCoinbase {
    height: u32,
    block: B256,
    tag: Option<Tag>,
}

impl ProvenCoinbase {
    /// Height of the Bitcoin block, as the caller gave it.
    pub const fn height(&self) -> u32 {
        self.height
    }

    /// Hash of the Bitcoin block, in internal byte order.
    pub const fn block(&self) -> B256 {
        self.block
    }

    /// The tag that counts; `None` if the coinbase commits to no Rootstock block.
    pub const fn tag(&self) -> Option<&Tag> {
        self.tag.as_ref()
    }

    /// A coinbase that a test or a simulation states without proof.
    #[cfg(any(test, feature = "testkit"))]
    #[doc(hidden)]
    pub const fn stated(height: u32, block: B256, tag: Option<Tag>) -> Self {
        Self { height, block, tag }
    }
}

impl CoinbaseProof<'_> {
    /// Proves the coinbase of the Bitcoin block with this header, which the caller has found at `height` of the chain.
    ///
    /// The last tag counts, as in Rootstock's rules for headers. If fewer than 32 bytes follow the last tag, the
    /// coinbase commits to nothing, whatever tags come before it: no header with such a coinbase is valid.
    ///
    /// # Errors
    /// The bytes are not this block's coinbase, or a tail without a tag is given.
    pub fn prove(
        &self,
        height: u32,
        header: &[u8; HEADER_LEN],
    ) -> Result<ProvenCoinbase, CoinbaseProofError> {
        let header = BitcoinHeader::from(header);
        let (leaf, tag) = match self.coinbase {
            CoinbaseBytes::Whole(bytes) => {
                let bytes = without_witness(bytes)?;
                (double_sha256(&bytes), last_tag(&bytes).flatten())
            }
            CoinbaseBytes::Midstate(field) => {
                let tail = checked_tail(field)?;
                let leaf = Coinbase::parse(field).map(|coinbase| coinbase.transaction_hash());
                let leaf = leaf.map_err(|_| CoinbaseProofError::NoMidstate { found: field.len() })?;
                (leaf, last_tag(tail).ok_or(CoinbaseProofError::WholeNeeded)?)
            }
        };
        // Limited to 30 levels, also for blocks from before RSKIP-180.
        let (root, expected) = (branch_root(self.branch, leaf, true)?, header.merkle_root());
        if root != expected {
            let (computed, expected) = (reversed(&root), reversed(&expected));
            return Err(CoinbaseProofError::MerkleRoot { computed, expected });
        }
        Ok(ProvenCoinbase { height, block: header.hash(), tag })
    }
}

/// Where the last tag starts.
pub(super) fn last_tag_at(bytes: &[u8]) -> Option<usize> {
    let tag = MERGED_MINING_TAG.as_slice();
    let starts = |window: &[u8]| window.first() == tag.first() && window == tag;
    bytes.windows(tag.len()).rposition(starts)
}

/// The last tag: `None` if there is none, `Some(None)` if fewer than 32 bytes follow it.
fn last_tag(bytes: &[u8]) -> Option<Option<Tag>> {
    let end = last_tag_at(bytes)?.checked_add(MERGED_MINING_TAG.len())?;
    Some(bytes.get(end..).and_then(|rest| rest.first_chunk::<32>()).map(|bytes| Tag::from(*bytes)))
}

fn checked_length(found: u64) -> Result<(), CoinbaseProofError> {
    let allowed = MIN_COINBASE_LEN as u64..=MAX_COINBASE_LEN as u64;
    if allowed.contains(&found) { Ok(()) } else { Err(CoinbaseProofError::Length { found }) }
}

/// The tail of a midstate field, after checks that make its transaction unambiguous: the count is a multiple of a SHA-256 block's
/// length, and with the count zero the state is SHA-256's first.
fn checked_tail(field: &[u8]) -> Result<&[u8], CoinbaseProofError> {
    let short = CoinbaseProofError::NoMidstate { found: field.len() };
    let (count, rest) = field.split_first_chunk::<8>().ok_or(short.clone())?;
    let (state, tail) = rest.split_first_chunk::<32>().ok_or(short)?;
    let count = u64::from_be_bytes(*count);
    checked_length(count.saturating_add(tail.len() as u64))?;
    let first = count > 0 || *state == sha256_midstate(&[]).0;
    if !first || !count.is_multiple_of(SHA256_BLOCK as u64) {
        return Err(CoinbaseProofError::Midstate { count });
    }
    Ok(tail)
}

/// A coinbase transaction without its witness data. No byte may follow the transaction.
pub(super) fn without_witness(bytes: &[u8]) -> Result<Cow<'_, [u8]>, CoinbaseProofError> {
    let found = bytes.len();
    checked_length(found as u64)?;
    let parts = Parts::read(bytes).ok_or(CoinbaseProofError::NotACoinbase)?;
    if !parts.has_witness {
        return Ok(Cow::Borrowed(bytes));
    }
    let whole = [parts.version, parts.body, parts.lock_time].concat();
    checked_length(whole.len() as u64)?;
    Ok(Cow::Owned(whole))
}

/// The parts of a coinbase transaction that its id covers.
struct Parts<'a> {
    version: &'a [u8],
    has_witness: bool,
    /// Input and outputs with their counts.
    body: &'a [u8],
    lock_time: &'a [u8],
}

impl<'a> Parts<'a> {
    /// `None` if the bytes are not exactly one coinbase transaction.
    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = Reader(bytes);
        let version = rest.take(VERSION_LEN)?;
        let has_witness = rest.0.starts_with(&WITNESS_MARKER);
        if has_witness {
            rest.take(WITNESS_MARKER.len())?;
        }
        let start = rest.0;
        let one_input = rest.count()? == 1;
        let spends_nothing = rest.take(32)?.iter().all(|byte| *byte == 0) && rest.take(4)? == [0xff; 4];
        if !(one_input && spends_nothing) {
            return None;
        }
        rest.counted()?;
        rest.take(WORD_LEN)?;
        for _ in 0..rest.count()? {
            // Each output takes at least nine bytes, so a false count ends with the bytes.
            rest.take(AMOUNT_LEN)?;
            rest.counted()?;
        }
        let body = start.get(..start.len().checked_sub(rest.0.len())?)?;
        if has_witness {
            for _ in 0..rest.count()? {
                rest.counted()?;
            }
        }
        let lock_time = rest.take(WORD_LEN)?;
        rest.0.is_empty().then_some(Self { version, has_witness, body, lock_time })
    }
}

/// Bytes of a Bitcoin transaction that are not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// A number in Bitcoin's compact form.
    fn count(&mut self) -> Option<u64> {
        let first = *self.take(1)?.first()?;
        let length = match first {
            0xfd => 2,
            0xfe => 4,
            0xff => 8,
            small => return Some(u64::from(small)),
        };
        let mut number = [0; 8];
        number.iter_mut().zip(self.take(length)?).for_each(|(to, from)| *to = *from);
        Some(u64::from_le_bytes(number))
    }

    /// A number in compact form, and as many bytes as it states; returns the bytes.
    fn counted(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        self.take(usize::try_from(length).ok()?)
    }
}
