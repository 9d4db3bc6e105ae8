//! The light client: missing facts, the requests that fetch them, the checks that prove them, and header
//! synchronization.

mod backlog;
mod clock;
mod connect;
mod derived;
mod deriving;
mod fault;
mod fetch;
mod floor;
mod header_batch;
mod header_window;
#[cfg(test)]
mod header_window_test;
#[cfg(feature = "node-methods")]
mod index_questions;
mod meter;
mod outbox;
#[cfg(feature = "node-methods")]
mod own_node;
mod pinned_head;
pub mod plan;
pub mod prove;
#[cfg(test)]
mod prove_test;
mod record;
mod sends;
mod store;
mod sync;
mod upstream;
mod upstream_fetch;

pub use clock::Now;
pub(crate) use connect::Branch;
pub use connect::MAX_BRANCH;
pub(crate) use derived::Derived;
pub(crate) use deriving::Deriving;
pub use fault::{SyncCause, SyncFault};
pub use fetch::{Fetch, FetchOutcome, RoutedRequest};
pub use floor::LowWork;
pub use header_batch::{
    Batch, BatchError, MAX_BATCH_BYTES, MAX_BATCH_HEADERS, decode_headers, encode_headers, encode_raw_headers,
};
#[cfg(feature = "node-methods")]
pub(crate) use index_questions::about_transaction;
#[cfg(feature = "node-methods")]
pub use index_questions::{
    AskedBlock, BlockPart, BlockQuestion, INDEX_BLOCK, INDEX_LOGS, INDEX_RECEIPT, INDEX_TRACES,
    INDEX_TRANSACTION, LogQuestion, LogReply, TraceQuestion, TraceReply, hash_of_params, is_index_question,
};
pub use meter::Progress;
pub use outbox::Outbox;
#[cfg(feature = "node-methods")]
pub use own_node::OwnNode;
pub use pinned_head::{ClientConfig, MAX_AGE, PinnedHead, Unproven, UnprovenError};
pub use record::{Evidence, Record};
pub use sends::SEND_GRACE;
pub(crate) use sends::has_taken;
pub(crate) use store::Sent;
pub(crate) use store::Touch;
pub use store::{FactCache, FactStore, Known, Location};
pub use sync::{
    Capabilities, DEFAULT_BATCH, HeaderSync, KeptFault, MAX_PAGE_BYTES, Observation, PAGE_HEADERS, Page,
    REPROVEN, ReadPage, Restoring, SyncOptions, SyncStep, UpstreamState,
};
pub use upstream::{
    MAX_ERROR_TEXT, NO_RESPONSE, OnResponse, RawResponse, RequestFailure, Subject, UpstreamRequest,
    UpstreamResponse, decode_batch, encode_batch, read_batch, subject,
};
pub use upstream_fetch::{AttemptFailure, Cause, FactFailure, FetchTarget, UpstreamFetch};
