//! A Bitcoin chain as a client stores it: a personal checkpoint, which is the end of a retarget period, and the headers above it.
//!
//! `0x01 | height (4) | hash (32) | nBits of the next period (4) | packed headers | checksum (8)`, numbers little-endian. The
//! checksum is the first bytes of the double SHA-256 of all before it; it detects accidental damage only. The headers are verified
//! like those of any other source. Of the checkpoint, everything is checked that needs no headers below it: it is the end of a period,
//! the target of the next period is at most four times the built-in one, and at least a whole period was mined on top of it.

use alloc::vec;
use alloc::vec::Vec;

use thiserror::Error;

use super::chain::{BitcoinChain, SERVED_BITCOIN_HEADERS};
use super::error::BitcoinChainError;
use super::hash::{HEADER_LEN, double_sha256};
use super::header::{BitcoinHeader, HashedHeader};
use super::network::{BitcoinCheckpoint, BitcoinNetwork};
use super::packed::{PackedHeaders, PackedHeadersError, pack_headers};
use super::target::{CLAMP, PERIOD, target_of};
use crate::types::{B256, U256};

/// The first byte of the form that the head of this file describes.
const FORM: u8 = 1;
/// Length of the checksum, in bytes.
const CHECKSUM_LEN: usize = 8;
/// Most periods between the built-in checkpoint and a stored one: almost forty years of blocks every ten minutes, longer than a
/// program with this checkpoint is used.
const MAX_PERIODS: u32 = 1_024;

/// Why a stored chain is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum StoredBitcoinError {
    /// The form byte is unknown to this version, or the bytes are cut off.
    #[error("stored Bitcoin chain: form {0:?} is not known, or it is cut off")]
    Form(Option<u8>),
    #[error("stored Bitcoin chain: its checksum is wrong")]
    Checksum,
    #[error(
        "stored Bitcoin chain: block {height} is not the end of a period above the built-in checkpoint {built_in}"
    )]
    Height { height: u32, built_in: u32 },
    /// The target is above four times the built-in one, the checkpoint is too far above the built-in one, or it differs from the
    /// built-in one at the same height.
    #[error(
        "stored Bitcoin chain: block {height} with the next nBits {next_bits:#010x} cannot follow the built-in checkpoint"
    )]
    Checkpoint { height: u32, next_bits: u32 },
    #[error("stored Bitcoin chain: {count} headers above block {height}, expected at least {PERIOD}")]
    Shallow { height: u32, count: u32 },
    #[error("stored Bitcoin chain: {0}")]
    Packed(#[from] PackedHeadersError),
    #[error("stored Bitcoin chain: {0}")]
    Header(#[from] BitcoinChainError),
}

impl BitcoinChain {
    /// The block that a client may trust as its own checkpoint: the newest end of a period that is at least a period below the tip,
    /// and below which no branch may leave the heaviest chain.
    #[must_use]
    pub fn personal_checkpoint(&self) -> BitcoinCheckpoint {
        let start = self.start();
        let deep =
            self.tip().height.saturating_sub(PERIOD).min(self.lowest_fork()).saturating_sub(start.height);
        let height = start.height.saturating_add(deep).saturating_sub(deep % PERIOD);
        self.checkpoint_at(height).unwrap_or(*start)
    }

    /// The bytes to store, from which [`Self::restore`] makes the chain from [`Self::personal_checkpoint`] on: 87 to 174 kB, for one to
    /// two periods, once a period is complete. A chain that may keep more headers than the default and keeps all since its start is
    /// stored from its start on, at 43 bytes a header.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        let checkpoint = if self.keeps_all() { *self.start() } else { self.personal_checkpoint() };
        let mut out = vec![FORM];
        out.extend_from_slice(&checkpoint.height.to_le_bytes());
        out.extend_from_slice(checkpoint.hash.as_slice());
        out.extend_from_slice(&checkpoint.next_bits.to_le_bytes());
        let heights = checkpoint.height.saturating_add(1)..=self.tip().height;
        out.append(&mut pack_headers(heights.map_while(|height| self.header_at(height))));
        let sum = double_sha256(&out);
        out.extend(sum.iter().take(CHECKSUM_LEN));
        out
    }

    /// Reads a stored chain of a network, and checks its headers. `now` is in seconds since 1970. The chain keeps as many headers
    /// as were stored, or the default ([`Self::keeping`]).
    ///
    /// # Errors
    /// [`StoredBitcoinError`]: the chain must be synchronized from the network's checkpoint.
    pub fn restore(network: BitcoinNetwork, stored: &[u8], now: u64) -> Result<Self, StoredBitcoinError> {
        let (checkpoint, packed) = parts(stored)?;
        let mut headers = PackedHeaders::new(packed, SERVED_BITCOIN_HEADERS as usize)?;
        Self::above(checkpoint, network, &mut headers, now)
    }

    /// A chain of headers that begin with the first of a period, at the height `first`. No headers link it to the built-in checkpoint;
    /// the checks are those of [`Self::restore`]. `now` is in seconds since 1970.
    pub fn begin(
        network: BitcoinNetwork,
        first: u32,
        headers: &[[u8; HEADER_LEN]],
        now: u64,
    ) -> Result<Self, StoredBitcoinError> {
        let height = first.saturating_sub(1);
        let lowest = headers.first().ok_or(StoredBitcoinError::Shallow { height, count: 0 })?;
        let lowest = BitcoinHeader::from(lowest);
        let (hash, next_bits) = (lowest.previous(), lowest.bits());
        let checkpoint = BitcoinCheckpoint { height, hash, next_bits, time: 0 };
        let mut headers = headers.iter().map(|header| Ok(HashedHeader::new(*header)));
        Self::above(checkpoint, network, &mut headers, now)
    }

    /// Checks a checkpoint, which is usually not the built-in one, and makes the chain of the headers above it.
    fn above(
        checkpoint: BitcoinCheckpoint,
        network: BitcoinNetwork,
        headers: &mut dyn Iterator<Item = Result<HashedHeader, PackedHeadersError>>,
        now: u64,
    ) -> Result<Self, StoredBitcoinError> {
        let built_in = network.checkpoint;
        let time = if checkpoint.height == built_in.height { built_in.time } else { 0 };
        let checkpoint = BitcoinCheckpoint { time, ..checkpoint };
        check_checkpoint(&checkpoint, &network)?;
        // The chain must keep all these headers until they are counted; only then is the number to keep set.
        let mut chain = Self::new(BitcoinNetwork { checkpoint, ..network }).keeping(SERVED_BITCOIN_HEADERS);
        for header in headers {
            chain.extend(&header?, now)?;
        }
        let (height, count) = (checkpoint.height, chain.tip().height.saturating_sub(checkpoint.height));
        if checkpoint != network.checkpoint && count < PERIOD {
            return Err(StoredBitcoinError::Shallow { height, count });
        }
        Ok(chain.keeping(count))
    }
}

