//! The encoding of a list of proofs of the coinbases of consecutive Bitcoin blocks. Servers send such lists (`served`), and clients
//! store them (`stored_coinbases`).
//!
//! `0x01 | RLP [[cut, coinbase, branch], ...]`, with an empty list for each block without a proof. `cut` is 1 if `coinbase` is a
//! SHA-256 midstate with the end of the transaction, and 0 if it is the whole transaction ([`CoinbaseProofBuf`]).

use alloc::vec;
use alloc::vec::Vec;

use super::served_error::ServedBitcoinError;
use crate::consensus::bitcoin::CoinbaseProofBuf;
use crate::types::rlp::{ListBuf, RlpReader, put_str, put_u64};

/// The first byte: the version of the encoding described above.
const FORM: u8 = 1;

/// Encodes the proofs of the coinbases of consecutive blocks; `None` stands for a block without a proof.
pub(super) fn encode_list(proofs: &mut dyn Iterator<Item = Option<&CoinbaseProofBuf>>) -> Vec<u8> {
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
    let mut bytes = vec![FORM];
    bytes.extend_from_slice(list.as_list());
    bytes
}

/// Decodes the proofs of at most `most` consecutive blocks. None of them is verified here.
pub(super) fn decode_list(
    bytes: &[u8],
    most: usize,
) -> Result<Vec<Option<CoinbaseProofBuf>>, ServedBitcoinError> {
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
