//! Reads and writes the contents of the two handshake packets, in both forms. Lengths are in bytes.
//!
//! | packet | plain | EIP-8 |
//! |---|---|---|
//! | auth | signature (65), keccak of the ephemeral key (32), static key (64), nonce (32), 0 | [signature, static key, nonce, 4], padding |
//! | ack | ephemeral key (64), nonce (32), 0 | [ephemeral key, nonce, 4], padding |
//!
//! The 0 at the end of a plain packet is a flag that is not used; the 4 is the version. As EIP-8 demands, a higher version, more items
//! and all bytes after the list are ignored.

use alloc::vec::Vec;

use alloy_primitives::keccak256;
use rootlight::types::rlp::{ListBuf, RlpReader, fixed, put_str, put_u64};
use rootlight::types::{FieldError, FieldRule};

use super::error::RlpxError;
use super::id::NodeId;
use super::signature::SIGNATURE_BYTES;

/// Bytes of a plain auth before encryption.
pub(super) const PLAIN_AUTH_BYTES: usize = SIGNATURE_BYTES + 32 + 64 + 32 + 1;
/// Bytes of a plain ack before encryption.
pub(super) const PLAIN_ACK_BYTES: usize = 64 + 32 + 1;
/// The version of the handshake.
const VERSION: u64 = 4;

/// The initiator's first message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Auth {
    /// The signature of the ephemeral key over the static shared secret XOR the nonce.
    pub(super) signature: [u8; SIGNATURE_BYTES],
    /// The initiator's node id.
    pub(super) static_id: NodeId,
    pub(super) nonce: [u8; 32],
}

impl Auth {
    /// The plain form; `ephemeral` is the public ephemeral key.
    pub(super) fn to_plain(&self, ephemeral: &NodeId) -> Vec<u8> {
        let hash = keccak256(ephemeral.as_bytes());
        [&self.signature, hash.as_slice(), self.static_id.as_bytes(), &self.nonce, &[0]].concat()
    }

    pub(super) fn to_list(&self, padding: &[u8]) -> Vec<u8> {
        let mut list = ListBuf::with_capacity(PLAIN_AUTH_BYTES);
        put_str(list.items(), &self.signature);
        put_str(list.items(), self.static_id.as_bytes());
        put_str(list.items(), &self.nonce);
        put_u64(list.items(), VERSION);
        [list.as_list(), padding].concat()
    }

    /// Reads the plain form. Also returns the Keccak-256 of the ephemeral key, with which the key that the signature gives must agree.
    pub(super) fn from_plain(bytes: &[u8]) -> Result<(Self, [u8; 32]), RlpxError> {
        let split = || {
            let (signature, rest) = bytes.split_first_chunk()?;
            let (hash, rest) = rest.split_first_chunk()?;
            let (id, rest) = rest.split_first_chunk()?;
            let (nonce, _token) = rest.split_first_chunk()?;
            Some((Self { signature: *signature, static_id: NodeId::from_bytes(*id), nonce: *nonce }, *hash))
        };
        split().ok_or(too_short("auth", PLAIN_AUTH_BYTES, bytes.len()))
    }

    pub(super) fn from_list(bytes: &[u8]) -> Result<Self, RlpxError> {
        let read = || {
            let mut items = RlpReader::new(bytes).next_list("auth")?;
            let signature = fixed(items.next_str("auth.signature")?, "auth.signature")?;
            let id = fixed(items.next_str("auth.publicKey")?, "auth.publicKey")?;
            let nonce = fixed(items.next_str("auth.nonce")?, "auth.nonce")?;
            items.next_str("auth.version")?;
            Ok(Self { signature, static_id: NodeId::from_bytes(id), nonce })
        };
        read().map_err(RlpxError::HandshakeContent)
    }
}

/// The responder's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ack {
    /// The responder's public ephemeral key.
    pub(super) ephemeral: NodeId,
    pub(super) nonce: [u8; 32],
}

impl Ack {
    pub(super) fn to_plain(&self) -> Vec<u8> {
        [self.ephemeral.as_bytes().as_slice(), &self.nonce, &[0]].concat()
    }

    pub(super) fn to_list(&self, padding: &[u8]) -> Vec<u8> {
        let mut list = ListBuf::with_capacity(PLAIN_ACK_BYTES);
        put_str(list.items(), self.ephemeral.as_bytes());
        put_str(list.items(), &self.nonce);
        put_u64(list.items(), VERSION);
        [list.as_list(), padding].concat()
    }

    pub(super) fn from_plain(bytes: &[u8]) -> Result<Self, RlpxError> {
        let split = || {
            let (ephemeral, rest) = bytes.split_first_chunk()?;
            let (nonce, _token) = rest.split_first_chunk()?;
            Some(Self { ephemeral: NodeId::from_bytes(*ephemeral), nonce: *nonce })
        };
        split().ok_or(too_short("ack", PLAIN_ACK_BYTES, bytes.len()))
    }

    pub(super) fn from_list(bytes: &[u8]) -> Result<Self, RlpxError> {
        let read = || {
            let mut items = RlpReader::new(bytes).next_list("ack")?;
            let ephemeral = fixed(items.next_str("ack.publicKey")?, "ack.publicKey")?;
            let nonce = fixed(items.next_str("ack.nonce")?, "ack.nonce")?;
            items.next_str("ack.version")?;
            Ok(Self { ephemeral: NodeId::from_bytes(ephemeral), nonce })
        };
        read().map_err(RlpxError::HandshakeContent)
    }
}

/// The error of a packet with too few bytes.
fn too_short(packet: &'static str, expected: usize, found: usize) -> RlpxError {
    RlpxError::HandshakeContent(FieldError::new(packet, FieldRule::Length { expected, found }))
}
