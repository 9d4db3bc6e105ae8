//! The handshake: the initiator (the side that dials) sends an auth packet, the responder an ack packet. Both sides prove that they have
//! the secret keys of their node ids, and derive the keys of the frames.

use alloc::vec::Vec;
use core::fmt;

use alloy_primitives::{B256, keccak256};
use k256::SecretKey;

use super::auth::{Ack, Auth, PLAIN_ACK_BYTES, PLAIN_AUTH_BYTES};
use super::ecies::{self, OVERHEAD};
use super::error::RlpxError;
use super::frame::{FrameReader, FrameWriter};
use super::id::NodeId;
use super::key::{NodeKey, scalar};
use super::secrets::{HandshakeRole, Transcript, xor};
use super::signature::{recover, sign};

/// Most bytes after the size prefix of an EIP-8 packet. The reference writes at most 582. Below 1,024, so that the first
/// byte distinguishes the forms: a plain packet starts with 04, the first byte of an uncompressed key.
pub const HANDSHAKE_PACKET_MAX: usize = 1023;
/// Least padding of an EIP-8 packet, in bytes. With it, auth is longer than the 307 bytes of a plain one, as the reference requires.
pub const PADDING_MIN: usize = 100;
/// Most padding of an EIP-8 packet, in bytes.
pub const PADDING_MAX: usize = 299;
/// Random bytes that [`HandshakeSecrets::from_random`] takes.
pub const RANDOM_BYTES: usize = 32 + 32 + 32 + 16 + 2 + PADDING_MAX;

/// First byte of a plain packet.
const PLAIN_START: u8 = 4;
/// Bytes of the size prefix of EIP-8.
const PREFIX_BYTES: usize = 2;

/// The two forms of handshake packets. The responder uses the form that the initiator has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthForm {
    /// The form before EIP-8, of fixed length.
    Plain,
    /// The form of EIP-8, with size prefix, RLP list and padding.
    Eip8,
}

/// The random values of one side of a handshake. Each must come from a secure source, and be used for one handshake only.
#[derive(Clone)]
pub struct HandshakeSecrets {
    /// Secret key from which the keys of the frames are derived.
    pub ephemeral: [u8; 32],
    /// The nonce of this side.
    pub nonce: [u8; 32],
    /// Secret key for the encryption of the packet (ECIES).
    pub ecies_ephemeral: [u8; 32],
    /// The iv of the packet's encryption.
    pub ecies_iv: [u8; 16],
    /// Bytes after the list of an EIP-8 packet, [`PADDING_MIN`] to [`PADDING_MAX`].
    pub padding: Vec<u8>,
}

impl HandshakeSecrets {
    /// Divides random bytes among the values; two bytes choose the length of the padding.
    pub fn from_random(random: &[u8; RANDOM_BYTES]) -> Self {
        let mut bytes = random.iter().copied();
        let mut word = || {
            let mut word = [0; 32];
            word.iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = from);
            word
        };
        let (ephemeral, nonce, ecies_ephemeral) = (word(), word(), word());
        let mut ecies_iv = [0; 16];
        ecies_iv.iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = from);
        let mut choice = [0; 2];
        choice.iter_mut().zip(&mut bytes).for_each(|(to, from)| *to = from);
        let span = PADDING_MAX.saturating_sub(PADDING_MIN).saturating_add(1);
        let extra = usize::from(u16::from_be_bytes(choice)).checked_rem(span).unwrap_or(0);
        let padding = bytes.take(PADDING_MIN.saturating_add(extra)).collect();
        Self { ephemeral, nonce, ecies_ephemeral, ecies_iv, padding }
    }
}

impl fmt::Debug for HandshakeSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeSecrets").finish_non_exhaustive()
    }
}

/// The result of a handshake.
pub(super) struct Finished {
    /// The peer's id.
    pub(super) remote: NodeId,
    pub(super) reader: FrameReader,
    pub(super) writer: FrameWriter,
}

/// The packet at the start of the input.
enum Packet<'a> {
    /// More bytes are needed.
    Incomplete,
    /// All bytes of the packet, its form, and the encrypted part.
    Whole { whole: &'a [u8], form: AuthForm, cipher: &'a [u8] },
}

