//! Errors of the transport: of handshakes and of frames.

use rootlight::types::FieldError;
use thiserror::Error;

use super::id::KeyError;

/// Why a handshake or a stream of frames ended. Close the connection after any of these errors, except those of
/// [`Connection::send`](super::Connection::send).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum RlpxError {
    /// A secret or a public key among the arguments is not a key of the curve.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The padding among the arguments does not have the length that EIP-8 and the reference allow.
    #[error("padding of {0} bytes, not 100 to 299")]
    Padding(usize),
    /// The size of a handshake packet is out of range.
    #[error("handshake packet of {0} bytes")]
    HandshakeSize(usize),
    /// A handshake packet was not encrypted to our key, or was changed on the way.
    #[error("handshake packet: not encrypted to this key, or changed")]
    HandshakeTag,
    #[error("handshake packet: a key is not on the curve")]
    HandshakeKey,
    /// The signature of an auth packet gives no key, or another key than the packet states.
    #[error("handshake packet: wrong signature")]
    HandshakeSignature,
    #[error("handshake packet: {0}")]
    HandshakeContent(FieldError),
    #[error("wrong MAC of a frame's header")]
    HeaderMac,
    #[error("wrong MAC of a frame's body")]
    BodyMac,
    /// A frame is longer than the present read limit, or longer than a frame that may be sent.
    #[error("frame of {size} bytes, at most {limit}")]
    FrameSize { size: usize, limit: usize },
    /// The header of a frame, or its message code, is malformed.
    #[error("frame: {0}")]
    FrameContent(FieldError),
    /// The frame is a part of a message. Version 4 of RLPx has no such frames.
    #[error("frame is a part of a message")]
    Chunked,
    /// More bytes were fed than may be left unread; the caller did not take the frames.
    #[error("more than {0} bytes left unread")]
    Unread(usize),
    /// A frame was to be sent before the handshake was over.
    #[error("handshake not finished")]
    NotReady,
    #[error("connection has failed")]
    Failed,
}
