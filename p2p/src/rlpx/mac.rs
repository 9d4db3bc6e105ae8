//! The MACs of the frames of one direction: each depends on the handshake packet and on all frames before.

use aes::Aes256;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use alloy_primitives::Keccak256;

/// Bytes of a MAC.
pub(super) const MAC_BYTES: usize = 16;

/// The state of the MACs: a Keccak-256 of the handshake packet and of all frames so far.
pub(super) struct FrameMac {
    state: Keccak256,
    cipher: Aes256,
}

impl FrameMac {
    /// The state after `seed` (the MAC secret XOR the receiver's nonce) and the sender's handshake packet.
    pub(super) fn new(secret: &[u8; 32], seed: &[u8; 32], packet: &[u8]) -> Self {
        let mut state = Keccak256::new();
        state.update(seed);
        state.update(packet);
        Self { state, cipher: Aes256::new(secret.into()) }
    }

    /// The MAC of the next header, given its ciphertext.
    pub(super) fn header(&mut self, cipher: &[u8; MAC_BYTES]) -> [u8; MAC_BYTES] {
        self.step(*cipher)
    }

    /// The MAC of the next body, given its padded ciphertext.
    pub(super) fn body(&mut self, cipher: &[u8]) -> [u8; MAC_BYTES] {
        self.state.update(cipher);
        let seed = self.digest();
        self.step(seed)
    }

    /// Adds a seed to the state, as RLPx defines it: the encrypted digest XOR the seed. Returns the MAC.
    fn step(&mut self, seed: [u8; MAC_BYTES]) -> [u8; MAC_BYTES] {
        let mut block = self.digest().into();
        self.cipher.encrypt_block(&mut block);
        block.iter_mut().zip(seed).for_each(|(byte, other)| *byte ^= other);
        self.state.update(block);
        self.digest()
    }

    /// The first 16 bytes of the present hash.
    fn digest(&self) -> [u8; MAC_BYTES] {
        let digest = self.state.clone().finalize();
        let mut first = [0; MAC_BYTES];
        first.iter_mut().zip(digest).for_each(|(to, from)| *to = from);
        first
    }
}
