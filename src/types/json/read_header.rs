//! Headers and blocks from the JSON of `eth_getBlockBy*` and `eth_getUncleBy*`, which is not trusted: a header is rebuilt until it has the
//! claimed hash.

use alloc::vec::Vec;

use alloy_primitives::{B256, Bloom, Bytes, U256};

use super::error::JsonError;
use super::field::{JsonField, MAX_HEADER_FIELD_BYTES};
use super::read_transaction::transaction_from_json;
use super::slots::{RawMember, slots};
use crate::types::error::{FieldError, FieldRule, FirstError};
use crate::types::header::{Header, HeaderShape, HeaderVersion, SealedHeader};
use crate::types::number::{RawUint, SignedUint};
use crate::types::transaction::Transaction;

/// Most uncles of a block. The JSON of an uncle does not list its own uncles, so their number is tried.
const MAX_HIDDEN_UNCLES: u32 = 10;
/// Length of the difficulty in the genesis files of the public networks, leading zeros included.
const GENESIS_DIFFICULTY_BYTES: u32 = 5;
/// Longest form of the genesis difficulty that is tried, in bytes.
const MAX_GENESIS_DIFFICULTY_BYTES: u32 = 32;

slots! {
    struct RawBlock {
        hash: "hash",
        parent_hash: "parentHash",
        sha3_uncles: "sha3Uncles",
        miner: "miner",
        state_root: "stateRoot",
        transactions_root: "transactionsRoot",
        receipts_root: "receiptsRoot",
        logs_bloom: "logsBloom",
        difficulty: "difficulty",
        number: "number",
        gas_limit: "gasLimit",
        gas_used: "gasUsed",
        timestamp: "timestamp",
        extra_data: "extraData",
        paid_fees: "paidFees",
        minimum_gas_price: "minimumGasPrice",
        uncles: "uncles",
        rsk_pte_edges: "rskPteEdges",
        base_event: "baseEvent",
        bitcoin_merged_mining_header: "bitcoinMergedMiningHeader",
        bitcoin_merged_mining_merkle_proof: "bitcoinMergedMiningMerkleProof",
        bitcoin_merged_mining_coinbase_transaction: "bitcoinMergedMiningCoinbaseTransaction",
        transactions: "transactions",
        total_difficulty: "totalDifficulty",
        size: "size",
    }
}

/// A block as a node shows it. Only the header is checked, against the claimed hash; the caller checks the
/// rest against the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonBlock {
    /// The header.
    pub header: SealedHeader,
    /// Hashes of the uncles, as stated.
    pub uncles: Vec<B256>,
    /// Transactions, as stated.
    pub transactions: JsonTransactions,
    /// Total difficulty, as stated.
    pub total_difficulty: Option<U256>,
    /// Length of the block's RLP in bytes, as stated.
    pub size: Option<u64>,
}

/// The transactions of a block in one of two forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonTransactions {
    /// Hashes only.
    Hashes(Vec<B256>),
    /// Whole transactions, each rebuilt to the hash it is shown with.
    Full(Vec<Transaction>),
}

impl JsonTransactions {
    /// The whole transactions. `None` if the block lists hashes only; an empty list counts as whole.
    pub fn into_full(self) -> Option<Vec<Transaction>> {
        match self {
            Self::Full(transactions) => Some(transactions),
            Self::Hashes(hashes) => hashes.is_empty().then(Vec::new),
        }
    }
}

/// Rebuilds a header (of a block or an uncle) from its JSON.
///
/// `claimed` is the hash the header must have; without it, the `hash` field of the JSON is used. The possible
/// values of what the JSON does not show are tried: the byte forms of gas limit, zero minimum gas price and
/// genesis difficulty, and, if no uncles are listed, the uncle count. The JSON never shows a UMM root, so a
/// header with a non-empty one cannot be rebuilt.
pub fn header_from_json(
    json: &str,
    claimed: Option<B256>,
    shape_of: &dyn Fn(u64) -> HeaderShape,
) -> Result<SealedHeader, JsonError> {
    let raw = RawBlock::from_json(json).map_err(|error| JsonError::of("block", &error))?;
    raw.header(claimed, shape_of)
}

/// Rebuilds a block from its JSON. `chain_id` is used for transactions from old nodes (see
/// [`transaction_from_json`]).
pub fn block_from_json(
    json: &str,
    claimed: Option<B256>,
    shape_of: &dyn Fn(u64) -> HeaderShape,
    chain_id: u64,
) -> Result<JsonBlock, JsonError> {
    let raw = RawBlock::from_json(json).map_err(|error| JsonError::of("block", &error))?;
    let header = raw.header(claimed, shape_of)?;
    raw.block(header, chain_id)
}

/// Reads a block whose header was decoded from its raw encoding, because the JSON of some blocks does not show enough to rebuild
/// the header.
pub fn block_with_header(json: &str, header: SealedHeader, chain_id: u64) -> Result<JsonBlock, JsonError> {
    let raw = RawBlock::from_json(json).map_err(|error| JsonError::of("block", &error))?;
    raw.block(header, chain_id)
}

