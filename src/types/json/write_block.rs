//! JSON of blocks and uncles.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bloom, U256};
use serde::Serialize;

use super::write_hex::{self as write, Data, Quantity};
use super::write_transaction::RpcTransaction;
use crate::types::header::{EMPTY_UNCLES_HASH, Header, HeaderVersion, SealedHeader};

/// The transactions of a block, in the form that a caller's parameter selects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum RpcTransactions {
    /// Hashes only.
    Hashes(#[serde(serialize_with = "write::hashes")] Vec<B256>),
    /// Whole transactions.
    Full(Vec<RpcTransaction>),
}

/// The parts of a block's JSON besides the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockParts<'a> {
    /// The transactions.
    pub transactions: RpcTransactions,
    /// The uncles. `None` if they are not available; `uncles` and `cumulativeDifficulty` are then null.
    pub uncles: Option<&'a [SealedHeader]>,
    /// Total difficulty; null if `None`.
    pub total_difficulty: Option<U256>,
    /// Length of the block's RLP in bytes (see [`crate::types::block::block_len`]); null if `None`.
    pub size: Option<u64>,
}

/// A block or uncle as `eth_getBlockBy*` and `eth_getUncleBy*` show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RpcBlock {
    /// Block number; null while pending.
    pub number: Option<Quantity>,
    /// Block hash; null while pending.
    #[serde(serialize_with = "write::hash_or_null")]
    pub hash: Option<B256>,
    /// Hash of the parent.
    #[serde(serialize_with = "write::hash")]
    pub parent_hash: B256,
    /// Zeros. Rootstock has no Ethash seal, but clients expect the field.
    #[serde(serialize_with = "write::hash")]
    pub mix_hash: B256,
    /// Eight zero bytes; null while pending.
    pub nonce: Option<Data>,
    /// Hash of the uncle list.
    #[serde(serialize_with = "write::hash")]
    pub sha3_uncles: B256,
    /// Bloom of all logs; null while pending.
    #[serde(serialize_with = "write::bloom_or_null")]
    pub logs_bloom: Option<Bloom>,
    /// Root of the transactions trie.
    #[serde(serialize_with = "write::hash")]
    pub transactions_root: B256,
    /// Root of the state trie.
    #[serde(serialize_with = "write::hash")]
    pub state_root: B256,
    /// Root of the receipts trie.
    #[serde(serialize_with = "write::hash")]
    pub receipts_root: B256,
    /// Fee receiver.
    #[serde(serialize_with = "write::address_or_empty")]
    pub miner: Option<Address>,
    /// Block difficulty.
    pub difficulty: Quantity,
    /// Sum of the cumulative difficulties up to this block.
    pub total_difficulty: Option<Quantity>,
    /// Extra data chosen by the miner.
    pub extra_data: Data,
    /// Length of the block's RLP in bytes.
    pub size: Option<Quantity>,
    /// Block gas limit.
    pub gas_limit: Quantity,
    /// Gas used by all transactions.
    pub gas_used: Quantity,
    /// Unix time in seconds.
    pub timestamp: Quantity,
    /// The transactions.
    pub transactions: RpcTransactions,
    /// Hashes of the uncles.
    #[serde(serialize_with = "write::hashes_or_null")]
    pub uncles: Option<Vec<B256>>,
    /// Lowest gas price accepted in the block, in wei.
    pub minimum_gas_price: Quantity,
    /// Bitcoin block header.
    pub bitcoin_merged_mining_header: Data,
    /// Midstate and tail of the Bitcoin coinbase.
    pub bitcoin_merged_mining_coinbase_transaction: Option<Data>,
    /// Merkle branch of the coinbase.
    pub bitcoin_merged_mining_merkle_proof: Option<Data>,
    /// The hash that the coinbase commits to; null if the coinbase has no fork-detection data.
    #[serde(serialize_with = "write::hash_or_null")]
    pub hash_for_merged_mining: Option<B256>,
    /// Fees paid by all transactions, in wei.
    pub paid_fees: Quantity,
    /// Sum of the difficulties of the block and its uncles.
    pub cumulative_difficulty: Option<Quantity>,
    /// Sublist edges as signed 16-bit numbers; null before RSKIP-144.
    pub rsk_pte_edges: Option<Vec<i16>>,
    /// Bridge event; null if empty.
    pub base_event: Option<Data>,
}

