//! The index of a service on many machines: blocks, transactions, receipts, logs and traces of a Rootstock network in PostgreSQL.
//!
//! The process `rootlight index` loads the index: [`Loader`] takes blocks from a [`BlockSource`] and gives them to a [`Writer`],
//! which stores each batch in one transaction with its progress. Any number of processes read the index ([`IndexReader`]).
//!
//! Every stored body and its receipts were checked against the block's header ([`MatchedBlock`]); whether the header
//! itself is proven is stored with the block ([`Proof`]). An index saves work. Rows that a reader gets are candidates: a server that
//! promises proven answers checks them against headers that it has verified itself, so an index never raises the level of an answer.
#![cfg_attr(docsrs, feature(doc_cfg))]
// Bytes from outside must never panic: nothing here may unwrap, index or overflow unchecked.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::arithmetic_side_effects,
        clippy::todo,
        clippy::unimplemented
    )
)]

mod backfill;
mod block;
mod connect;
mod connection;
mod context;
mod copy;
mod error;
mod loader;
mod logs;
mod lookup;
mod numeric;
mod partition;
mod reader;
mod rows;
mod schema;
mod source;
mod state;
mod tail;
mod trace;
mod trace_rows;
mod traced;
mod traces;
// Helpers for the tests of this crate and of `native/cli`, which may panic.
#[cfg(feature = "testkit")]
#[allow(clippy::expect_used, clippy::arithmetic_side_effects)]
pub mod testkit;
mod writer;

pub use block::{MatchedBlock, Proof};
pub use connect::Database;
pub use context::{LoadError, LoadEvent, LoaderOptions, Observer};
pub use error::{BlockError, IndexError, TraceError};
pub use loader::Loader;
pub use logs::{IndexedLog, LogStream};
pub use lookup::IndexedBlock;
pub use reader::{IndexReader, IndexStatus, ReaderOptions};
pub use schema::known_version;
pub use source::{BlockSource, SourceBlock, SourceError};
pub use state::PartitionRange;
pub use trace::{BlockTraces, MAX_BLOCK_TRACE_BYTES, MAX_BLOCK_TRACES, Trace, TraceKind, TraceOutcome};
pub use traces::{FoundTraces, IndexedTrace, TraceFilter, TraceRange, TracedBlock};
pub use writer::{Appended, MAX_REORGANISATION, PARTITION_BLOCKS, Setup, SharedWriter, Writer};
