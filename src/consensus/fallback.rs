//! Fallback blocks: blocks of low difficulty that a signature proves instead of work. RSKIP-98 ended them (mainnet block 729,000).
//!
//! The Bitcoin header field of such a block contains `RLP([v, r, s])`: a signature of the header's hash for merged mining, by the first
//! of a network's two fallback keys at even heights and by the second at odd ones.

use alloy_rlp::Header as RlpHeader;
use thiserror::Error;

use crate::types::B256;
use crate::types::{HALF_ORDER, RecoveryId, U256, recover};

/// Why a fallback signature is invalid.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum FallbackError {
    /// The field is not an RLP list of three strings.
    #[error("not a list of v, r and s")]
    Shape,
    #[error("v is not one byte from 27 to 31")]
    V,
    /// `r` or `s` is not the shortest two's-complement form of a positive number.
    #[error("r or s not in its shortest signed form")]
    NotMinimal,
    #[error("s in the upper half of the order")]
    HighS,
    /// No public key can be recovered from the signature.
    #[error("no key recovers from the signature")]
    NoKey,
    #[error("signed by another key")]
    WrongKey,
}

/// Checks the signature in the Bitcoin header field of a fallback block. `key` is an uncompressed public key.
pub fn verify(field: &[u8], hash_for_merged_mining: &B256, key: &[u8; 65]) -> Result<(), FallbackError> {
    let [v, r, s] = items(field).ok_or(FallbackError::Shape)?;
    // The reference node accepts 27 to 31; 31 recovers no key.
    let recovery = match v {
        [v] => v.checked_sub(27).filter(|id| *id <= 4).ok_or(FallbackError::V)?,
        _ => return Err(FallbackError::V),
    };
    let (r, s) = (positive(r)?, positive(s)?);
    if s >= HALF_ORDER {
        return Err(FallbackError::HighS);
    }
    let recovered =
        RecoveryId::from_number(recovery).and_then(|id| recover(hash_for_merged_mining, &r, &s, id));
    let recovered = recovered.ok_or(FallbackError::NoKey)?;
    if key.strip_prefix(&[4]) != Some(&recovered) {
        return Err(FallbackError::WrongKey);
    }
    Ok(())
}

/// Splits the RLP list in `field` into its three strings.
fn items(mut field: &[u8]) -> Option<[&[u8]; 3]> {
    let mut list = RlpHeader::decode_bytes(&mut field, true).ok()?;
    let mut next = || RlpHeader::decode_bytes(&mut list, false).ok();
    let items = [next()?, next()?, next()?];
    (field.is_empty() && list.is_empty()).then_some(items)
}

/// Reads a positive number in its shortest two's-complement form.
fn positive(bytes: &[u8]) -> Result<U256, FallbackError> {
    match bytes {
        [] | [0] | [0x80..=0xff, ..] | [0, 0..=0x7f, ..] => Err(FallbackError::NotMinimal),
        [0, rest @ ..] | rest => U256::try_from_be_slice(rest).ok_or(FallbackError::NoKey),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use k256::ecdsa::SigningKey;
    use proptest::prelude::*;

    pub(crate) const HASH: B256 = B256::repeat_byte(0x42);

    pub(crate) fn key(seed: u8) -> (SigningKey, [u8; 65]) {
        let key = SigningKey::from_slice(&[seed; 32]).unwrap();
        let public = key.verifying_key().to_encoded_point(false).as_bytes().try_into().unwrap();
        (key, public)
    }

    fn signed_minimal(bytes: &[u8]) -> Vec<u8> {
        let stripped: Vec<u8> = bytes.iter().copied().skip_while(|b| *b == 0).collect();
        if stripped.first().is_none_or(|b| *b >= 0x80) { [vec![0], stripped].concat() } else { stripped }
    }

    fn field(v: &[u8], r: &[u8], s: &[u8]) -> Vec<u8> {
        let mut payload = Vec::new();
        for item in [v, r, s] {
            alloy_rlp::Encodable::encode(item, &mut payload);
        }
        let mut out = Vec::new();
        RlpHeader { list: true, payload_length: payload.len() }.encode(&mut out);
        out.extend(payload);
        out
    }

    pub(crate) fn sign(seed: u8, hash: &B256) -> Vec<u8> {
        let (signature, id) = key(seed).0.sign_prehash_recoverable(hash.as_slice()).unwrap();
        let (r, s) = signature.split_bytes();
        field(&[27 + id.to_byte()], &signed_minimal(&r), &signed_minimal(&s))
    }

    #[test]
    fn the_constant_is_half_of_the_group_order() {
        let order =
            "0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141".parse::<U256>().unwrap();
        assert_eq!(HALF_ORDER, order / U256::from(2));
    }

    #[test]
    fn the_right_key_is_accepted_and_no_other() {
        for seed in 1..20 {
            assert_eq!(verify(&sign(seed, &HASH), &HASH, &key(seed).1), Ok(()));
            assert_eq!(verify(&sign(seed, &HASH), &HASH, &key(seed + 1).1), Err(FallbackError::WrongKey));
            let other = verify(&sign(seed, &HASH), &B256::ZERO, &key(seed).1);
            assert!(matches!(other, Err(FallbackError::WrongKey | FallbackError::NoKey)));
        }
    }

    #[test]
    fn malformed_signatures_are_refused() {
        let (r, s) = (vec![5; 32], vec![6; 32]);
        let check = |bytes: &[u8]| verify(bytes, &HASH, &key(1).1).unwrap_err();
        assert_eq!(check(&[]), FallbackError::Shape);
        assert_eq!(check(&[0xc0]), FallbackError::Shape);
        let mut long = field(&[27], &r, &s);
        long.push(0);
        assert_eq!(check(&long), FallbackError::Shape);
        for v in [&[26u8][..], &[32], &[], &[0, 27]] {
            assert_eq!(check(&field(v, &r, &s)), FallbackError::V);
        }
        for bad in [vec![], vec![0], vec![0x80; 32], vec![0, 1]] {
            assert_eq!(check(&field(&[27], &bad, &s)), FallbackError::NotMinimal);
            assert_eq!(check(&field(&[27], &r, &bad)), FallbackError::NotMinimal);
        }
        let high = HALF_ORDER.to_be_bytes::<32>();
        assert_eq!(check(&field(&[27], &r, &high)), FallbackError::HighS);
        let below = (HALF_ORDER - U256::from(1)).to_be_bytes::<32>();
        assert_ne!(check(&field(&[27], &r, &below)), FallbackError::HighS);
        assert_eq!(check(&field(&[31], &r, &s)), FallbackError::NoKey);
    }

    proptest! {
        #[test]
        fn random_bytes_are_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            prop_assert!(verify(&bytes, &HASH, &key(1).1).is_err());
        }
    }
}
