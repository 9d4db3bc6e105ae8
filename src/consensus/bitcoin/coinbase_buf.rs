//! A coinbase proof that owns its bytes, for code that stores it or sends it to others.

use alloc::vec::Vec;

use super::coinbase_proof::{CoinbaseBytes, CoinbaseProof, SHA256_BLOCK, last_tag_at, without_witness};
use super::hash::sha256_midstate;

/// A coinbase stays whole if its block's height is a multiple of this number, so that it shows the height (see
/// [`CoinbaseProof::shortened`]).
const WHOLE_EVERY: u32 = 8;
/// Offset of the length of the input's script in a coinbase without witness data, in bytes.
#[cfg(feature = "light")]
const SCRIPT_LEN_AT: usize = 41;
/// Most bytes of the height that a script states: heights are below 2^32.
#[cfg(feature = "light")]
const HEIGHT_LEN: usize = 4;

/// A [`CoinbaseProof`] that owns its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoinbaseProofBuf {
    /// Whether `coinbase` is a midstate with a tail; otherwise it is the whole transaction. See [`CoinbaseBytes`].
    pub is_cut: bool,
    /// The transaction in this form.
    pub coinbase: Vec<u8>,
    /// See [`CoinbaseProof::branch`].
    pub branch: Vec<u8>,
}

impl CoinbaseProofBuf {
    /// The proof.
    #[must_use]
    pub fn as_proof(&self) -> CoinbaseProof<'_> {
        let bytes = self.coinbase.as_slice();
        let coinbase = if self.is_cut { CoinbaseBytes::Midstate(bytes) } else { CoinbaseBytes::Whole(bytes) };
        CoinbaseProof { coinbase, branch: &self.branch }
    }

    /// The height that the coinbase states at the start of its script (BIP 34: a length byte and a little-endian number). `None` if the
    /// coinbase is cut or states none.
    #[cfg(feature = "light")]
    pub(crate) fn stated_height(&self) -> Option<u32> {
        let [_script_len, len, script @ ..] = self.coinbase.get(SCRIPT_LEN_AT..).filter(|_| !self.is_cut)?
        else {
            return None;
        };
        let number =
            script.get(..usize::from(*len)).filter(|number| (1..=HEIGHT_LEN).contains(&number.len()))?;
        Some(number.iter().rfold(0, |height, byte| height << 8 | u32::from(*byte)))
    }
}

impl CoinbaseProof<'_> {
    /// The proof for the block at a height in few bytes, usually about 500: a whole transaction is cut before the SHA-256 block in which
    /// its last tag starts. A transaction without a tag loses only its witness data, because no part of it proves that there is no tag.
    /// That of every eighth block stays whole, too, because its first bytes state the height.
    #[must_use]
    pub fn shortened(&self, height: u32) -> CoinbaseProofBuf {
        let (is_cut, coinbase) = match self.coinbase {
            CoinbaseBytes::Midstate(field) => (true, field.to_vec()),
            CoinbaseBytes::Whole(bytes) => {
                let bytes = without_witness(bytes).unwrap_or(bytes.into());
                let tag = last_tag_at(&bytes).filter(|_| !height.is_multiple_of(WHOLE_EVERY));
                let field = tag.and_then(|tag| cut_before(&bytes, tag));
                (field.is_some(), field.unwrap_or_else(|| bytes.into_owned()))
            }
        };
        CoinbaseProofBuf { is_cut, coinbase, branch: self.branch.to_vec() }
    }
}