impl RpcBlock {
    /// Builds the JSON object of a block of the chain.
    pub fn new(header: &SealedHeader, parts: BlockParts<'_>) -> Self {
        let mut block = Self::unnumbered(header, parts);
        block.number = Some(header.number.into());
        block.hash = Some(header.hash());
        block.logs_bloom = Some(header.logs_bloom);
        block.nonce = Some(Data::from(alloc::vec![0; 8]));
        block
    }

    /// Removes the merged-mining fields that the block hash does not cover (RSKIP-92).
    #[must_use]
    pub fn without_proof(mut self) -> Self {
        self.bitcoin_merged_mining_coinbase_transaction = None;
        self.bitcoin_merged_mining_merkle_proof = None;
        self.hash_for_merged_mining = None;
        self
    }

    /// Builds the JSON object of an uncle, without transactions. If the uncle's own uncles are not available,
    /// `uncles` and `cumulativeDifficulty`, which includes their difficulties, are null unless the header commits to an
    /// empty list.
    pub fn uncle(
        header: &SealedHeader,
        own_uncles: Option<&[SealedHeader]>,
        total_difficulty: Option<U256>,
        size: Option<u64>,
    ) -> Self {
        let transactions = RpcTransactions::Hashes(Vec::new());
        let empty: Option<&[SealedHeader]> = (header.uncles_hash == EMPTY_UNCLES_HASH).then_some(&[]);
        let parts = BlockParts { transactions, uncles: own_uncles.or(empty), total_difficulty, size };
        Self::new(header, parts)
    }

    /// Builds the JSON object of the pending block: number, hash, nonce and bloom are null.
    pub fn pending(header: &Header, parts: BlockParts<'_>) -> Self {
        Self::unnumbered(header, parts)
    }

    /// The object with all members but those that a pending block has as null.
    fn unnumbered(header: &Header, parts: BlockParts<'_>) -> Self {
        let own = header.difficulty.value();
        let cumulative = parts
            .uncles
            .map(|uncles| uncles.iter().fold(own, |sum, uncle| sum.saturating_add(uncle.difficulty.value())));
        let edges = header.shape.edges && header.shape.version != HeaderVersion::V0;
        Self {
            number: None,
            hash: None,
            parent_hash: header.parent_hash,
            mix_hash: B256::ZERO,
            nonce: None,
            sha3_uncles: header.uncles_hash,
            logs_bloom: None,
            transactions_root: header.transactions_root,
            state_root: header.state_root,
            receipts_root: header.receipts_root,
            miner: header.coinbase,
            difficulty: own.into(),
            total_difficulty: parts.total_difficulty.map(Quantity),
            extra_data: Data(header.extra_data.clone()),
            size: parts.size.map(Quantity::from),
            gas_limit: header.gas_limit.value().into(),
            gas_used: header.gas_used.into(),
            timestamp: header.timestamp.into(),
            transactions: parts.transactions,
            uncles: parts.uncles.map(|uncles| uncles.iter().map(SealedHeader::hash).collect()),
            minimum_gas_price: header.minimum_gas_price.value().into(),
            bitcoin_merged_mining_header: Data(header.bitcoin_header.clone()),
            bitcoin_merged_mining_coinbase_transaction: Some(Data(header.coinbase_tx.clone())),
            bitcoin_merged_mining_merkle_proof: Some(Data(header.merkle_proof.clone())),
            hash_for_merged_mining: shown_mining_hash(header),
            paid_fees: header.paid_fees.into(),
            cumulative_difficulty: cumulative.map(Quantity),
            rsk_pte_edges: edges.then(|| header.edges.iter().map(|edge| edge.cast_signed()).collect()),
            base_event: (!header.base_event.is_empty()).then(|| Data(header.base_event.clone())),
        }
    }
}

/// The hash for merged mining, or the mining base hash if the block is not mined yet.
fn shown_mining_hash(header: &Header) -> Option<B256> {
    if header.has_mining_fields() {
        header.hash_for_merged_mining().ok()
    } else {
        Some(header.mining_base_hash())
    }
}
