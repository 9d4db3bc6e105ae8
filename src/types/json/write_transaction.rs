//! JSON of transactions, receipts and logs.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bloom, U256};
use serde::Serialize;

use super::write_hex::{self as write, Data, Quantity};
use crate::types::log::Log;
use crate::types::receipt::Receipt;
use crate::types::transaction::Transaction;

/// The location of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location {
    /// Hash of its block.
    pub block_hash: B256,
    /// Number of its block.
    pub block_number: u64,
    /// Index in the block, from 0.
    pub index: u64,
}

/// A transaction as `eth_getTransactionBy*` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcTransaction {
    /// Transaction hash.
    #[serde(serialize_with = "write::hash")]
    pub hash: B256,
    /// Sender's nonce.
    pub nonce: Quantity,
    /// Hash of the block; null while pending.
    #[serde(serialize_with = "write::hash_or_null")]
    pub block_hash: Option<B256>,
    /// Number of the block; null while pending.
    pub block_number: Option<Quantity>,
    /// Index in the block; null while pending.
    pub transaction_index: Option<Quantity>,
    /// Sender.
    #[serde(serialize_with = "write::address")]
    pub from: Address,
    /// Receiver; null for a creation.
    #[serde(serialize_with = "write::address_or_null")]
    pub to: Option<Address>,
    /// Gas limit.
    pub gas: Quantity,
    /// Wei per gas.
    pub gas_price: Quantity,
    /// Value transferred, in wei.
    pub value: Quantity,
    /// Call data or init code.
    pub input: Data,
    /// Recovery id, with the chain id, as encoded.
    pub v: Quantity,
    /// `r` of the signature.
    pub r: Quantity,
    /// `s` of the signature.
    pub s: Quantity,
    /// Always 0: Rootstock has only legacy transactions.
    #[serde(rename = "type")]
    pub kind: Quantity,
}

impl RpcTransaction {
    /// Builds the JSON object of a transaction. The caller passes `hash` and `from`, which it has computed
    /// already.
    pub fn new(tx: &Transaction, hash: B256, from: Address, at: Option<&Location>) -> Self {
        Self {
            hash,
            nonce: tx.nonce.value().into(),
            block_hash: at.map(|l| l.block_hash),
            block_number: at.map(|l| l.block_number.into()),
            transaction_index: at.map(|l| l.index.into()),
            from,
            to: tx.to,
            gas: tx.gas_limit.value().into(),
            gas_price: tx.gas_price.value().into(),
            value: tx.value.into(),
            input: Data(tx.data.clone()),
            v: u64::from(tx.v).into(),
            r: tx.r.into(),
            s: tx.s.into(),
            kind: Quantity(U256::ZERO),
        }
    }
}

/// A receipt as `eth_getTransactionReceipt` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcReceipt {
    /// Transaction hash.
    #[serde(serialize_with = "write::hash")]
    pub transaction_hash: B256,
    /// Index in the block.
    pub transaction_index: Quantity,
    /// Hash of the block.
    #[serde(serialize_with = "write::hash")]
    pub block_hash: B256,
    /// Number of the block.
    pub block_number: Quantity,
    /// Gas used so far in the block; from RSKIP-144 on, so far in the sublist.
    pub cumulative_gas_used: Quantity,
    /// Gas used by the transaction.
    pub gas_used: Quantity,
    /// Address of the created contract, also if the creation failed; null for calls.
    #[serde(serialize_with = "write::address_or_null")]
    pub contract_address: Option<Address>,
    /// Logs in order.
    pub logs: Vec<RpcLog>,
    /// Sender.
    #[serde(serialize_with = "write::address")]
    pub from: Address,
    /// Receiver; null for a creation.
    #[serde(serialize_with = "write::address_or_null")]
    pub to: Option<Address>,
    /// 1 for success, 0 for failure.
    pub status: Quantity,
    /// Bloom of the logs.
    #[serde(serialize_with = "write::bloom")]
    pub logs_bloom: Bloom,
    /// Always 0: Rootstock has only legacy transactions.
    #[serde(rename = "type")]
    pub kind: Quantity,
    /// Gas price paid, in wei.
    pub effective_gas_price: Quantity,
}

impl RpcReceipt {
    /// Builds the JSON object of a receipt. `first_log` is the number of logs of the block's earlier
    /// transactions.
    pub fn new(
        receipt: &Receipt,
        tx: &Transaction,
        hash: B256,
        from: Address,
        at: &Location,
        first_log: u64,
    ) -> Self {
        let logs = receipt
            .logs
            .iter()
            .zip(first_log..)
            .map(|(log, index)| RpcLog::new(log, hash, at, index))
            .collect();
        Self {
            transaction_hash: hash,
            transaction_index: at.index.into(),
            block_hash: at.block_hash,
            block_number: at.block_number.into(),
            cumulative_gas_used: receipt.cumulative_gas_used.into(),
            gas_used: receipt.gas_used.into(),
            contract_address: tx.contract_address(&from),
            logs,
            from,
            to: tx.to,
            status: u64::from(receipt.success).into(),
            logs_bloom: receipt.logs_bloom,
            kind: Quantity(U256::ZERO),
            effective_gas_price: tx.gas_price.value().into(),
        }
    }
}

/// A log as receipts and `eth_getLogs` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcLog {
    /// Index among all logs of the block, from 0.
    pub log_index: Quantity,
    /// Number of the block.
    pub block_number: Quantity,
    /// Hash of the block.
    #[serde(serialize_with = "write::hash")]
    pub block_hash: B256,
    /// Transaction hash.
    #[serde(serialize_with = "write::hash")]
    pub transaction_hash: B256,
    /// Index of the transaction in the block.
    pub transaction_index: Quantity,
    /// The contract that wrote the log.
    #[serde(serialize_with = "write::address")]
    pub address: Address,
    /// Data of the log, not indexed.
    pub data: Data,
    /// Indexed words.
    #[serde(serialize_with = "write::hashes")]
    pub topics: Vec<B256>,
    /// Whether a reorganisation removed the log; left out in receipts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed: Option<bool>,
}

impl RpcLog {
    /// Builds the JSON object of a log, without the `removed` field.
    pub fn new(log: &Log, transaction: B256, at: &Location, log_index: u64) -> Self {
        Self {
            log_index: log_index.into(),
            block_number: at.block_number.into(),
            block_hash: at.block_hash,
            transaction_hash: transaction,
            transaction_index: at.index.into(),
            address: log.address,
            data: Data(log.data.clone()),
            topics: log.topics.clone(),
            removed: None,
        }
    }

    /// Sets the `removed` field, which filters and subscriptions show.
    pub const fn with_removed(mut self, removed: bool) -> Self {
        self.removed = Some(removed);
        self
    }
}
