//! Derives the keys and MACs of the frames from a handshake; both sides get the same.

use alloy_primitives::Keccak256;

use super::frame::{FrameReader, FrameWriter};
use super::mac::FrameMac;

/// The values of a handshake that both sides have after it.
pub(super) struct Transcript<'a> {
    /// x of the product of the two ephemeral keys.
    pub(super) ephemeral_shared: [u8; 32],
    pub(super) initiator_nonce: [u8; 32],
    pub(super) responder_nonce: [u8; 32],
    /// The whole auth packet, with the size prefix if it has one.
    pub(super) auth: &'a [u8],
    /// The whole ack packet.
    pub(super) ack: &'a [u8],
}

/// The keys of the frames, for both directions.
pub(super) struct Secrets {
    /// The key of the cipher.
    pub(super) aes: [u8; 32],
    /// The key of the MACs.
    pub(super) mac: [u8; 32],
}

/// The role of a side in a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeRole {
    Initiator,
    Responder,
}

impl Transcript<'_> {
    /// The reader and the writer of frames for this side.
    pub(super) fn frames(&self, side: HandshakeRole) -> (FrameReader, FrameWriter) {
        let secrets = self.secrets();
        let by_initiator = FrameMac::new(&secrets.mac, &xor(&secrets.mac, &self.responder_nonce), self.auth);
        let by_responder = FrameMac::new(&secrets.mac, &xor(&secrets.mac, &self.initiator_nonce), self.ack);
        let (ingress, egress) = match side {
            HandshakeRole::Initiator => (by_responder, by_initiator),
            HandshakeRole::Responder => (by_initiator, by_responder),
        };
        (FrameReader::new(&secrets.aes, ingress), FrameWriter::new(&secrets.aes, egress))
    }

    /// Derives the keys, as RLPx defines it.
    pub(super) fn secrets(&self) -> Secrets {
        let nonces = hash([&self.responder_nonce, &self.initiator_nonce]);
        let shared = hash([&self.ephemeral_shared, &nonces]);
        let aes = hash([&self.ephemeral_shared, &shared]);
        let mac = hash([&self.ephemeral_shared, &aes]);
        Secrets { aes, mac }
    }
}

/// Keccak-256 of two values, one after the other.
fn hash(words: [&[u8; 32]; 2]) -> [u8; 32] {
    let mut state = Keccak256::new();
    words.iter().for_each(|word| state.update(word));
    state.finalize().0
}

/// Bitwise exclusive or.
pub(super) fn xor(left: &[u8; 32], right: &[u8; 32]) -> [u8; 32] {
    let mut result = *left;
    result.iter_mut().zip(right).for_each(|(byte, other)| *byte ^= other);
    result
}
