//! What each method answers in each mode: part of the catalogue of methods.

use serde::{Serialize, Serializer, ser::SerializeMap as _};

#[cfg(feature = "dev")]
use super::dev::GET_WORK;
use super::{
    error::RpcError,
    method::{Handler, Method},
};

/// A way of running Rootlight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The development chain.
    Dev,
    /// The follower: it executes the blocks of another node.
    Follow,
    /// The light client.
    Light,
}

/// What a method answers in a mode.
#[derive(Debug, Clone, PartialEq)]
pub enum Support {
    /// It answers.
    Works,
    /// It answers within this limit.
    Partly(&'static str),
    /// It answers with this error.
    Refused(RpcError),
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Dev, Self::Follow, Self::Light];

    /// The name: that of the command.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dev => "dev",
            Self::Follow => "follow",
            Self::Light => "light",
        }
    }
}

/// As an object: `support` is `works`, `partly` with `limit`, or `refused` with `code` and `message`.
impl Serialize for Support {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Self::Works => map.serialize_entry("support", "works")?,
            Self::Partly(limit) => {
                map.serialize_entry("support", "partly")?;
                map.serialize_entry("limit", limit)?;
            }
            Self::Refused(error) => {
                map.serialize_entry("support", "refused")?;
                map.serialize_entry("code", &error.code())?;
                map.serialize_entry("message", &alloc::format!("{error}"))?;
            }
        }
        map.end()
    }
}

/// Methods that list waiting transactions.
const POOL: &[&str] =
    &["eth_pendingTransactions", "txpool_content", "txpool_contentFrom", "txpool_inspect", "txpool_status"];

/// Methods that answer within a limit.
const PARTLY: &[(Mode, &[&str], &str)] = &[
    (Mode::Follow, POOL, "has no pool: always empty"),
    (Mode::Follow, &["eth_newPendingTransactionFilter"], "has no pool: never reports a transaction"),
    (Mode::Light, POOL, "has no pool: always empty"),
    (
        Mode::Light,
        &["eth_newPendingTransactionFilter"],
        "reports the transactions that are sent through this client",
    ),
    (Mode::Light, &["eth_getBlocksByNumber"], "the canonical block only"),
    (
        Mode::Light,
        &["eth_getLogs", "eth_newFilter", "eth_getFilterChanges", "eth_getFilterLogs"],
        "at most 2,000 blocks at once",
    ),
    (
        Mode::Light,
        &[
            "debug_traceBlockByHash",
            "debug_traceBlockByNumber",
            "debug_traceTransaction",
            "ots_getContractCreator",
            "ots_getInternalOperations",
            "ots_getTransactionError",
            "ots_traceTransaction",
            "trace_block",
            "trace_filter",
            "trace_get",
            "trace_replayBlockTransactions",
            "trace_replayTransaction",
            "trace_transaction",
        ],
        "where an upstream proves the state of the block's parent",
    ),
];

impl Method {
    /// What the method answers in a mode.
    pub fn support(&self, mode: Mode) -> Support {
        let refused = match (mode, self.handler) {
            #[cfg(feature = "dev")]
            (Mode::Follow | Mode::Light, _) if self.name == GET_WORK => Some(RpcError::NoWork),
            #[cfg(feature = "local")]
            (Mode::Light, _) if self.name == super::storage_range::NAME => {
                Some(super::storage_range::unprovable())
            }
            #[cfg(feature = "dev")]
            (Mode::Follow, Handler::Write(_)) => Some(RpcError::NeedsDevChain),
            (Mode::Follow, Handler::Forward(..)) => Some(RpcError::NeedsDevChain),
            #[cfg(feature = "dev")]
            (Mode::Light, Handler::Write(_)) => Some(RpcError::NeedsLocalChain(self.name)),
            _ => None,
        };
        let limit = || PARTLY.iter().find(|(at, names, _)| *at == mode && names.contains(&self.name));
        match (refused, limit()) {
            (Some(error), _) => Support::Refused(error),
            (None, Some((_, _, text))) => Support::Partly(text),
            (None, None) => Support::Works,
        }
    }
}
