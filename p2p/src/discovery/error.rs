//! Errors of datagrams.

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
    /// A type that is none of the four.
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

/// Why a datagram was ignored. None of these says anything against the node whose address or id it shows: addresses can be
/// forged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Ignored {
    /// More datagrams than are looked at, from this address or in all.
    #[error("too many datagrams")]
    TooMany,
    /// The address is none that a node of the network has.
    #[error("address not allowed")]
    Address,
    /// The datagram is malformed.
    #[error(transparent)]
    Malformed(#[from] DatagramError),
    /// The datagram belongs to another network.
    #[error("network {0}")]
    Network(u64),
    /// The datagram answers a question that this node did not ask its sender.
    #[error("answer to no question")]
    Unasked,
    /// The datagram asks something, and its sender has not shown that it receives at its address.
    #[error("node not bonded")]
    NotBonded,
    /// The datagram was signed with our own key.
    #[error("own datagram")]
    Own,
}