/// Splits stored bytes into the checkpoint and the packed headers.
fn parts(stored: &[u8]) -> Result<(BitcoinCheckpoint, &[u8]), StoredBitcoinError> {
    let cut = StoredBitcoinError::Form(stored.first().copied());
    let (content, sum) = stored.split_last_chunk::<CHECKSUM_LEN>().ok_or(cut)?;
    let (form, rest) = content.split_first().ok_or(cut)?;
    if *form != FORM {
        return Err(cut);
    }
    if !double_sha256(content).starts_with(sum) {
        return Err(StoredBitcoinError::Checksum);
    }
    let (height, rest) = rest.split_first_chunk().ok_or(cut)?;
    let (hash, rest) = rest.split_first_chunk().ok_or(cut)?;
    let (next_bits, packed) = rest.split_first_chunk().ok_or(cut)?;
    let (height, next_bits) = (u32::from_le_bytes(*height), u32::from_le_bytes(*next_bits));
    Ok((BitcoinCheckpoint { height, hash: B256::from(*hash), next_bits, time: 0 }, packed))
}

/// Checks a checkpoint as far as this is possible without the headers between the built-in checkpoint and this one.
fn check_checkpoint(
    checkpoint: &BitcoinCheckpoint,
    network: &BitcoinNetwork,
) -> Result<(), StoredBitcoinError> {
    let (built_in, height, next_bits) = (network.checkpoint, checkpoint.height, checkpoint.next_bits);
    let above = height.checked_sub(built_in.height).filter(|above| above.is_multiple_of(PERIOD));
    let above = above.ok_or(StoredBitcoinError::Height { height, built_in: built_in.height })?;
    let periods = above / PERIOD;
    let possible = match periods {
        0 => *checkpoint == built_in,
        _ if periods > MAX_PERIODS => false,
        _ if !network.retargets => next_bits == built_in.next_bits,
        _ => target_of(next_bits).is_some_and(|target| target <= highest_target(network)),
    };
    possible.then_some(()).ok_or(StoredBitcoinError::Checkpoint { height, next_bits })
}

/// The highest target that a stored checkpoint may have: four times the built-in one. A chain whose difficulty fell further is fetched
/// again from the built-in checkpoint.
fn highest_target(network: &BitcoinNetwork) -> U256 {
    let limit = target_of(network.limit).unwrap_or_default();
    let built_in = target_of(network.checkpoint.next_bits).unwrap_or_default();
    built_in.saturating_mul(U256::from(CLAMP)).min(limit)
}
