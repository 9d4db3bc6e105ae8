//! Sender recovery and the signature rules of transactions.

use alloy_primitives::{Address, B256, U256, keccak256, uint};
use thiserror::Error;

use super::transaction::Transaction;

/// Half the order of secp256k1, rounded down. The signature rules require a smaller `s`.
const HALF_ORDER: U256 = uint!(0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0_U256);

/// Why a transaction has no valid sender.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SenderError {
    /// `v` is not 27, 28 or 35/36 + 2 * chain id.
    #[error("transaction.v: {0} is not a signature's v")]
    V(u8),
    /// The transaction was signed for another chain.
    #[error("transaction.v: chain id {found}, expected {expected}")]
    ChainId {
        /// The network's chain id.
        expected: u64,
        /// The chain id that was signed.
        found: u64,
    },
    /// `s` is half the group order or more.
    #[error("transaction.s: not in the lower half of the group order")]
    HighS,
    /// `r` or `s` is out of range, or no curve point belongs to them.
    #[error("transaction.r: no public key has this signature")]
    NoKey,
}

impl Transaction {
    /// Recovers the sender of a transaction on the network with this chain id. A transaction without chain id
    /// is valid on every network. The sender of the REMASC transaction is the zero address.
    pub fn recover_sender(&self, chain_id: u64) -> Result<Address, SenderError> {
        if self.is_remasc() {
            return Ok(Address::ZERO);
        }
        let odd = self.y_is_odd().ok_or(SenderError::V(self.v))?;
        match self.chain_id() {
            Some(found) if found != chain_id => {
                return Err(SenderError::ChainId { expected: chain_id, found });
            }
            _ => {}
        }
        if self.s >= HALF_ORDER {
            return Err(SenderError::HighS);
        }
        let key = recover(&self.signing_hash(), &self.r, &self.s, odd).ok_or(SenderError::NoKey)?;
        Ok(Address::from_word(keccak256(key)))
    }
}

impl Transaction {
    /// Recovers the public key (x and y, 64 bytes) that signed the transaction, without checking the chain id
    /// or the range of `s`. `None` for the REMASC transaction.
    pub fn recover_public_key(&self) -> Option<[u8; 64]> {
        recover(&self.signing_hash(), &self.r, &self.s, self.y_is_odd()?)
    }
}

/// Recovers the public key (x and y, 64 bytes) that made a signature.
#[cfg(not(feature = "secp256k1-c"))]
fn recover(hash: &B256, r: &U256, s: &U256, odd: bool) -> Option<[u8; 64]> {
    recover_k256(hash, r, s, odd)
}

/// Recovers the public key (x and y, 64 bytes) that made a signature.
#[cfg(feature = "secp256k1-c")]
fn recover(hash: &B256, r: &U256, s: &U256, odd: bool) -> Option<[u8; 64]> {
    recover_c(hash, r, s, odd)
}

/// SEC 1 section 4.1.6: the key is (s * R - z * G) / r, where R is the point with x = r. The library's own
/// function also verifies the signature with the recovered key, which always succeeds and doubles the time.
#[cfg(any(test, not(feature = "secp256k1-c")))]
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
fn recover_k256(hash: &B256, r: &U256, s: &U256, odd: bool) -> Option<[u8; 64]> {
    use k256::elliptic_curve::ops::{LinearCombination, Reduce};
    use k256::elliptic_curve::point::DecompressPoint;
    use k256::elliptic_curve::sec1::ToEncodedPoint;
    use k256::{AffinePoint, ProjectivePoint, Scalar};

    let signature =
        k256::ecdsa::Signature::from_scalars(r.to_be_bytes::<32>(), s.to_be_bytes::<32>()).ok()?;
    let (r, s) = signature.split_scalars();
    let point = AffinePoint::decompress(&r.to_bytes(), u8::from(odd).into());
    let point = ProjectivePoint::from(Option::<AffinePoint>::from(point)?);
    let z = <Scalar as Reduce<k256::U256>>::reduce_bytes(&hash.0.into());
    let inverse = Option::<Scalar>::from(r.invert())?;
    let (u1, u2) = (-(inverse * z), inverse * *s);
    let key = ProjectivePoint::lincomb(&ProjectivePoint::GENERATOR, &u1, &point, &u2);
    // The point at infinity encodes as one byte.
    key.to_affine().to_encoded_point(false).as_bytes().last_chunk::<64>().copied()
}

