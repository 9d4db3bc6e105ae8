//! Bitcoin data that Rootlights send each other: the results of `rootlight_getBitcoinHeaders` and
//! `rootlight_getBitcoinTags`.
//!
//! Headers and coinbases are texts in base64. Headers are `lowest height (4) | highest height (4) | packed headers`
//! ([`PackedHeaders`]), with big-endian heights; coinbases are a list (`coinbase_list`). Decoding verifies nothing: the receiver
//! inserts the headers into its chain and proves the coinbases, like those of any other source.

use alloc::string::String;
use alloc::vec::Vec;

use data_encoding::BASE64;

use super::coinbase_list::{decode_list, encode_list};
use super::coinbases::KEPT_COINBASES;
use super::follower::BitcoinFollower;
use super::served_error::ServedBitcoinError;
use crate::consensus::bitcoin::{BitcoinChain, CoinbaseProofBuf, HEADER_LEN, PackedHeaders, ServedBitcoin};

/// Most headers of one result: a period between two changes of Bitcoin's difficulty, usually 87 kB packed.
pub const MAX_SERVED_HEADERS: u32 = 2_016;
/// Most coinbases of one result: a day's blocks, which are all that a server keeps.
pub const MAX_SERVED_COINBASES: u32 = KEPT_COINBASES as u32;

/// Headers of Bitcoin's chain, as a server gives them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedHeaders {
    /// Height of the lowest header that the server has; above `tip` if it has none.
    pub lowest: u32,
    /// Height of the newest block.
    pub tip: u32,
    /// Consecutive headers.
    pub headers: Vec<[u8; HEADER_LEN]>,
}

/// Encodes headers of the heaviest chain from a height on, or from the chain's lowest header if that is higher; at most
/// [`MAX_SERVED_HEADERS`].
#[must_use]
pub fn encode_bitcoin_headers(chain: &BitcoinChain, from: u32, count: u32) -> String {
    let (lowest, tip) = (chain.lowest(), chain.tip().height);
    encode_packed_headers(lowest, tip, &chain.packed(from.max(lowest), count.min(MAX_SERVED_HEADERS)))
}

/// Encodes packed headers of a chain with the heights of its lowest header and of its newest block.
#[must_use]
pub fn encode_packed_headers(lowest: u32, tip: u32, packed: &[u8]) -> String {
    BASE64.encode(&[&lowest.to_be_bytes()[..], &tip.to_be_bytes(), packed].concat())
}

/// Decodes at most `most` headers.
///
/// # Errors
/// [`ServedBitcoinError`]: the text is not in the form of the file's head, or has more headers.
pub fn decode_bitcoin_headers(text: &str, most: u32) -> Result<ServedHeaders, ServedBitcoinError> {
    let bytes = BASE64.decode(text.as_bytes()).map_err(|_| ServedBitcoinError::Base64)?;
    let (lowest, rest) = bytes.split_first_chunk().ok_or(ServedBitcoinError::Form)?;
    let (tip, packed) = rest.split_first_chunk().ok_or(ServedBitcoinError::Form)?;
    let read = PackedHeaders::new(packed, most as usize)?;
    let headers = read.map(|header| Ok(*header?.header())).collect::<Result<_, ServedBitcoinError>>()?;
    let (lowest, tip) = (u32::from_be_bytes(*lowest), u32::from_be_bytes(*tip));
    Ok(ServedHeaders { lowest, tip, headers })
}

/// Encodes the proofs that a client keeps of the coinbases from a height on; at most [`MAX_SERVED_COINBASES`].
#[must_use]
pub fn encode_coinbases(follower: &BitcoinFollower, from: u32, count: u32) -> String {
    let heights = from..from.saturating_add(count.min(MAX_SERVED_COINBASES));
    encode_coinbase_proofs(heights.map(|height| follower.coinbases().proof_at(follower.chain(), height)))
}

/// Encodes the proofs of the coinbases of consecutive blocks; `None` stands for a block without a proof.
pub fn encode_coinbase_proofs<'a>(mut proofs: impl Iterator<Item = Option<&'a CoinbaseProofBuf>>) -> String {
    BASE64.encode(&encode_list(&mut proofs))
}

impl ServedBitcoin for BitcoinFollower {
    fn served_headers(&self, from: u32, count: u32) -> String {
        encode_bitcoin_headers(self.chain(), from, count)
    }

    fn served_coinbases(&self, from: u32, count: u32) -> String {
        encode_coinbases(self, from, count)
    }
}

/// Decodes the proofs of the coinbases of at most `most` consecutive blocks; `None` for each one that the server does not have.
///
/// # Errors
/// [`ServedBitcoinError`]: the text is not in the form of the file's head, or has more blocks.
pub fn decode_coinbases(
    text: &str,
    most: usize,
) -> Result<Vec<Option<CoinbaseProofBuf>>, ServedBitcoinError> {
    let bytes = BASE64.decode(text.as_bytes()).map_err(|_| ServedBitcoinError::Base64)?;
    decode_list(&bytes, most)
}
