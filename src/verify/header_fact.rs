//! Proven facts about headers and blocks.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::fmt;

use super::finding::{Finding, Put, finding};
use super::root_kind::RootKind;
use crate::consensus::Seal;
use crate::types::number::Decimal;
use crate::types::{B256, HeaderVersion, SealedHeader, U256};

/// One proven fact about a header or a block.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeaderFact {
    /// A header whose fields hash to its hash.
    Header(Box<SealedHeader>),
    /// The header is the genesis of the network with this name.
    Genesis(String),
    /// The header has its proof of work (or signature) for this difficulty, and obeys the rules that need no other block.
    Sealed(Seal, U256),
    /// Consecutive headers: each with its proof of work, each the child of the one before.
    Headers {
        /// Number of headers.
        count: usize,
        /// Number of the first block.
        first: u64,
        /// The last header.
        last: Box<SealedHeader>,
    },
    /// The header has this root.
    Root(RootKind, B256),
    /// The number of transactions, which are proven in order. Genesis has none, for which no root is needed.
    Transactions {
        /// Number of transactions.
        count: usize,
        /// Whether the block is the genesis.
        genesis: bool,
    },
    /// The number of senders that were recovered.
    Senders(usize),
    /// The number of uncles: all uncles of the block.
    Uncles(usize),
    /// The number of receipts: all receipts of the block.
    Receipts(usize),
}

impl HeaderFact {
    /// The fact in words.
    pub(super) fn findings(&self) -> Vec<Finding> {
        let one = |what: &str, value: &dyn fmt::Display, rule| vec![finding(what, value, rule)];
        match self {
            Self::Header(header) => {
                let value = format!("{} (block {})", header.hash(), header.number);
                one("block hash", &value, hash_rule(header.shape.version))
            }
            Self::Genesis(network) => one("genesis", network, "the network's known genesis hash"),
            Self::Sealed(seal, difficulty) => sealed(*seal, difficulty),
            Self::Headers { count, first, last } => headers(*count, *first, last),
            Self::Root(kind, root) => one(kind.words(), root, "header"),
            Self::Transactions { count, genesis } => {
                let rule = if *genesis { "genesis" } else { "transactions root of the header" };
                one("transactions", &format_args!("{count} in order"), rule)
            }
            Self::Senders(count) => {
                one("senders", &format_args!("{count} recovered"), "signature of each transaction")
            }
            Self::Uncles(count) => one("uncles", count, "uncles hash of the header, merged mining of each"),
            Self::Receipts(count) => {
                one("receipts", &format_args!("{count}, all of the block"), "receipts root of the header")
            }
        }
    }

    /// Adds the values by name.
    pub(super) fn put_values(&self, put: Put<'_>) {
        match self {
            Self::Header(header) => put_header(header, put),
            Self::Headers { first, last, .. } => {
                put("first", first);
                put_header(last, put);
            }
            Self::Transactions { count, .. } => put("transactions", count),
            Self::Uncles(count) => put("uncles", count),
            Self::Receipts(count) => put("receipts", count),
            Self::Sealed(seal, difficulty) => put_seal(*seal, difficulty, put),
            Self::Genesis(_) | Self::Root(..) | Self::Senders(_) => {}
        }
    }
}

const fn hash_rule(version: HeaderVersion) -> &'static str {
    match version {
        HeaderVersion::V0 => "keccak-256 of the header fields (header version 0)",
        HeaderVersion::V1 => "keccak-256 of the header fields (header version 1)",
        HeaderVersion::V2 => "keccak-256 of the header fields (header version 2)",
    }
}

/// The findings about the proof of a header.
fn sealed(seal: Seal, difficulty: &U256) -> Vec<Finding> {
    let work = match seal {
        Seal::MergedMining => finding(
            "work",
            &format_args!("difficulty {difficulty:#x}"),
            "merged mining: the Bitcoin header meets the target, its coinbase commits to this header",
        ),
        Seal::FallbackSignature => {
            finding("seal", &"signed by a fallback key", "fallback mining (until RSKIP-98)")
        }
    };
    let fields = "gas limit, gas used, extra data, times, edges of parallel transaction lists (RSKIP-144)";
    vec![work, finding("header fields", &fields, "rules that need no other block")]
}

/// A block's work is its difficulty. A signature shows no work.
fn put_seal(seal: Seal, difficulty: &U256, put: Put<'_>) {
    match seal {
        Seal::MergedMining => {
            put("seal", &"mergedMining");
            put("work", &Decimal(difficulty));
        }
        Seal::FallbackSignature => put("seal", &"fallbackSignature"),
    }
}

/// The findings about consecutive headers.
fn headers(count: usize, first: u64, last: &SealedHeader) -> Vec<Finding> {
    let all = format_args!("{count}, blocks {first} to {}", last.number);
    let links = format_args!("the last is {}", last.hash());
    vec![
        finding("headers", &all, "merged mining and header rules of each"),
        finding(
            "links",
            &links,
            "parent hash, number, difficulty, gas limit and minimum gas price from the parent",
        ),
    ]
}

fn put_header(header: &SealedHeader, put: Put<'_>) {
    put("hash", &header.hash());
    put("number", &header.number);
    put("parentHash", &header.parent_hash);
    put("timestamp", &header.timestamp);
    put("difficulty", &Decimal(&header.difficulty.value()));
    put("stateRoot", &header.state_root);
    put("transactionsRoot", &header.transactions_root);
    put("receiptsRoot", &header.receipts_root);
}
