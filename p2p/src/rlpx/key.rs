//! Secret keys of nodes.

use core::fmt;

use alloy_primitives::B256;
use k256::SecretKey;

use super::id::{KeyError, NodeId};
use super::signature::{SIGNATURE_BYTES, sign};

/// The secret key of a node, which proves its id. The memory of the secret is overwritten when the key is dropped; `Debug` shows only
/// the id.
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

    /// The secret, to store it (32 bytes, big-endian).
    pub fn to_bytes(&self) -> [u8; 32] {
        self.secret.to_bytes().into()
    }

    /// The node's public key.
    pub const fn id(&self) -> &NodeId {
        &self.id
    }

    /// Signs a hash with the node's key; [`recover`](super::recover) gets the node's id from the signature.
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

/// The secret key with these bytes (big-endian).
pub(super) fn scalar(bytes: &[u8; 32]) -> Result<SecretKey, KeyError> {
    SecretKey::from_bytes(&(*bytes).into()).map_err(|_| KeyError::Secret)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_primitives::hex;

    #[test]
    fn a_key_shows_its_id_and_never_its_secret() {
        let key = NodeKey::from_bytes(&[7; 32]).unwrap();
        let text = format!("{key:?}");
        assert!(text.contains(&key.id().to_string()));
        assert!(!text.contains(&hex::encode([7; 32])));
        assert_eq!(key.to_bytes(), [7; 32]);
    }

    #[test]
    fn secrets_out_of_range_are_none() {
        assert_eq!(NodeKey::from_bytes(&[0; 32]).err(), Some(KeyError::Secret));
        assert_eq!(NodeKey::from_bytes(&[0xff; 32]).err(), Some(KeyError::Secret));
    }
}
