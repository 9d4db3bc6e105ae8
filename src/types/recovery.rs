//! Recovery of the public key that made a signature on secp256k1, in Rust or by a C library (feature `secp256k1-c`).

use alloy_primitives::{B256, U256, uint};

/// Half the order of the curve's group, rounded down. A valid `s` is below it.
pub(crate) const HALF_ORDER: U256 =
    uint!(0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0_U256);

/// The facts that a signature omits about the point R whose x it contains: whether its y is odd (1), and whether its x was at
/// least the order and was reduced (2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecoveryId(u8);

impl RecoveryId {
    /// The id of a point whose x is below the order.
    pub(crate) const fn of(odd: bool) -> Self {
        Self(odd as u8)
    }

    /// The id with this number, which is 0 to 3.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        (number < 4).then_some(Self(number))
    }
}

/// Recovers the public key (x and y, 64 bytes) that made a signature.
#[cfg(not(feature = "secp256k1-c"))]
pub(crate) fn recover(hash: &B256, r: &U256, s: &U256, id: RecoveryId) -> Option<[u8; 64]> {
    recover_k256(hash, r, s, id)
}

/// Recovers the public key (x and y, 64 bytes) that made a signature.
#[cfg(feature = "secp256k1-c")]
pub(crate) fn recover(hash: &B256, r: &U256, s: &U256, id: RecoveryId) -> Option<[u8; 64]> {
    recover_c(hash, r, s, id)
}

/// SEC 1 section 4.1.6: the key is (s * R - z * G) / r. The library's own function also verifies the signature with the
/// recovered key, which always succeeds and doubles the time.
#[cfg(any(test, not(feature = "secp256k1-c")))]
#[allow(clippy::arithmetic_side_effects)] // modular: cannot overflow
fn recover_k256(hash: &B256, r: &U256, s: &U256, RecoveryId(id): RecoveryId) -> Option<[u8; 64]> {
    use k256::elliptic_curve::ops::{LinearCombination, Reduce};
    use k256::elliptic_curve::point::DecompressPoint;
    use k256::elliptic_curve::sec1::ToEncodedPoint;
    use k256::{AffinePoint, ProjectivePoint, Scalar};

    /// The order of the group.
    const ORDER: U256 = uint!(0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141_U256);

    let x = if id & 2 == 0 { *r } else { r.checked_add(ORDER)? };
    let signature =
        k256::ecdsa::Signature::from_scalars(r.to_be_bytes::<32>(), s.to_be_bytes::<32>()).ok()?;
    let (r, s) = signature.split_scalars();
    let point = AffinePoint::decompress(&x.to_be_bytes::<32>().into(), (id & 1).into());
    let point = ProjectivePoint::from(Option::<AffinePoint>::from(point)?);
    let z = <Scalar as Reduce<k256::U256>>::reduce_bytes(&hash.0.into());
    let inverse = Option::<Scalar>::from(r.invert())?;
    let (u1, u2) = (-(inverse * z), inverse * *s);
    let key = ProjectivePoint::lincomb(&ProjectivePoint::GENERATOR, &u1, &point, &u2);
    // The point at infinity encodes as one byte.
    key.to_affine().to_encoded_point(false).as_bytes().last_chunk::<64>().copied()
}

/// The same by the C library.
#[cfg(feature = "secp256k1-c")]
fn recover_c(hash: &B256, r: &U256, s: &U256, RecoveryId(id): RecoveryId) -> Option<[u8; 64]> {
    use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
    let mut compact = [0u8; 64];
    let words = r.to_be_bytes::<32>().into_iter().chain(s.to_be_bytes::<32>());
    compact.iter_mut().zip(words).for_each(|(to, from)| *to = from);
    let id = RecoveryId::try_from(i32::from(id)).ok()?;
    let signature = RecoverableSignature::from_compact(&compact, id).ok()?;
    let message = secp256k1::Message::from_digest(hash.0);
    let key = signature.recover(message).ok()?;
    key.serialize_uncompressed().last_chunk::<64>().copied()
}

#[cfg(test)]
mod tests {
    use k256::ecdsa::{Signature, VerifyingKey};
    use proptest::prelude::*;

