//! Ids of nodes: their public keys.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use alloy_primitives::hex;
use k256::elliptic_curve::sec1::ToEncodedPoint;
use k256::{EncodedPoint, PublicKey};
use thiserror::Error;

/// Bytes of a node id.
const ID_BYTES: usize = 64;

/// Why bytes or a text are not a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum KeyError {
    /// The secret is zero, or not below the order of the curve.
    #[error("not a secret key of secp256k1")]
    Secret,
    /// The point is not on the curve.
    #[error("not a public key of secp256k1")]
    Public,
    #[error("node id: not 128 hexadecimal digits")]
    IdText,
}

/// The id of a node: its public key on secp256k1, x and y, 64 bytes. An id from the network may not be a point of the curve; this is
/// checked when the key is used.
///
/// As text an id is 128 hexadecimal digits without a prefix.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId([u8; ID_BYTES]);

impl NodeId {
    /// The id with these bytes (x and y, big-endian).
    pub const fn from_bytes(bytes: [u8; ID_BYTES]) -> Self {
        Self(bytes)
    }

    /// x and y, big-endian.
    pub const fn as_bytes(&self) -> &[u8; ID_BYTES] {
        &self.0
    }

    /// The id with this key.
    pub(super) fn of(key: &PublicKey) -> Result<Self, KeyError> {
        let point = key.to_encoded_point(false);
        point.as_bytes().last_chunk().copied().map(Self).ok_or(KeyError::Public)
    }

    /// The key; an error if the id is not a point of the curve.
    pub(super) fn public_key(&self) -> Result<PublicKey, KeyError> {
        let point = EncodedPoint::from_untagged_bytes(&self.0.into());
        PublicKey::try_from(point).map_err(|_| KeyError::Public)
    }
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = hex::encode(self.0);
        f.write_str(&text)
    }
}

impl fmt::Debug for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeId({self})")
    }
}

impl FromStr for NodeId {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        let mut bytes = [0; ID_BYTES];
        // The length is checked because the decoder accepts a prefix, which ids do not have.
        if text.len() != 2 * ID_BYTES || hex::decode_to_slice(text, &mut bytes).is_err() {
            return Err(KeyError::IdText);
        }
        Ok(Self(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_128_digits() {
        let id = NodeId::from_bytes(core::array::from_fn(|at| at as u8 | 0xa0));
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(text.to_uppercase().parse(), Ok(id));
        for wrong in [&text[1..], &format!("0x{text}"), &format!("0x{}", &text[2..]), &format!("{text}0"), ""]
        {
            assert_eq!(wrong.parse::<NodeId>(), Err(KeyError::IdText), "{wrong}");
        }
    }

    #[test]
    fn points_off_the_curve_are_none() {
        assert_eq!(NodeId::from_bytes([1; 64]).public_key().err(), Some(KeyError::Public));
        assert_eq!(NodeId::from_bytes([0; 64]).public_key().err(), Some(KeyError::Public));
    }
}
