//! The interface of an index of blocks: the questions that a light client asks it, and its unproven answers.
//! `native/cluster` implements it over PostgreSQL.

use std::fmt;

use alloy_primitives::{Address, B256};
use futures::future::BoxFuture;
use rootlight_limits::budget::Reservation;
use serde_json::value::RawValue;

/// An index of blocks that a light client asks for answers without proof.
pub trait BlockIndex: fmt::Debug + Send + Sync {
    /// The logs of a range.
    fn logs(&self, question: LogQuestion) -> BoxFuture<'_, IndexAnswer<LogReply>>;

    /// The traces of a range.
    fn traces(&self, question: TraceQuestion) -> BoxFuture<'_, IndexAnswer<TraceReply>>;

    /// A part of a block below the proven chain, as a method gives it; `None` if the index does not have it.
    fn block_part(&self, question: BlockQuestion) -> BoxFuture<'_, IndexAnswer<Option<Box<RawValue>>>>;

    /// A block's data about a transaction, in the form of a method's result; `None` if the index does not have the transaction.
    fn transaction_part(
        &self,
        part: TransactionPart,
        transaction: B256,
    ) -> BoxFuture<'_, IndexAnswer<Option<Box<RawValue>>>>;
}

/// The answer of an index with the reservation of its bytes, or the reason why there is none.
pub type IndexAnswer<T> = Result<(T, Reservation), String>;

/// The part of a block about a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransactionPart {
    /// The transaction, as `eth_getTransactionByHash`.
    Transaction,
    /// Its receipt, as `eth_getTransactionReceipt`.
    Receipt,
}

/// Logs of a range of blocks, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogQuestion {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// Any of these contracts; an empty list matches any.
    pub addresses: Vec<Address>,
    /// For each position, any of these topics; an empty list matches any log.
    pub topics: Vec<Vec<B256>>,
    /// Most logs that the answer may have; `None` for any number.
    pub most: Option<usize>,
}

/// The answer of an index to a [`LogQuestion`].
#[derive(Debug)]
pub enum LogReply {
    /// All logs.
    All {
        /// Number of the logs.
        count: usize,
        /// A JSON array of log objects, in the order of the chain.
        logs: Box<RawValue>,
    },
    /// There are more logs than [`LogQuestion::most`].
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

/// Traces of a range of blocks, both ends included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceQuestion {
    /// The first block.
    pub from: u64,
    /// The last block.
    pub to: u64,
    /// The block up to which the index must answer; it may lack blocks above.
    pub must_reach: u64,
    /// Any of these senders of transactions; an empty list matches any.
    pub senders: Vec<Address>,
    /// Any of these recipients of transactions; an empty list matches any.
    pub recipients: Vec<Address>,
    /// Number of traces to leave out at the begin.
    pub after: usize,
    /// Most traces after those that are left out.
    pub count: usize,
}

/// The answer of an index to a [`TraceQuestion`].
#[derive(Debug)]
pub enum TraceReply {
    /// The traces up to a block.
    Found {
        /// Number of the traces.
        count: usize,
        /// Number of traces that were left out.
        skipped: usize,
        /// The last block that the index has searched. If it found [`TraceQuestion::count`] traces, the answer is complete and the
        /// number has no meaning.
        last: u64,
        /// A JSON array of trace objects, in the order of the chain.
        traces: Box<RawValue>,
    },
    /// The traces take more bytes than an answer may have.
    TooLong,
}

/// The block that a [`BlockQuestion`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AskedBlock {
    /// The block at a height.
    Number(u64),
    /// The block with a hash.
    Hash(B256),
    /// The block of a transaction.
    Transaction(B256),
}

/// The part that a [`BlockQuestion`] asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockPart {
    /// The traces of the block's transactions, as `trace_block`; or those of the named transaction, as `trace_transaction`.
    Traces,
    /// The number of uncles.
    UncleCount,
    /// The uncle at an index, or `null`.
    Uncle(usize),
}

/// A question for a part of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockQuestion {
    /// The block.
    pub block: AskedBlock,
    /// The part.
    pub part: BlockPart,
}
