//! RLPx version 4 without compression: the encrypted and authenticated transport of Rootstock's peers, as machines that
//! take bytes and give bytes.
//!
//! [`Connection`] does all of it: the handshake in both of its forms (plain and EIP-8), then frames. Random bytes are
//! arguments ([`HandshakeSecrets`]), so that every run can be repeated byte for byte.
//!
//! Source: the devp2p specification, EIP-8, and the reference implementation (`org/ethereum/net/rlpx`,
//! `org/ethereum/crypto/ECIESCoder`).

mod auth;
mod connection;
mod ecies;
#[cfg(test)]
mod eip8_tests;
mod error;
mod frame;
mod handshake;
mod id;
mod key;
mod mac;
mod secrets;
mod signature;

pub use connection::{Connection, MAX_UNREAD, READ_BEFORE_HELLO};
pub use error::RlpxError;
pub use frame::{Frame, MAX_FRAME_READ, MAX_FRAME_SENT};
pub use handshake::{
    AuthForm, HANDSHAKE_PACKET_MAX, HandshakeSecrets, PADDING_MAX, PADDING_MIN, RANDOM_BYTES,
};
pub use id::{KeyError, NodeId};
pub use key::NodeKey;
pub(crate) use signature::{SIGNATURE_BYTES, recover};
