//! The reasons why a session ended, and why a message was not sent.

use alloy_primitives::B256;
use rootlight::types::FieldError;
use thiserror::Error;

use super::disconnect::DisconnectReason;
use crate::rlpx::RlpxError;

/// Why a session ended. Whatever the reason, write the bytes of the last `take_output` and close the socket.
///
/// [`Self::Transport`] and [`Self::HandshakeTimeout`] are no evidence against the node that was dialled: before the handshake is over,
/// any program that answers at the node's address can cause them.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum CloseReason {
    /// The handshake or the stream of frames broke.
    #[error(transparent)]
    Transport(#[from] RlpxError),
    #[error("peer disconnected: {0:?}")]
    ByPeer(DisconnectReason),
    /// The host ended the session.
    #[error("disconnected: {0:?}")]
    ByUs(DisconnectReason),
    /// HELLO or STATUS is malformed.
    #[error(transparent)]
    Malformed(#[from] FieldError),
    /// The peer speaks another version of the base protocol.
    #[error("base protocol version {0}, not 4 or 5")]
    BaseVersion(u64),
    #[error("peer does not speak rsk/62")]
    NoRsk,
    #[error("node id in HELLO is not the one of the handshake")]
    Identity,
    /// The version of `rsk` in STATUS is not 62.
    #[error("rsk version {0}, not 62")]
    RskVersion(u64),
    /// The peer is on another network.
    #[error("network {found}, not {expected}")]
    Network { expected: u64, found: u64 },
    /// The peer has another block 0.
    #[error("genesis block {found}, not {expected}")]
    Genesis { expected: B256, found: B256 },
    /// A message came too early, or a second time.
    #[error("message {0:#04x} out of order")]
    OutOfOrder(u64),
    /// A message code above the base protocol that `rsk/62` does not have.
    #[error("unknown message {0:#x}")]
    UnknownCode(u64),
    /// The peer sent more than the limits of a minute.
    #[error("too many messages or bytes in a minute")]
    Flood,
    /// The peer's STATUS did not come in time.
    #[error("not ready within 10 seconds")]
    HandshakeTimeout,
    /// No message came for too long.
    #[error("no message for two minutes")]
    Silence,
}

impl CloseReason {
    /// The reason that DISCONNECT states to the peer; `None` if it is not sent.
    pub(super) const fn disconnect_reason(&self) -> Option<DisconnectReason> {
        Some(match self {
            Self::Transport(_) | Self::ByPeer(_) => return None,
            Self::ByUs(reason) => *reason,
            Self::Malformed(_) | Self::OutOfOrder(_) | Self::UnknownCode(_) => DisconnectReason::BadProtocol,
            Self::BaseVersion(_) | Self::RskVersion(_) => DisconnectReason::IncompatibleProtocol,
            Self::NoRsk | Self::Flood => DisconnectReason::UselessPeer,
            Self::Identity => DisconnectReason::UnexpectedIdentity,
            // As the reference does.
            Self::Network { .. } => DisconnectReason::NullIdentity,
            Self::Genesis { .. } => DisconnectReason::OtherGenesis,
            Self::HandshakeTimeout | Self::Silence => DisconnectReason::PingTimeout,
        })
    }
}

/// Why a message was not sent. The session goes on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum SendError {
    /// STATUS of the peer has not come yet.
    #[error("session not ready")]
    NotReady,
    #[error("session closed")]
    Closed,
    /// The limit of sent messages is reached, beyond which the peer reads none in this minute.
    #[error("rate limit reached, {wait_ms} ms to wait")]
    Rate { wait_ms: u64 },
    /// The message is too long.
    #[error(transparent)]
    Transport(RlpxError),
}