impl RawBlock<'_> {
    fn block(&self, header: SealedHeader, chain_id: u64) -> Result<JsonBlock, JsonError> {
        let total = JsonField::new("block.totalDifficulty", self.total_difficulty);
        let size = JsonField::new("block.size", self.size);
        Ok(JsonBlock {
            header,
            uncles: self.uncle_hashes()?,
            transactions: self.transactions(chain_id)?,
            total_difficulty: total.is_present().then(|| total.uint()).transpose()?,
            size: size.is_present().then(|| size.uint63()).transpose()?,
        })
    }

    fn header(
        &self,
        claimed: Option<B256>,
        shape_of: &dyn Fn(u64) -> HeaderShape,
    ) -> Result<SealedHeader, JsonError> {
        let claimed = match claimed {
            Some(hash) => hash,
            None => JsonField::new("block.hash", self.hash).hash()?,
        };
        let header = self.fields(shape_of)?;
        Candidates::of(&header, self).search(header, claimed)
    }

    /// The header with the most likely byte form of each field.
    fn fields(&self, shape_of: &dyn Fn(u64) -> HeaderShape) -> Result<Header, JsonError> {
        let number = JsonField::new("block.number", self.number).uint63()?;
        let shape = shape_of(number);
        let edges = shape.edges && shape.version != HeaderVersion::V0;
        let price = JsonField::new("block.minimumGasPrice", self.minimum_gas_price);
        let mut read = FieldReader::default();
        let bloom =
            read.0.of(JsonField::new("block.logsBloom", self.logs_bloom).fixed::<256>().map(Bloom::from));
        let header = Header {
            shape,
            parent_hash: read.hash("block.parentHash", self.parent_hash),
            uncles_hash: read.hash("block.sha3Uncles", self.sha3_uncles),
            coinbase: read.0.of(miner(JsonField::new("block.miner", self.miner))),
            state_root: read.hash("block.stateRoot", self.state_root),
            transactions_root: read.hash("block.transactionsRoot", self.transactions_root),
            receipts_root: read.hash("block.receiptsRoot", self.receipts_root),
            logs_bloom: bloom,
            difficulty: SignedUint::new(read.uint("block.difficulty", self.difficulty)),
            number,
            gas_limit: RawUint::signed_minimal(read.uint("block.gasLimit", self.gas_limit)),
            gas_used: read.uint63("block.gasUsed", self.gas_used),
            timestamp: read.uint63("block.timestamp", self.timestamp),
            extra_data: read.data("block.extraData", self.extra_data),
            paid_fees: read.uint("block.paidFees", self.paid_fees),
            minimum_gas_price: if price.is_present() {
                SignedUint::new(read.0.of(price.uint()))
            } else {
                SignedUint::ABSENT
            },
            uncle_count: read.0.of(self.stated_uncle_count()),
            umm_root: Default::default(),
            edges: if edges { read.0.of(self.edges()) } else { Vec::new() },
            base_event: if shape.version == HeaderVersion::V2 {
                read.data("block.baseEvent", self.base_event)
            } else {
                Default::default()
            },
            bitcoin_header: read.data("block.bitcoinMergedMiningHeader", self.bitcoin_merged_mining_header),
            merkle_proof: read
                .data("block.bitcoinMergedMiningMerkleProof", self.bitcoin_merged_mining_merkle_proof),
            coinbase_tx: read.data(
                "block.bitcoinMergedMiningCoinbaseTransaction",
                self.bitcoin_merged_mining_coinbase_transaction,
            ),
        };
        read.0.done()?;
        Ok(header)
    }

    /// The hashes of the uncles, as stated.
    fn uncle_hashes(&self) -> Result<Vec<B256>, FieldError> {
        JsonField::new("block.uncles", self.uncles).elements()?.iter().map(JsonField::hash).collect()
    }

    /// The number of uncles that are listed.
    fn stated_uncle_count(&self) -> Result<u32, FieldError> {
        let uncles = JsonField::new("block.uncles", self.uncles);
        let count = uncles.elements()?.len();
        match i32::try_from(count) {
            Ok(count) => Ok(count.unsigned_abs()),
            Err(_) => Err(uncles.error(FieldRule::TooLarge(31))),
        }
    }

    /// The sublist edges; the reference node prints them as signed 16-bit values.
    fn edges(&self) -> Result<Vec<u16>, FieldError> {
        let field = JsonField::new("block.rskPteEdges", self.rsk_pte_edges);
        let items = field.elements()?;
        if items.len() > MAX_HEADER_FIELD_BYTES / 2 {
            let limit = MAX_HEADER_FIELD_BYTES / 2;
            return Err(field.error(FieldRule::TooLong { limit, found: items.len() }));
        }
        items
            .iter()
            .map(|item| {
                let not_a_number = || item.error(FieldRule::NotANumber);
                if let Some(negative) = item.json()?.strip_prefix('-') {
                    let value: u16 = negative.parse().map_err(|_| not_a_number())?;
                    let in_range = value <= i16::MIN.unsigned_abs();
                    return if in_range { Ok(value.wrapping_neg()) } else { Err(not_a_number()) };
                }
                u16::try_from(item.uint()?).map_err(|_| item.error(FieldRule::TooLarge(16)))
            })
            .collect()
    }

    fn transactions(&self, chain_id: u64) -> Result<JsonTransactions, JsonError> {
        let items = JsonField::new("block.transactions", self.transactions).elements()?;
        if items.first().is_none_or(JsonField::is_string) {
            let hashes: Result<Vec<B256>, FieldError> = items.iter().map(JsonField::hash).collect();
            return Ok(JsonTransactions::Hashes(hashes?));
        }
        items
            .iter()
            .map(|item| transaction_from_json(item.json()?, None, chain_id))
            .collect::<Result<_, _>>()
            .map(JsonTransactions::Full)
    }
}