/// The midstate form of a transaction, cut before `at`. `None` if no SHA-256 block is left out.
fn cut_before(transaction: &[u8], at: usize) -> Option<Vec<u8>> {
    let (front, tail) = transaction.split_at_checked(at.checked_sub(at % SHA256_BLOCK)?)?;
    let count = (front.len() as u64).to_be_bytes();
    (!front.is_empty()).then(|| [&count[..], sha256_midstate(front).as_slice(), tail].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consensus::bitcoin::coinbase_proof_test::{block, coinbase, tag};
    use crate::consensus::bitcoin::{CoinbaseProofError, HEADER_LEN, ProvenCoinbase};

    /// The proof from a whole coinbase, and its shortened form.
    fn both(bytes: &[u8], header: &[u8; HEADER_LEN], branch: &[u8]) -> (ProvenCoinbase, CoinbaseProofBuf) {
        let whole = CoinbaseProof { coinbase: CoinbaseBytes::Whole(bytes), branch };
        (whole.prove(7, header).unwrap(), whole.shortened(7))
    }

    #[test]
    fn a_shortened_proof_proves_the_same() {
        let outputs = [&[9; 60][..]; 12];
        let tags = [tag(&[1; 32]), tag(&[2; 32]), tag(&[3; 20])];
        // Where the tag is, and whether it is complete.
        for index in 0..=outputs.len() {
            for (tag, witness) in tags.iter().zip([false, true, true]) {
                let mut outputs = outputs.to_vec();
                outputs.insert(index, tag);
                let plain = coinbase(&[3; 40], &outputs, false);
                let (header, branch) = block(&plain, 9);
                let (proven, shortened) = both(&coinbase(&[3; 40], &outputs, witness), &header, &branch);
                assert!(shortened.is_cut && shortened.coinbase.len() < plain.len());
                assert_eq!(shortened.as_proof().prove(7, &header), Ok(proven));
                assert_eq!(shortened.as_proof().shortened(7), shortened);
            }
        }
    }

    #[test]
    fn a_coinbase_without_a_tag_stays_whole() {
        let outputs = [&[9; 25][..]; 9];
        let plain = coinbase(&[3; 40], &outputs, false);
        let (header, branch) = block(&plain, 9);
        for witness in [false, true] {
            let (proven, shortened) = both(&coinbase(&[3; 40], &outputs, witness), &header, &branch);
            assert_eq!((shortened.is_cut, &shortened.coinbase, proven.tag()), (false, &plain, None));
            assert_eq!(shortened.as_proof().prove(7, &header), Ok(proven));
        }
        let cut = cut_before(&plain, 100).unwrap();
        let cut = CoinbaseProof { coinbase: CoinbaseBytes::Midstate(&cut), branch: &branch };
        assert_eq!(cut.prove(7, &header), Err(CoinbaseProofError::WholeNeeded));
    }

    #[test]
    fn a_tag_in_the_first_block_leaves_nothing_to_cut() {
        let plain = coinbase(&tag(&[5; 32]), &[&[9; 25]], false);
        let (header, branch) = block(&plain, 1);
        let (proven, shortened) = both(&plain, &header, &branch);
        assert_eq!((shortened.is_cut, proven.tag().is_some()), (false, true));
        assert_eq!(shortened.as_proof().prove(7, &header), Ok(proven));
    }

    #[test]
    fn every_eighth_coinbase_stays_whole_and_states_its_height() {
        let outputs = [&[9; 60][..], &tag(&[1; 32])];
        for (height, push) in
            [(128u32, &[2, 128, 0][..]), (959_999, &[3, 0xff, 0xa5, 0x0e]), (960_000, &[3, 0, 0xa6, 0x0e])]
        {
            let bytes = coinbase(&[push, &[7; 20]].concat(), &outputs, true);
            let whole = CoinbaseProof { coinbase: CoinbaseBytes::Whole(&bytes), branch: &[] };
            let stated = whole.shortened(height).stated_height();
            assert_eq!(stated, height.is_multiple_of(8).then_some(height));
            let plain = CoinbaseProofBuf { is_cut: false, ..whole.shortened(0) };
            assert_eq!(plain.stated_height(), Some(height));
        }
        // No push, one of no bytes, one of five, and scripts that end within it.
        for script in [&[][..], &[0, 9], &[5, 1, 0, 0, 0, 0], &[0x51]] {
            let coinbase = [&[0; SCRIPT_LEN_AT][..], &[script.len() as u8], script].concat();
            let stated = CoinbaseProofBuf { is_cut: false, coinbase, branch: Vec::new() };
            assert_eq!(stated.stated_height(), None, "{script:?}");
        }
        let short = CoinbaseProofBuf { is_cut: false, coinbase: vec![0; 20], branch: Vec::new() };
        assert_eq!(short.stated_height(), None);
    }
}
