//! Bitcoin data that Rootlights send each other: the results of `rootlight_getBitcoinHeaders` and
//! `rootlight_getBitcoinTags`.
//!
//! Both are texts in base64. Headers are `lowest height (4) | highest height (4) | packed headers`, the heights big-endian.
//! Coinbases are `0x01 | RLP [[cut, coinbase, branch], ...]`, with an empty list for each one that the server does not have.
//! Nothing in them is verified: headers are inserted into a chain, and coinbases proven, like those of any other source.

use alloc::string::String;
use alloc::vec::Vec;

use data_encoding::BASE64;
use thiserror::Error;

use super::coinbases::KEPT_COINBASES;
use super::follower::BitcoinFollower;
use crate::consensus::bitcoin::{
    BitcoinChain, CoinbaseProofBuf, HEADER_LEN, PackedHeaders, PackedHeadersError, ServedBitcoin,
};
use crate::types::FieldError;
use crate::types::rlp::{ListBuf, RlpReader, put_str, put_u64};

/// Most headers of one result: a period of Bitcoin's difficulty, 87 kB packed as a rule.
pub const MAX_SERVED_HEADERS: u32 = 2_016;
/// Most coinbases of one result: a day's blocks, which are all that a server keeps.
pub const MAX_SERVED_COINBASES: u32 = KEPT_COINBASES as u32;

/// The form described above.
const FORM: u8 = 1;

/// Why a text does not decode.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum ServedBitcoinError {
    #[error("Bitcoin's chain: not base64")]
    Base64,
    /// This version does not know the form, or there are too few bytes.
    #[error("Bitcoin's chain: the form is not known, or it is cut off")]
    Form,
    #[error(transparent)]
    Packed(#[from] PackedHeadersError),
    /// The list does not have the required structure.
    #[error(transparent)]
    Rlp(#[from] FieldError),
    #[error("Bitcoin's chain: more than {asked} coinbases")]
    TooMany { asked: usize },
}

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

/// Encodes headers of the heaviest chain from a height on, or from the lowest that is held; at most [`MAX_SERVED_HEADERS`].
#[must_use]
pub fn encode_bitcoin_headers(chain: &BitcoinChain, from: u32, count: u32) -> String {
    let (lowest, tip) = (chain.lowest(), chain.tip().height);
    encode_packed_headers(lowest, tip, &chain.packed(from.max(lowest), count.min(MAX_SERVED_HEADERS)))
}

/// Encodes packed headers of a chain, of which these are the heights of the lowest header that is held and of the newest
/// block.
#[must_use]
pub fn encode_packed_headers(lowest: u32, tip: u32, packed: &[u8]) -> String {
    BASE64.encode(&[&lowest.to_be_bytes()[..], &tip.to_be_bytes(), packed].concat())
}

/// Decodes at most `most` headers.
///
/// # Errors
/// [`ServedBitcoinError`]
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

/// Encodes the proofs of the coinbases of consecutive blocks; `None` stands for each one that is not held.
pub fn encode_coinbase_proofs<'a>(proofs: impl Iterator<Item = Option<&'a CoinbaseProofBuf>>) -> String {
    let mut list = ListBuf::with_capacity(0);
    for proof in proofs {
        let mut entry = ListBuf::with_capacity(0);
        if let Some(CoinbaseProofBuf { is_cut, coinbase, branch }) = proof {
            put_u64(entry.items(), u64::from(*is_cut));
            put_str(entry.items(), coinbase);
            put_str(entry.items(), branch);
        }
        list.items().extend_from_slice(entry.as_list());
    }
    let mut bytes = alloc::vec![FORM];
    bytes.extend_from_slice(list.as_list());
    BASE64.encode(&bytes)
}

impl ServedBitcoin for BitcoinFollower {
    fn served_headers(&self, from: u32, count: u32) -> String {
        encode_bitcoin_headers(self.chain(), from, count)
    }

    fn served_coinbases(&self, from: u32, count: u32) -> String {
        encode_coinbases(self, from, count)
    }
}

/// Decodes the coinbases of at most `most` consecutive blocks; `None` for each one that the server does not have.
///
/// # Errors
/// [`ServedBitcoinError`]
pub fn decode_coinbases(
    text: &str,
    most: usize,
) -> Result<Vec<Option<CoinbaseProofBuf>>, ServedBitcoinError> {
    let bytes = BASE64.decode(text.as_bytes()).map_err(|_| ServedBitcoinError::Base64)?;
    let list = bytes.strip_prefix(&[FORM]).ok_or(ServedBitcoinError::Form)?;
    let (mut list, mut proofs) = (RlpReader::list(list, "coinbases")?, Vec::new());
    while !list.is_empty() {
        if proofs.len() >= most {
            return Err(ServedBitcoinError::TooMany { asked: most });
        }
        let mut entry = list.next_list("coinbase")?;
        if entry.is_empty() {
            proofs.push(None);
            continue;
        }
        let is_cut = match entry.next_str("cut")? {
            [] => false,
            [1] => true,
            _ => return Err(ServedBitcoinError::Form),
        };
        let coinbase = entry.next_str("coinbase")?.to_vec();
        let branch = entry.next_str("branch")?.to_vec();
        entry.finish("coinbase")?;
        proofs.push(Some(CoinbaseProofBuf { is_cut, coinbase, branch }));
    }
    Ok(proofs)
}