impl<'a> Packet<'a> {
    /// Finds the packet. `plain` is the number of bytes that its content has in the plain form.
    fn find(input: &'a [u8], plain: usize) -> Result<Self, RlpxError> {
        if input.first() == Some(&PLAIN_START) {
            let length = plain.saturating_add(OVERHEAD);
            return Ok(input.get(..length).map_or(Self::Incomplete, |whole| Self::Whole {
                whole,
                form: AuthForm::Plain,
                cipher: whole,
            }));
        }
        let Some((prefix, rest)) = input.split_first_chunk::<PREFIX_BYTES>() else {
            return Ok(Self::Incomplete);
        };
        let size = usize::from(u16::from_be_bytes(*prefix));
        if !(OVERHEAD..=HANDSHAKE_PACKET_MAX).contains(&size) {
            return Err(RlpxError::HandshakeSize(size));
        }
        let whole = input.get(..size.saturating_add(PREFIX_BYTES));
        Ok(match (whole, rest.get(..size)) {
            (Some(whole), Some(cipher)) => Self::Whole { whole, form: AuthForm::Eip8, cipher },
            _ => Self::Incomplete,
        })
    }
}

/// The data that the tag of a packet authenticates besides the packet: the size prefix of EIP-8.
fn tagged(whole: &[u8], form: AuthForm) -> &[u8] {
    match form {
        AuthForm::Plain => &[],
        AuthForm::Eip8 => whole.get(..PREFIX_BYTES).unwrap_or(&[]),
    }
}

/// Encrypts the content of a packet in its form.
fn seal(
    remote: &NodeId,
    secrets: &HandshakeSecrets,
    form: AuthForm,
    content: &[u8],
) -> Result<Vec<u8>, RlpxError> {
    let (public, ephemeral) = (remote.public_key()?, scalar(&secrets.ecies_ephemeral)?);
    let size = content.len().saturating_add(OVERHEAD);
    let prefix = u16::try_from(size).map_err(|_| RlpxError::HandshakeSize(size))?.to_be_bytes();
    let prefix: &[u8] = if form == AuthForm::Eip8 { &prefix } else { &[] };
    let packet = ecies::encrypt(&public, &ephemeral, &secrets.ecies_iv, content, prefix)?;
    Ok([prefix, &packet].concat())
}

/// Checks the length of the padding.
fn check_padding(secrets: &HandshakeSecrets) -> Result<(), RlpxError> {
    let length = secrets.padding.len();
    if (PADDING_MIN..=PADDING_MAX).contains(&length) { Ok(()) } else { Err(RlpxError::Padding(length)) }
}

/// The side that dials, after it has made its auth.
pub(super) struct Initiator {
    key: NodeKey,
    /// The id of the node that is dialled.
    remote: NodeId,
    ephemeral: SecretKey,
    nonce: [u8; 32],
    form: AuthForm,
    /// The whole auth packet.
    auth: Vec<u8>,
}

impl Initiator {
    pub(super) fn new(
        key: &NodeKey,
        remote: &NodeId,
        secrets: &HandshakeSecrets,
        form: AuthForm,
    ) -> Result<Self, RlpxError> {
        check_padding(secrets)?;
        let ephemeral = scalar(&secrets.ephemeral)?;
        let shared = ecies::agree(key.secret(), &remote.public_key()?);
        let signature = sign(&ephemeral, &B256::from(xor(&shared, &secrets.nonce)))?;
        let content = Auth { signature, static_id: *key.id(), nonce: secrets.nonce };
        let content = match form {
            AuthForm::Plain => content.to_plain(&NodeId::of(&ephemeral.public_key())?),
            AuthForm::Eip8 => content.to_list(&secrets.padding),
        };
        let auth = seal(remote, secrets, form, &content)?;
        Ok(Self { key: key.clone(), remote: *remote, ephemeral, nonce: secrets.nonce, form, auth })
    }

    /// The auth packet, to be sent.
    pub(super) fn auth(&self) -> &[u8] {
        &self.auth
    }

    /// The id of the node that is dialled.
    pub(super) const fn remote(&self) -> &NodeId {
        &self.remote
    }