    use super::*;

    const EVEN: RecoveryId = RecoveryId(0);
    const ODD: RecoveryId = RecoveryId(1);

    /// The key that the library's own function recovers. It requires a low s: the equivalent signature has the other parity.
    fn by_the_library(hash: &B256, r: &U256, s: &U256, RecoveryId(id): RecoveryId) -> Option<[u8; 64]> {
        let signature = Signature::from_scalars(r.to_be_bytes::<32>(), s.to_be_bytes::<32>()).ok()?;
        let (signature, id) = signature.normalize_s().map_or((signature, id), |low| (low, id ^ 1));
        let id = k256::ecdsa::RecoveryId::from_byte(id)?;
        let key = VerifyingKey::recover_from_prehash(hash.as_slice(), &signature, id).ok()?;
        key.to_encoded_point(false).as_bytes().last_chunk::<64>().copied()
    }

    proptest! {
        #[test]
        fn every_form_of_signature_gives_the_key_that_the_library_finds(
            hash in any::<[u8; 32]>(), r in any::<[u8; 32]>(), s in any::<[u8; 32]>(), small in any::<bool>(), id in 0u8..4,
        ) {
            let (hash, s) = (B256::from(hash), U256::from_be_bytes(s));
            // The x of a point is at least the order only if r is below 2^129.
            let r = U256::from_be_bytes(r) >> if small { 128 } else { 0 };
            let id = RecoveryId::from_number(id).unwrap();
            let expected = by_the_library(&hash, &r, &s, id);
            prop_assert_eq!(recover_k256(&hash, &r, &s, id), expected);
            prop_assert_eq!(recover(&hash, &r, &s, id), expected);
        }
    }

    #[test]
    fn an_id_above_3_names_no_point() {
        assert_eq!((4..=u8::MAX).find_map(RecoveryId::from_number), None);
    }

    #[test]
    fn a_signature_whose_key_is_at_infinity_is_refused() {
        // R is the generator and s equals the hash, so s * R - z * G is the point at infinity.
        let x = uint!(0x79be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798_U256);
        let s = U256::from(12_345);
        assert_eq!(recover(&B256::from(s), &x, &s, EVEN), None);
        assert_eq!(recover_k256(&B256::from(s), &x, &s, EVEN), None);
        assert!(recover(&B256::from(s), &x, &s, ODD).is_some());
    }
}

#[cfg(all(test, feature = "secp256k1-c"))]
mod agreement {
    use super::*;
    use proptest::prelude::*;

    /// A valid signature of the hash by the key.
    fn sign(key: &k256::ecdsa::SigningKey, hash: &B256) -> (U256, U256, RecoveryId) {
        let (signature, id) = key.sign_prehash_recoverable(hash.as_slice()).expect("signing");
        let (r, s) = signature.split_bytes();
        (U256::from_be_slice(&r), U256::from_be_slice(&s), RecoveryId(id.to_byte()))
    }

    proptest! {
        #[test]
        fn both_libraries_find_the_same_key(
            secret in 1u64.., hash in any::<[u8; 32]>(), other in 0u8..4, flip in 0usize..64,
        ) {
            let hash = B256::from(hash);
            let key = k256::ecdsa::SigningKey::from_slice(&B256::from(U256::from(secret)).0).expect("key");
            let (r, s, y) = sign(&key, &hash);
            let public = key.verifying_key().to_encoded_point(false);
            let expected = public.as_bytes().last_chunk::<64>().copied();
            prop_assert_eq!(recover_c(&hash, &r, &s, y), expected);
            prop_assert_eq!(recover_k256(&hash, &r, &s, y), expected);
            // Invalid signatures: another id, another r, another s.
            let other = RecoveryId(other);
            prop_assert_eq!(recover_c(&hash, &r, &s, other), recover_k256(&hash, &r, &s, other));
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
                assert_eq!(recover_c(&B256::ZERO, &r, &s, RecoveryId(0)), None);
                assert_eq!(recover_k256(&B256::ZERO, &r, &s, RecoveryId(0)), None);
            }
        }
    }
}
