//! The coinbases that a client stores in front of its Bitcoin chain, so that the next run fetches only those of new blocks. A client
//! stores up to three parts, which their first bytes tell apart: coinbases (3, this file), the deepest reorganisation (2,
//! `seen_blocks.rs`), and the chain (1).
//!
//! `0x03 | length of the list (4) | height of its first block (4) | list`, numbers little-endian. There is no checksum, because each
//! coinbase is proven again when it is read.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use super::coinbase_list::{decode_list, encode_list};
use super::coinbases::{Coinbases, KEPT_COINBASES};
use crate::consensus::bitcoin::{BitcoinChain, CoinbaseProofBuf};

/// The first byte, for the encoding described above. Neither a stored reorganisation nor a stored chain begins with this byte.
const FORM: u8 = 3;
/// Most bytes of the coinbases and branches that are stored, newest first. Usually 78 coinbases are stored, those of
/// `BitcoinFollower::judged_heights`, which take about 100 kB; with the chain, the stored bytes stay below the megabyte that the
/// package reads.
const MAX_STORED: usize = 512 * 1024;
/// Most bytes of a list that is read: the encoding of each coinbase adds less than 16 bytes, and that of the list as many.
const MAX_LIST: usize = MAX_STORED + 16 * (KEPT_COINBASES + 1);

/// Coinbases that were stored, with their heights. None of them is proven yet.
pub(super) type StoredCoinbases = Vec<(u32, CoinbaseProofBuf)>;

/// The bytes to store in front of those of the chain: proofs of the coinbases at these heights; empty if no proof is kept.
pub(super) fn stored_coinbases(
    coinbases: &Coinbases,
    bitcoin: &BitcoinChain,
    heights: RangeInclusive<u32>,
) -> Vec<u8> {
    let (lowest, mut left) = (*heights.start(), MAX_STORED);
    let mut fits = |proof: &&CoinbaseProofBuf| {
        let rest = left.checked_sub(proof.coinbase.len().saturating_add(proof.branch.len()));
        // After the first proof that does not fit, no older one is stored.
        left = rest.unwrap_or(0);
        rest.is_some()
    };
    let newest_first = heights.rev().map(|height| coinbases.proof_at(bitcoin, height).filter(&mut fits));
    let proofs: Vec<_> = newest_first.collect();
    if proofs.iter().all(Option::is_none) {
        return Vec::new();
    }
    let list = encode_list(&mut proofs.into_iter().rev());
    [&[FORM][..], &(list.len() as u32).to_le_bytes(), &lowest.to_le_bytes(), &list].concat()
}

/// Splits the stored bytes into coinbases and the bytes after them, those of the reorganisation and of the chain. None of the
/// coinbases is proven here.
pub(super) fn split_stored(stored: &[u8]) -> (StoredCoinbases, &[u8]) {
    split(stored).unwrap_or_else(|| (Vec::new(), stored))
}

/// `None` if no coinbases were stored, or if their length is damaged.
fn split(stored: &[u8]) -> Option<(StoredCoinbases, &[u8])> {
    let (&FORM, rest) = stored.split_first()? else { return None };
    let (length, rest) = rest.split_first_chunk()?;
    let (lowest, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok().filter(|length| *length <= MAX_LIST)?;
    let (list, rest) = rest.split_at_checked(length)?;
    let proofs = decode_list(list, KEPT_COINBASES).unwrap_or_default();
    let heights = u32::from_le_bytes(*lowest)..=u32::MAX;
    let stored_ones = heights.zip(proofs).filter_map(|(height, proof)| Some((height, proof?)));
    Some((stored_ones.collect(), rest))
}
