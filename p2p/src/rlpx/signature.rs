//! Signatures from which the signer's key can be recovered: r, s, and one byte v that states whether y of the point R is odd.

use alloy_primitives::B256;
use k256::PublicKey;
use k256::ecdsa::{RecoveryId, Signature, SigningKey, VerifyingKey};

use super::id::{KeyError, NodeId};

/// Bytes of a signature: r (32), s (32), v (1).
pub(crate) const SIGNATURE_BYTES: usize = 65;

/// Signs a hash: RFC 6979, s in the lower half of the order, v 0 or 1.
pub(super) fn sign(secret: &k256::SecretKey, hash: &B256) -> Result<[u8; SIGNATURE_BYTES], KeyError> {
    let (signature, id) =
        SigningKey::from(secret).sign_prehash_recoverable(hash.as_slice()).map_err(|_| KeyError::Secret)?;
    let mut bytes = [0; SIGNATURE_BYTES];
    let parts = signature.to_bytes();
    // A recovery id can also state that x of R is not below the order of the curve. No such hash can be found, so v is 0 or 1.
    let v = u8::from(id.is_y_odd());
    bytes.iter_mut().zip(parts.iter().chain([&v])).for_each(|(to, from)| *to = *from);
    Ok(bytes)
}

/// The key that has signed this hash. `None` if v is neither 0 nor 1, r or s is out of range, or no key has this signature. An s in the
/// upper half of the order is accepted, as the reference accepts it.
pub(crate) fn recover(hash: &B256, bytes: &[u8; SIGNATURE_BYTES]) -> Option<NodeId> {
    let (parts, v) = bytes.split_first_chunk::<64>()?;
    let odd = match v {
        [0] => false,
        [1] => true,
        _ => return None,
    };
    let signature = Signature::from_slice(parts).ok()?;
    // The library accepts only an s in the lower half. A high s is replaced by its negative, which belongs to the point with the other y.
    let (signature, odd) = signature.normalize_s().map_or((signature, odd), |low| (low, !odd));
    // `false`: x of R is below the order, as in `sign`.
    let id = RecoveryId::new(odd, false);
    let key = VerifyingKey::recover_from_prehash(hash.as_slice(), &signature, id).ok()?;
    NodeId::of(&PublicKey::from(key)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rlpx::NodeKey;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_signature_names_its_key(secret in 1u64.., hash in any::<[u8; 32]>(), v in 2u8.., spoiled in 0usize..64) {
            let key = NodeKey::from_bytes(&alloy_primitives::U256::from(secret).to_be_bytes()).unwrap();
            let hash = B256::from(hash);
            let signature = sign(key.secret(), &hash).unwrap();
            prop_assert_eq!(recover(&hash, &signature), Some(*key.id()));
            let mut other = signature;
            other[64] = v;
            prop_assert_eq!(recover(&hash, &other), None);
            let mut other = signature;
            other[spoiled] ^= 1;
            prop_assert_ne!(recover(&hash, &other), Some(*key.id()));
        }
    }

    #[test]
    fn a_high_s_names_the_same_key() {
        let key = NodeKey::from_bytes(&[9; 32]).unwrap();
        let mut bytes = sign(key.secret(), &B256::ZERO).unwrap();
        let low = Signature::from_slice(&bytes[..64]).unwrap();
        let (r, s) = low.split_scalars();
        let high = Signature::from_scalars(*r, -*s).unwrap();
        bytes[..64].copy_from_slice(&high.to_bytes());
        bytes[64] ^= 1;
        assert_eq!(recover(&B256::ZERO, &bytes), Some(*key.id()));
    }

    #[test]
    fn zero_is_no_signature() {
        assert_eq!(recover(&B256::ZERO, &[0; SIGNATURE_BYTES]), None);
    }
}