    /// Reads the ack at the start of the input. Returns the number of used bytes and the result of the handshake; `None` until the packet
    /// is complete. The work is at most two key agreements, one for the packet and one for the frames.
    pub(super) fn read(&self, input: &[u8]) -> Result<Option<(usize, Finished)>, RlpxError> {
        let Packet::Whole { whole, form, cipher } = Packet::find(input, PLAIN_ACK_BYTES)? else {
            return Ok(None);
        };
        if form != self.form {
            return Err(RlpxError::HandshakeSize(whole.len()));
        }
        let content = ecies::decrypt(self.key.secret(), cipher, tagged(whole, form))?;
        let ack = match form {
            AuthForm::Plain => Ack::from_plain(&content)?,
            AuthForm::Eip8 => Ack::from_list(&content)?,
        };
        let theirs = ack.ephemeral.public_key().map_err(|_| RlpxError::HandshakeKey)?;
        let transcript = Transcript {
            ephemeral_shared: ecies::agree(&self.ephemeral, &theirs),
            initiator_nonce: self.nonce,
            responder_nonce: ack.nonce,
            auth: &self.auth,
            ack: whole,
        };
        let (reader, writer) = transcript.frames(HandshakeRole::Initiator);
        Ok(Some((whole.len(), Finished { remote: self.remote, reader, writer })))
    }
}

/// The side that is dialled, before it has read an auth.
pub(super) struct Responder {
    key: NodeKey,
    secrets: HandshakeSecrets,
    ephemeral: SecretKey,
}

impl Responder {
    pub(super) fn new(key: &NodeKey, secrets: HandshakeSecrets) -> Result<Self, RlpxError> {
        check_padding(&secrets)?;
        let ephemeral = scalar(&secrets.ephemeral)?;
        Ok(Self { key: key.clone(), secrets, ephemeral })
    }

    /// Reads the auth at the start of the input. Returns the number of used bytes, the ack to send and the result of the handshake; `None`
    /// until the packet is complete. The work is at most five multiplications on the curve; a packet that was not encrypted to our key
    /// is refused after the first one.
    pub(super) fn read(&self, input: &[u8]) -> Result<Option<(usize, Vec<u8>, Finished)>, RlpxError> {
        let Packet::Whole { whole, form, cipher } = Packet::find(input, PLAIN_AUTH_BYTES)? else {
            return Ok(None);
        };
        let content = ecies::decrypt(self.key.secret(), cipher, tagged(whole, form))?;
        let (auth, stated_hash) = match form {
            AuthForm::Plain => Auth::from_plain(&content).map(|(auth, hash)| (auth, Some(hash)))?,
            AuthForm::Eip8 => (Auth::from_list(&content)?, None),
        };
        let theirs = self.ephemeral_of(&auth, stated_hash)?;
        let ours = Ack { ephemeral: NodeId::of(&self.ephemeral.public_key())?, nonce: self.secrets.nonce };
        let content = match form {
            AuthForm::Plain => ours.to_plain(),
            AuthForm::Eip8 => ours.to_list(&self.secrets.padding),
        };
        let ack = seal(&auth.static_id, &self.secrets, form, &content)?;
        let theirs = theirs.public_key().map_err(|_| RlpxError::HandshakeKey)?;
        let transcript = Transcript {
            ephemeral_shared: ecies::agree(&self.ephemeral, &theirs),
            initiator_nonce: auth.nonce,
            responder_nonce: self.secrets.nonce,
            auth: whole,
            ack: &ack,
        };
        let (reader, writer) = transcript.frames(HandshakeRole::Responder);
        let length = whole.len();
        Ok(Some((length, ack, Finished { remote: auth.static_id, reader, writer })))
    }

    /// The initiator's ephemeral key, which is recovered from the signature. `stated_hash` is its hash, which the plain form contains.
    fn ephemeral_of(&self, auth: &Auth, stated_hash: Option<[u8; 32]>) -> Result<NodeId, RlpxError> {
        let theirs = auth.static_id.public_key().map_err(|_| RlpxError::HandshakeKey)?;
        let shared = ecies::agree(self.key.secret(), &theirs);
        let ephemeral = recover(&B256::from(xor(&shared, &auth.nonce)), &auth.signature)
            .ok_or(RlpxError::HandshakeSignature)?;
        match stated_hash {
            Some(hash) if keccak256(ephemeral.as_bytes()).0 != hash => Err(RlpxError::HandshakeSignature),
            _ => Ok(ephemeral),
        }
    }
}
