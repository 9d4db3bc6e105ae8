//! Keys and identities of nodes.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use alloy_primitives::{B256, hex};
use k256::elliptic_curve::sec1::ToEncodedPoint;
use k256::{EncodedPoint, PublicKey, SecretKey};
use thiserror::Error;

use super::signature::{SIGNATURE_BYTES, sign};

/// Bytes of a node id.
const ID_BYTES: usize = 64;

/// Why bytes or text are no key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The secret is zero or not below the order of the group.
    #[error("not a secret key of secp256k1")]
    Secret,
    /// The point is not on the curve.
    #[error("not a public key of secp256k1")]
    Public,
    /// The text is not 128 hexadecimal digits.
    #[error("node id: not 128 hexadecimal digits")]
    IdText,
}

/// The secret key that a node is known by. Overwritten when dropped; its `Debug` shows the id only.
#[derive(Clone)]
pub struct NodeKey {
    secret: SecretKey,
    id: NodeId,
}

impl NodeKey {
    /// The key with this secret (32 bytes, big-endian).
    pub fn from_bytes(secret: &[u8; 32]) -> Result<Self, KeyError> {
        let secret = scalar(secret)?;
        let id = NodeId::of(&secret.public_key())?;
        Ok(Self { secret, id })
    }

    /// The secret, for keeping it (32 bytes, big-endian).
    pub fn to_bytes(&self) -> [u8; 32] {
        self.secret.to_bytes().into()
    }

    /// What others know the node by.
    pub const fn id(&self) -> &NodeId {
        &self.id
    }

    /// Signs a hash with the node's key, so that the signature names it.
    pub(crate) fn sign(&self, hash: &B256) -> Result<[u8; SIGNATURE_BYTES], KeyError> {
        sign(&self.secret, hash)
    }

    pub(super) const fn secret(&self) -> &SecretKey {
        &self.secret
    }
}

impl fmt::Debug for NodeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeKey").field("id", &self.id).finish_non_exhaustive()
    }
}

/// A node's public key on secp256k1: x and y, 64 bytes. An id from the network may be no point of the curve at all; that
/// shows when it is used.
///
/// Text is 128 hexadecimal digits without a prefix.
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

    pub(super) fn of(key: &PublicKey) -> Result<Self, KeyError> {
        let point = key.to_encoded_point(false);
        point.as_bytes().last_chunk().copied().map(Self).ok_or(KeyError::Public)
    }

    /// The point of the curve, if it is one.
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
        // The decoder would take a prefix; ids are written without.
        if text.len() != 2 * ID_BYTES || hex::decode_to_slice(text, &mut bytes).is_err() {
            return Err(KeyError::IdText);
        }
        Ok(Self(bytes))
    }
}

/// The secret key with these bytes.
pub(super) fn scalar(bytes: &[u8; 32]) -> Result<SecretKey, KeyError> {
    SecretKey::from_bytes(&(*bytes).into()).map_err(|_| KeyError::Secret)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_its_id_and_never_its_secret() {
        let key = NodeKey::from_bytes(&[7; 32]).unwrap();
        let text = format!("{key:?}");
        assert!(text.contains(&key.id().to_string()));
        assert!(!text.contains(&hex::encode([7; 32])));
        assert_eq!(key.to_bytes(), [7; 32]);
    }

    #[test]
    fn an_id_is_128_digits() {
        let id = *NodeKey::from_bytes(&[7; 32]).unwrap().id();
        let text = id.to_string();
        assert_eq!(text.parse(), Ok(id));
        assert_eq!(text.to_uppercase().parse(), Ok(id));
        for wrong in [&text[1..], &format!("0x{text}"), &format!("0x{}", &text[2..]), &format!("{text}0"), ""]
        {
            assert_eq!(wrong.parse::<NodeId>(), Err(KeyError::IdText), "{wrong}");
        }
    }

    #[test]
    fn secrets_out_of_range_and_points_off_the_curve_are_none() {
        assert_eq!(NodeKey::from_bytes(&[0; 32]).err(), Some(KeyError::Secret));
        assert_eq!(NodeKey::from_bytes(&[0xff; 32]).err(), Some(KeyError::Secret));
        assert_eq!(NodeId::from_bytes([1; 64]).public_key().err(), Some(KeyError::Public));
        assert_eq!(NodeId::from_bytes([0; 64]).public_key().err(), Some(KeyError::Public));
    }
}