#[cfg(feature = "secp256k1-c")]
fn recover_c(hash: &B256, r: &U256, s: &U256, odd: bool) -> Option<[u8; 64]> {
    use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
    let mut compact = [0u8; 64];
    let words = r.to_be_bytes::<32>().into_iter().chain(s.to_be_bytes::<32>());
    compact.iter_mut().zip(words).for_each(|(to, from)| *to = from);
    let id = if odd { RecoveryId::One } else { RecoveryId::Zero };
    let signature = RecoverableSignature::from_compact(&compact, id).ok()?;
    let message = secp256k1::Message::from_digest(hash.0);
    let key = signature.recover(message).ok()?;
    key.serialize_uncompressed().last_chunk::<64>().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_whose_key_is_at_infinity_is_refused() {
        // R is the generator and s equals the hash, so s * R - z * G is the point at infinity.
        let x = uint!(0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798_U256);
        let s = U256::from(12_345);
        assert_eq!(recover(&B256::from(s), &x, &s, false), None);
        assert_eq!(recover_k256(&B256::from(s), &x, &s, false), None);
        assert!(recover(&B256::from(s), &x, &s, true).is_some());
    }
}

#[cfg(all(test, feature = "secp256k1-c"))]
mod agreement {
    use super::*;
    use proptest::prelude::*;

    /// A valid signature of the hash by the key.
    fn sign(key: &k256::ecdsa::SigningKey, hash: &B256) -> (U256, U256, bool) {
        let (signature, id) = key.sign_prehash_recoverable(hash.as_slice()).expect("signing");
        let (r, s) = signature.split_bytes();
        (U256::from_be_slice(&r), U256::from_be_slice(&s), id.is_y_odd())
    }

    proptest! {
        #[test]
        fn both_libraries_find_the_same_key(
            secret in 1u64.., hash in any::<[u8; 32]>(), odd in any::<bool>(), flip in 0usize..64,
        ) {
            let hash = B256::from(hash);
            let key = k256::ecdsa::SigningKey::from_slice(&B256::from(U256::from(secret)).0).expect("key");
            let (r, s, y) = sign(&key, &hash);
            let public = key.verifying_key().to_encoded_point(false);
            let expected = public.as_bytes().last_chunk::<64>().copied();
            prop_assert_eq!(recover_c(&hash, &r, &s, y), expected);
            prop_assert_eq!(recover_k256(&hash, &r, &s, y), expected);
            // Invalid signatures: another y, another r, another s.
            prop_assert_eq!(recover_c(&hash, &r, &s, odd), recover_k256(&hash, &r, &s, odd));
            let bit = U256::from(1) << flip;
            prop_assert_eq!(recover_c(&hash, &(r ^ bit), &s, y), recover_k256(&hash, &(r ^ bit), &s, y));
            prop_assert_eq!(recover_c(&hash, &r, &(s ^ bit), y), recover_k256(&hash, &r, &(s ^ bit), y));
        }
    }

    #[test]
    fn both_libraries_refuse_numbers_out_of_range() {
        let order = (HALF_ORDER << 1) | U256::from(1);
        for r in [U256::ZERO, U256::from(5), order, U256::MAX] {
            for s in [U256::ZERO, order, U256::MAX] {
                assert_eq!(recover_c(&B256::ZERO, &r, &s, false), None);
                assert_eq!(recover_k256(&B256::ZERO, &r, &s, false), None);
            }
        }
    }
}
