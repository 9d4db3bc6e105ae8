//! JSON of headers in subscription notifications.

use alloy_primitives::{Address, B256, Bloom};
use serde::Serialize;

use super::{
    Data, Quantity,
    write_hex::{self as write},
};
use crate::types::SealedHeader;

/// A header as `newHeads` shows it: the fields of the reference node in its order, without the Bridge event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcHead {
    /// Block difficulty.
    pub difficulty: Quantity,
    /// Extra data chosen by the miner.
    pub extra_data: Data,
    /// Block gas limit.
    pub gas_limit: Quantity,
    /// Gas used by all transactions.
    pub gas_used: Quantity,
    /// Bloom of all logs.
    #[serde(serialize_with = "write::bloom")]
    pub logs_bloom: Bloom,
    /// Fee receiver.
    #[serde(serialize_with = "write::address_or_empty")]
    pub miner: Option<Address>,
    /// Block number.
    pub number: Quantity,
    /// Hash of the parent.
    #[serde(serialize_with = "write::hash")]
    pub parent_hash: B256,
    /// Root of the receipts trie.
    #[serde(serialize_with = "write::hash")]
    pub receipts_root: B256,
    /// Hash of the uncle list.
    #[serde(serialize_with = "write::hash")]
    pub sha3_uncles: B256,
    /// Root of the state trie.
    #[serde(serialize_with = "write::hash")]
    pub state_root: B256,
    /// Unix time in seconds.
    pub timestamp: Quantity,
    /// Root of the transactions trie.
    #[serde(serialize_with = "write::hash")]
    pub transactions_root: B256,
    /// Block hash.
    #[serde(serialize_with = "write::hash")]
    pub hash: B256,
}

impl RpcHead {
    /// Builds the JSON object of a header.
    pub fn new(header: &SealedHeader) -> Self {
        Self {
            difficulty: header.difficulty.value().into(),
            extra_data: Data(header.extra_data.clone()),
            gas_limit: header.gas_limit.value().into(),
            gas_used: header.gas_used.into(),
            logs_bloom: header.logs_bloom,
            miner: header.coinbase,
            number: header.number.into(),
            parent_hash: header.parent_hash,
            receipts_root: header.receipts_root,
            sha3_uncles: header.uncles_hash,
            state_root: header.state_root,
            timestamp: header.timestamp.into(),
            transactions_root: header.transactions_root,
            hash: header.hash(),
        }
    }
}
