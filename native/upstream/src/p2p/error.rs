//! Why a peer gave no answer, and which error of an upstream that becomes for the core.

use std::time::Duration;

use alloy_primitives::B256;
use rootlight::consensus::Network;
use rootlight_p2p::chunk::ChunkError;
use rootlight_p2p::message::MessageError;
use rootlight_p2p::rlpx::RlpxError;
use rootlight_p2p::session::CloseReason;

use crate::UpstreamError;
use crate::source_quota::{BudgetUsedUp, NoWork};

/// JSON-RPC code of a method that does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// JSON-RPC code of an error that has no code of its own (from the range that JSON-RPC 2.0 leaves to servers).
const SERVER_ERROR: i64 = -32000;

/// JSON-RPC code of bad parameters.
const INVALID_PARAMS: i64 = -32602;

/// Why a peer gave no answer to a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum PeerError {
    #[error("peer not connected: {0}")]
    NotConnected(String),
    /// The connection was not set up or ended.
    #[error("connection to the peer ended: {0}")]
    Closed(CloseReason),
    /// The handshake could not begin.
    #[error("handshake: {0}")]
    Handshake(#[from] RlpxError),
    /// No response came. A peer does not respond if it does not have the requested data.
    #[error("the peer did not respond within {} ms; a peer says nothing about what it lacks", .0.as_millis())]
    NoResponse(Duration),
    /// A caller has used its share of the messages that the peer reads in a minute, or too many of its requests wait.
    #[error(
        "the caller has had its share of the questions that the peer answers in a minute; ask again later"
    )]
    Share,
    /// The peer did not respond to a recent request for the same data, so that the request was not sent again.
    #[error(
        "the peer did not respond when it was asked for the same lately; a peer says nothing about what it lacks"
    )]
    Lacking,
    /// As many messages were sent as the peer reads in a minute.
    #[error("the peer reads no more messages for {0} ms")]
    Limit(u64),
    /// Too few bytes of the memory budget are free for a response.
    #[error("{}", UpstreamError::BudgetUsedUp)]
    BudgetUsedUp,
    #[error("response of the peer: {0}")]
    Message(#[from] MessageError),
    /// A response does not fit its request. The text says what is wrong.
    #[error("response of the peer: {0}")]
    Wrong(&'static str),
    /// The data of a response has another hash than the requested one.
    #[error("{what} of the peer has the hash {found}, asked for {asked}")]
    OtherHash { what: &'static str, asked: B256, found: B256 },
    /// A state chunk does not belong to the state root of the block.
    #[error("state chunk of block {block} from offset {from}: {error}")]
    Chunk { block: u64, from: u64, error: ChunkError },
    /// The peer sends chunks of another state than that of the block, whose number the field is.
    #[error(
        "the peer's state of block {0} is another one: peers give states of their own branch only; add an upstream that gives \
         state proofs"
    )]
    OtherState(u64),
    #[error(
        "this peer serves no state chunks (its HELLO has no snap/1); add a peer with snapshot service, or an upstream \
         that gives state proofs"
    )]
    NoState,
    #[error("state chunks of the peer do not lead to the key {0}")]
    NotFound(String),
    #[error(
        "peers do not serve {0}; add a JSON-RPC upstream: the peer-to-peer protocol has no message for it"
    )]
    NoMessage(&'static str),
    /// The parameters of the request are not those of the method.
    #[error("{0}")]
    Params(&'static str),
}

impl PeerError {
    /// The error for a part of a block (`what`) that has another hash than its header names. If this program does not know the
    /// network's rules for the block, it may have computed a wrong hash, and the error does not count as a lie of the peer.
    pub(super) fn other_hash(
        network: &Network,
        number: u64,
        what: &'static str,
        asked: B256,
        found: B256,
    ) -> Self {
        match network.needs_update_for(number) {
            true => Self::Wrong("a part of a block has another hash than the one asked for"),
            false => Self::OtherHash { what, asked, found },
        }
    }

    /// Whether no honest peer gives such a response, whichever branch it follows and whatever data it stores. The handshake has
    /// proven which node the peer is.
    fn is_lie(&self) -> bool {
        match self {
            Self::OtherHash { .. } => true,
            Self::Chunk { error, .. } => error.fits_no_state(),
            _ => false,
        }
    }
}

impl PeerError {
    /// The failure of a caller's request, for the light client. A caller can name data that no peer has, and can use up the requests
    /// that a peer answers: neither is a fault of the peer.
    pub(super) fn of_caller(self) -> UpstreamError {
        match self {
            Self::NoResponse(_) => UpstreamError::NotAvailable(self.to_string()),
            Self::Lacking | Self::Share | Self::Limit(_) => UpstreamError::NotSent(self.to_string()),
            other => other.into(),
        }
    }
}

impl From<BudgetUsedUp> for PeerError {
    fn from(_: BudgetUsedUp) -> Self {
        Self::BudgetUsedUp
    }
}

impl From<NoWork> for PeerError {
    fn from(why: NoWork) -> Self {
        match why {
            NoWork::BudgetUsedUp => Self::BudgetUsedUp,
            NoWork::TooLong => Self::Wrong("it is longer than an honest one"),
        }
    }
}

impl From<PeerError> for UpstreamError {
    fn from(error: PeerError) -> Self {
        let message = error.to_string();
        match error {
            error if error.is_lie() => Self::False(message),
            PeerError::NotConnected(_) | PeerError::Closed(_) | PeerError::Handshake(_) => {
                Self::Transport(message)
            }
            // 429 is HTTP's status "Too Many Requests".
            PeerError::Limit(wait) => Self::Busy { status: 429, seconds: wait.div_ceil(1_000) },
            PeerError::NoResponse(_) | PeerError::Lacking | PeerError::Share => Self::Silent(message),
            PeerError::BudgetUsedUp => Self::BudgetUsedUp,
            PeerError::Message(_)
            | PeerError::Wrong(_)
            | PeerError::OtherHash { .. }
            | PeerError::Chunk { .. }
            | PeerError::OtherState(_)
            | PeerError::NotFound(_) => Self::Rpc { code: SERVER_ERROR, message, data: None },
            PeerError::NoState | PeerError::NoMessage(_) => {
                Self::Rpc { code: METHOD_NOT_FOUND, message, data: None }
            }
            PeerError::Params(_) => Self::Rpc { code: INVALID_PARAMS, message, data: None },
        }
    }
}
