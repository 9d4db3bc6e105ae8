//! Datagrams of discovery: `hash (32 bytes) | signature (65) | type (1) | RLP list`.
//!
//! The sender's key signs the Keccak-256 of type and list. The hash is the Keccak-256 of signature, type and list.

use alloc::vec::Vec;

use alloy_primitives::{B256, keccak256};

use super::error::DatagramError;
use super::packet::Packet;
use crate::rlpx::{KeyError, NodeId, NodeKey, SIGNATURE_BYTES, recover};

/// Least bytes of a datagram.
pub const DATAGRAM_MIN: usize = 32 + SIGNATURE_BYTES + 1;
/// Most bytes of a datagram that is read. The longest one of the reference implementation, with 20 nodes at IPv4 addresses (at most 90
/// bytes each), has less than 1,950.
pub const DATAGRAM_MAX: usize = 2048;

/// A datagram whose hash is right and whose content was read. Its signature is not checked before [`Self::sender`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    /// The message in the datagram.
    pub packet: Packet,
    /// The hash that is signed.
    signed_hash: B256,
    signature: [u8; SIGNATURE_BYTES],
}

impl Datagram {
    /// Reads a datagram and checks its hash. Recovering the sender from the signature, which costs most, is left to [`Self::sender`].
    pub fn decode(bytes: &[u8]) -> Result<Self, DatagramError> {
        let size = DatagramError::Size(bytes.len());
        if bytes.len() > DATAGRAM_MAX {
            return Err(size);
        }
        let Some((hash, hashed)) = bytes.split_first_chunk::<32>() else { return Err(size) };
        let Some((signature, content)) = hashed.split_first_chunk() else { return Err(size) };
        let Some((type_byte, data)) = content.split_first() else { return Err(size) };
        if keccak256(hashed) != *hash {
            return Err(DatagramError::Hash);
        }
        let packet = Packet::decode(*type_byte, data)?;
        Ok(Self { packet, signed_hash: keccak256(content), signature: *signature })
    }

    /// Reads the message of a datagram without checking its hash, which costs less than [`Self::decode`]. Everything in the message
    /// may be false.
    pub(super) fn decode_unchecked(bytes: &[u8]) -> Option<Packet> {
        let content = bytes.get(32 + SIGNATURE_BYTES..).filter(|_| bytes.len() <= DATAGRAM_MAX)?;
        let (type_byte, data) = content.split_first()?;
        Packet::decode(*type_byte, data).ok()
    }

    /// The key that signed the datagram. Costs about 0.2 ms.
    pub fn sender(&self) -> Result<NodeId, DatagramError> {
        recover(&self.signed_hash, &self.signature).ok_or(DatagramError::Signature)
    }

    /// Writes and signs a datagram.
    pub fn encode(packet: &Packet, key: &NodeKey) -> Result<Vec<u8>, KeyError> {
        let mut content = [packet.type_byte()].to_vec();
        content.extend_from_slice(&packet.encode());
        let signature = key.sign(&keccak256(&content))?;
        let hashed = [&signature, content.as_slice()].concat();
        Ok([keccak256(&hashed).as_slice(), &hashed].concat())
    }
}
