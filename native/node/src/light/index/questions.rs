//! Questions of a client to its host's index of blocks, and the host's answers. Client and host are one process, so only the
//! contents of an answer can be wrong, not its form.

use alloy_primitives::{Address, B256};
use rootlight::light::UpstreamRequest;
use serde::{Deserialize, Serialize};
use serde_json::{json, value::RawValue};

/// The method of questions to the host's index, which no upstream gets.
const METHOD: &str = "index_question";

/// A question to the host's index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexQuestion {
    /// The logs of a range. The response is a [`LogReply`].
    Logs(LogQuestion),
    /// The traces of a range. The response is a [`TraceReply`].
    Traces(TraceQuestion),
    /// A part of a block below the proven chain. The response is a list of what the method returns, or `null` if the index
    /// does not have it.
    Block(BlockQuestion),
    /// A transaction by its hash, as `eth_getTransactionByHash` gives it.
    Transaction(B256),
    /// The receipt of a transaction by its hash, as `eth_getTransactionReceipt` gives it.
    Receipt(B256),
}

impl IndexQuestion {
    pub(super) fn to_request(&self) -> UpstreamRequest {
        UpstreamRequest::new(METHOD, json!([self]).to_string())
    }

    /// The question in a request; `None` if the request is for upstreams.
    ///
    /// # Errors
    /// The question is malformed.
    pub fn of(request: &UpstreamRequest) -> Option<serde_json::Result<Self>> {
        let read = || serde_json::from_str(&request.params).map(|[question]: [Self; 1]| question);
        (request.method == METHOD).then(read)
    }
}

/// A range of blocks, both ends included, and which of its logs are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogQuestion {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// Any of these contracts; an empty list matches any.
    pub addresses: Vec<Address>,
    /// For each position, any of these topics; an empty list matches any log.
    pub topics: Vec<Vec<B256>>,
    /// Most logs; `None` for any number.
    pub most: Option<usize>,
}

/// The answer of an index to a [`LogQuestion`].
#[derive(Debug, Serialize, Deserialize)]
pub enum LogReply {
    /// All logs.
    All {
        /// Their number.
        count: usize,
        /// A JSON array of log objects, in the order of the chain.
        logs: Box<RawValue>,
    },
    /// There are more logs than were asked for.
    TooMany {
        /// The block whose logs exceed the number.
        at: u64,
    },
    /// The logs take more bytes than an answer may have.
    TooLong {
        /// The block whose logs exceed the number of bytes.
        at: u64,
    },
}

/// A range of blocks, both ends included, and which of its traces are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceQuestion {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// The block up to which the index must answer; it may lack blocks above.
    pub least: u64,
    /// Any of these senders of transactions; an empty list matches any.
    pub senders: Vec<Address>,
    /// Any of these recipients of transactions; an empty list matches any.
    pub recipients: Vec<Address>,
    /// Number of traces that are left out.
    pub after: usize,
    /// Most traces after those.
    pub count: usize,
}

/// The answer of an index to a [`TraceQuestion`].
#[derive(Debug, Serialize, Deserialize)]
pub enum TraceReply {
    /// The traces up to a block.
    Found {
        /// Their number.
        count: usize,
        /// How many of those to leave out were there.
        skipped: usize,
        /// The last block that the index looked at, unless it found as many traces as were asked for.
        last: u64,
        /// A JSON array of trace objects, in the order of the chain.
        traces: Box<RawValue>,
    },
    /// The traces take more bytes than an answer may have.
    TooLong,
}

/// The block that a [`BlockQuestion`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum AskedBlock {
    /// The block at a height.
    Number(u64),
    /// The block with a hash.
    Hash(B256),
    /// The block of a transaction.
    Transaction(B256),
}

/// The part that a [`BlockQuestion`] asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum BlockPart {
    /// The traces of its transactions, as `trace_block`; or of the transaction that is named, as `trace_transaction`.
    Traces,
    /// The number of uncles.
    UncleCount,
    /// The uncle at an index, or `null`.
    Uncle(usize),
}

/// A part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockQuestion {
    /// The block.
    pub block: AskedBlock,
    /// The part.
    pub part: BlockPart,
}
