//! Errors of datagrams: why bytes are no datagram, and why a datagram was ignored.

use rootlight::types::FieldError;
use thiserror::Error;

/// Why bytes are no datagram of discovery.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum DatagramError {
    /// Too short or too long.
    #[error("datagram of {0} bytes")]
    Size(usize),
    /// The hash at its start is not that of the rest.
    #[error("wrong hash of the datagram")]
    Hash,
    /// The type is none of PING, PONG, FIND_NODE and NEIGHBORS.
    #[error("unknown type {0}")]
    Type(u8),
    /// The content is malformed.
    #[error(transparent)]
    Content(#[from] FieldError),
    #[error("message id is no version 4 UUID")]
    MessageId,
    #[error("no key has this signature")]
    Signature,
}

/// Why a datagram was ignored. No reason is evidence against the node whose address or id the datagram shows, because addresses can be
/// forged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Ignored {
    /// The limit of datagrams from this address or in all is reached.
    #[error("too many datagrams")]
    TooMany,
    /// No node may have this address.
    #[error("address not allowed")]
    Address,
    /// The datagram is malformed.
    #[error(transparent)]
    Malformed(#[from] DatagramError),
    /// The datagram belongs to another network.
    #[error("network {0}")]
    Network(u64),
    /// The datagram is an answer, and this node has not asked its sender a question.
    #[error("answer to no question")]
    Unasked,
    /// The datagram is a FIND_NODE, and its sender has not shown that it receives datagrams at its address.
    #[error("node not bonded")]
    NotBonded,
    /// The datagram was signed with our own key.
    #[error("own datagram")]
    Own,
}