/// Reads fields by their types, and keeps the first error.
#[derive(Default)]
struct FieldReader(FirstError);

impl FieldReader {
    fn hash(&mut self, name: &'static str, slot: RawMember<'_>) -> B256 {
        self.0.of(JsonField::new(name, slot).hash())
    }

    fn uint(&mut self, name: &'static str, slot: RawMember<'_>) -> U256 {
        self.0.of(JsonField::new(name, slot).uint())
    }

    fn uint63(&mut self, name: &'static str, slot: RawMember<'_>) -> u64 {
        self.0.of(JsonField::new(name, slot).uint63())
    }

    /// Bytes; none if the field is missing.
    fn data(&mut self, name: &'static str, slot: RawMember<'_>) -> Bytes {
        self.0.of(JsonField::new(name, slot).data_or_empty(MAX_HEADER_FIELD_BYTES))
    }
}

/// The fee receiver: an address, or `0x` for none.
fn miner(field: JsonField<'_>) -> Result<Option<alloy_primitives::Address>, FieldError> {
    if field.is_present() && field.json()? == "\"0x\"" {
        return Ok(None);
    }
    field.address().map(Some)
}

/// The possible values of the fields whose value or byte form the JSON does not show.
struct Candidates {
    uncle_counts: core::ops::RangeInclusive<u32>,
    gas_limits: Vec<RawUint>,
    prices: Vec<SignedUint>,
    difficulties: Vec<SignedUint>,
}

impl Candidates {
    fn of(header: &Header, raw: &RawBlock<'_>) -> Self {
        let listed = header.uncle_count;
        // Only the JSON of an uncle hides its uncle count, and genesis cannot be an uncle.
        let last = if listed == 0 && header.number != 0 { MAX_HIDDEN_UNCLES } else { listed };
        let mut gas_limits = alloc::vec![header.gas_limit];
        let unsigned = RawUint::minimal(header.gas_limit.value());
        if unsigned != header.gas_limit {
            gas_limits.push(unsigned);
        }
        let mut prices = alloc::vec![header.minimum_gas_price];
        if header.minimum_gas_price == SignedUint::new(U256::ZERO) {
            prices.push(SignedUint::ABSENT);
        }
        let mut difficulties = alloc::vec![header.difficulty];
        if header.difficulty == SignedUint::new(U256::ZERO) && raw.difficulty.is_some() {
            difficulties.push(SignedUint::ABSENT);
        }
        if header.number == 0 {
            let value = header.difficulty.value();
            let others = (2..=MAX_GENESIS_DIFFICULTY_BYTES).filter(|n| *n != GENESIS_DIFFICULTY_BYTES);
            let lengths = core::iter::once(GENESIS_DIFFICULTY_BYTES).chain(others);
            difficulties.extend(lengths.map(|len| SignedUint::padded(value, len)));
            difficulties.dedup();
        }
        Self { uncle_counts: listed..=last, gas_limits, prices, difficulties }
    }

    /// Tries the values until the header has the claimed hash, the likeliest values first.
    fn search(&self, mut header: Header, claimed: B256) -> Result<SealedHeader, JsonError> {
        let mut tried = 0usize;
        for uncle_count in self.uncle_counts.clone() {
            header.uncle_count = uncle_count;
            for gas_limit in &self.gas_limits {
                header.gas_limit = *gas_limit;
                for price in &self.prices {
                    header.minimum_gas_price = *price;
                    for difficulty in &self.difficulties {
                        header.difficulty = *difficulty;
                        tried = tried.saturating_add(1);
                        let hash = header.hash();
                        if hash == claimed {
                            return Ok(SealedHeader::from_parts(header, hash));
                        }
                    }
                }
            }
        }
        Err(JsonError::Hash { object: "header", claimed, tried })
    }
}
