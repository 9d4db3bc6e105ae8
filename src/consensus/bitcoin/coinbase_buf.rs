//! A coinbase proof that owns its bytes, for those who keep it or pass it on.

use alloc::vec::Vec;

use super::coinbase_proof::{CoinbaseBytes, CoinbaseProof, SHA256_BLOCK, last_tag_at, without_witness};
use super::hash::sha256_midstate;

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
}

impl CoinbaseProof<'_> {
    /// The same proof in few bytes, about 500 as a rule: a whole transaction is cut at the last SHA-256 block before its last
    /// tag. One without a tag stays whole, because nothing less proves that there is none, but loses its witness data.
    #[must_use]
    pub fn shortened(&self) -> CoinbaseProofBuf {
        let (is_cut, coinbase) = match self.coinbase {
            CoinbaseBytes::Midstate(field) => (true, field.to_vec()),
            CoinbaseBytes::Whole(bytes) => {
                let bytes = without_witness(bytes).unwrap_or(bytes.into());
                let field = last_tag_at(&bytes).and_then(|tag| cut_before(&bytes, tag));
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

    /// What a whole coinbase proves, and its shortened form.
    fn both(bytes: &[u8], header: &[u8; HEADER_LEN], branch: &[u8]) -> (ProvenCoinbase, CoinbaseProofBuf) {
        let whole = CoinbaseProof { coinbase: CoinbaseBytes::Whole(bytes), branch };
        (whole.prove(7, header).unwrap(), whole.shortened())
    }

    #[test]
    fn a_shortened_proof_proves_the_same() {
        let outputs = [&[9; 60][..]; 12];
        let tags = [tag(&[1; 32]), tag(&[2; 32]), tag(&[3; 20])];
        // Where the tag is, and whether it is complete.
        for place in 0..=outputs.len() {
            for (tag, witness) in tags.iter().zip([false, true, true]) {
                let mut outputs = outputs.to_vec();
                outputs.insert(place, tag);
                let plain = coinbase(&[3; 40], &outputs, false);
                let (header, branch) = block(&plain, 9);
                let (proven, shortened) = both(&coinbase(&[3; 40], &outputs, witness), &header, &branch);
                assert!(shortened.is_cut && shortened.coinbase.len() < plain.len());
                assert_eq!(shortened.as_proof().prove(7, &header), Ok(proven));
                assert_eq!(shortened.as_proof().shortened(), shortened);
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
}
