//! Encryption of handshake packets to a public key: ECIES (elliptic curve integrated encryption scheme) as RLPx defines it.
//!
//! A packet is `04 | x and y of an ephemeral key (64 bytes) | iv (16) | ciphertext (AES-128-CTR) | tag (32)`. The keys of the cipher
//! and of the tag are the halves of one block of the NIST concatenation KDF (SHA-256) over the shared x; the second one is hashed
//! before use. The tag is HMAC-SHA-256 over iv, ciphertext and data that both sides have (the size prefix of EIP-8).

use alloc::vec::Vec;

use aes::Aes128;
use aes::cipher::{KeyIvInit, StreamCipher};
use ctr::Ctr128BE;
use hmac::{Hmac, Mac};
use k256::{PublicKey, SecretKey};
use sha2::{Digest, Sha256};

use super::error::RlpxError;
use super::id::NodeId;

/// Bytes that encryption adds to a content.
pub(super) const OVERHEAD: usize = 1 + 64 + IV_BYTES + TAG_BYTES;
const IV_BYTES: usize = 16;
const TAG_BYTES: usize = 32;
/// First byte of an uncompressed point.
const UNCOMPRESSED: u8 = 4;

/// Key agreement: x of the product of a secret and a public key, which both sides can compute.
pub(super) fn agree(secret: &SecretKey, public: &PublicKey) -> [u8; 32] {
    (*k256::ecdh::diffie_hellman(secret.to_nonzero_scalar(), public.as_affine()).raw_secret_bytes()).into()
}

/// Encrypts `plain` to the key `remote`. The tag authenticates `data` too, which is not part of the output.
pub(super) fn encrypt(
    remote: &PublicKey,
    ephemeral: &SecretKey,
    iv: &[u8; IV_BYTES],
    plain: &[u8],
    data: &[u8],
) -> Result<Vec<u8>, RlpxError> {
    let mut packet = Vec::with_capacity(plain.len().saturating_add(OVERHEAD));
    packet.push(UNCOMPRESSED);
    packet.extend_from_slice(NodeId::of(&ephemeral.public_key())?.as_bytes());
    packet.extend_from_slice(iv);
    let keys = EciesKeys::derive(&agree(ephemeral, remote));
    let mut cipher = plain.to_vec();
    keys.apply(iv, &mut cipher);
    packet.extend_from_slice(&cipher);
    packet.extend_from_slice(&keys.tag(iv, &cipher, data)?.finalize().into_bytes());
    Ok(packet)
}

/// Decrypts a packet that was encrypted to our key. The tag is checked before anything is decrypted.
pub(super) fn decrypt(secret: &SecretKey, packet: &[u8], data: &[u8]) -> Result<Vec<u8>, RlpxError> {
    let parts = EciesPacket::of(packet).ok_or(RlpxError::HandshakeSize(packet.len()))?;
    if parts.prefix != UNCOMPRESSED {
        return Err(RlpxError::HandshakeKey);
    }
    let point = parts.point.public_key().map_err(|_| RlpxError::HandshakeKey)?;
    let keys = EciesKeys::derive(&agree(secret, &point));
    keys.tag(parts.iv, parts.cipher, data)?.verify(parts.tag.into()).map_err(|_| RlpxError::HandshakeTag)?;
    let mut plain = parts.cipher.to_vec();
    keys.apply(parts.iv, &mut plain);
    Ok(plain)
}

/// The parts of a packet.
struct EciesPacket<'a> {
    prefix: u8,
    point: NodeId,
    iv: &'a [u8; IV_BYTES],
    cipher: &'a [u8],
    tag: &'a [u8; TAG_BYTES],
}

impl<'a> EciesPacket<'a> {
    /// Splits a packet; `None` if it is too short.
    fn of(packet: &'a [u8]) -> Option<Self> {
        let (&prefix, rest) = packet.split_first()?;
        let (point, rest) = rest.split_first_chunk::<64>()?;
        let (iv, rest) = rest.split_first_chunk()?;
        let (cipher, tag) = rest.split_last_chunk()?;
        Some(Self { prefix, point: NodeId::from_bytes(*point), iv, cipher, tag })
    }
}

/// The keys of a packet.
struct EciesKeys {
    cipher: [u8; 16],
    /// The key of the tag.
    mac: [u8; 32],
}

impl EciesKeys {
    /// Derives the keys from the shared secret.
    fn derive(shared: &[u8; 32]) -> Self {
        // Both keys fit into the first block of the KDF: the hash of the counter 1 and the shared secret.
        let block: [u8; 32] =
            Sha256::new().chain_update(1u32.to_be_bytes()).chain_update(shared).finalize().into();
        let (mut cipher, mut half) = ([0; 16], [0; 16]);
        cipher.iter_mut().chain(&mut half).zip(block).for_each(|(to, from)| *to = from);
        Self { cipher, mac: Sha256::digest(half).into() }
    }

    /// Encrypts or decrypts.
    fn apply(&self, iv: &[u8; IV_BYTES], bytes: &mut [u8]) {
        Ctr128BE::<Aes128>::new(&self.cipher.into(), iv.into()).apply_keystream(bytes);
    }

    /// The tag, ready to be written or compared.
    fn tag(&self, iv: &[u8], cipher: &[u8], data: &[u8]) -> Result<Hmac<Sha256>, RlpxError> {
        // HMAC accepts a key of any length, so the error never occurs.
        let mac = Hmac::<Sha256>::new_from_slice(&self.mac).map_err(|_| RlpxError::HandshakeTag)?;
        Ok(mac.chain_update(iv).chain_update(cipher).chain_update(data))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rlpx::key::scalar;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn only_the_unchanged_packet_is_decrypted(
            plain in proptest::collection::vec(any::<u8>(), 0..300), iv in any::<[u8; 16]>(), at in any::<prop::sample::Index>(),
            bit in 0u8..8,
        ) {
            let (ours, ephemeral) = (scalar(&[3; 32]).unwrap(), scalar(&[5; 32]).unwrap());
            let packet = encrypt(&ours.public_key(), &ephemeral, &iv, &plain, b"data").unwrap();
            prop_assert_eq!(packet.len(), plain.len() + OVERHEAD);
            prop_assert_eq!(decrypt(&ours, &packet, b"data"), Ok(plain));
            prop_assert_eq!(decrypt(&ours, &packet, b"date"), Err(RlpxError::HandshakeTag));
            prop_assert_eq!(decrypt(&ephemeral, &packet, b"data"), Err(RlpxError::HandshakeTag));
            let mut changed = packet.clone();
            changed[at.index(packet.len())] ^= 1 << bit;
            prop_assert!(decrypt(&ours, &changed, b"data").is_err());
            prop_assert!(decrypt(&ours, &packet[..at.index(packet.len())], b"data").is_err());
        }
    }
}
