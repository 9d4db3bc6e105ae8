//! The light client: missing facts, the requests that fetch them, the checks that prove them, and header
//! synchronization.
//!
//! A missing fact goes through these files: `plan` (which fetches), `fetch` and `upstream_fetch` (which requests, to which
//! upstream), `upstream` (JSON-RPC), `prove` (the checks), `fact_store` (proven facts). `sync` follows the header chain, and
//! `pinned_head` is its state as one message sees it.
//!
//! Beside them, `record` and `hedges` measure upstreams, `sends` and `outbox` care for sent transactions, `connect` joins side blocks to
//! the chain, `work_floor` and `bitcoin` judge the chain's work, and `call_cache` keeps what calls have computed.

pub mod bitcoin;
mod call_cache;
mod clock;
mod connect;
mod fact_store;
mod fault;
mod fetch;
mod header_batch;
mod header_window;
#[cfg(test)]
mod header_window_test;
mod hedges;
mod message_call_cache;
mod meter;
mod outbox;
mod pinned_head;
pub mod plan;
pub mod prove;
#[cfg(test)]
mod prove_test;
mod record;
mod sends;
mod sync;
mod uncle_backlog;
mod upstream;
mod upstream_fetch;
mod work_floor;

pub(crate) use call_cache::CallCache;
pub use clock::Now;
pub(crate) use connect::ConnectOutcome;
pub use connect::MAX_BRANCH;
pub(crate) use fact_store::SentTransaction;
pub(crate) use fact_store::TouchedKey;
pub use fact_store::{FactCache, FactStore, KnownFacts, Location};
pub use fault::{SyncCause, SyncFault};
pub use fetch::{Fetch, FetchOutcome};
pub use header_batch::{
    Batch, BatchError, MAX_BATCH_BYTES, MAX_BATCH_HEADERS, decode_headers, encode_headers, encode_raw_headers,
};
pub use hedges::Hedges;
pub(crate) use message_call_cache::MessageCallCache;
pub use meter::Progress;
pub use outbox::Outbox;
pub use pinned_head::{ClientConfig, MAX_AGE, PinnedHead, UnprovenError, UnprovenPolicy};
pub use record::{Evidence, UpstreamRecord};
pub use sends::SEND_GRACE;
pub(crate) use sends::has_taken;
pub use sync::{
    BitcoinDates, Capabilities, HeaderPage, HeaderStoreFault, HeaderSync, MAX_PAGE_BYTES, Observation,
    PAGE_HEADERS, ProvenMark, REPROVEN, ReadPage, Restoring, SyncOptions, SyncStep, UpstreamState,
    WINDOW_PAGES, WindowJudge, WindowRecord, WindowRecordError, WindowVerdict,
};
pub use upstream::{
    MAX_ERROR_TEXT, NO_RESPONSE, OnResponse, RawResponse, RequestFailure, ResponseSubject, UpstreamRequest,
    UpstreamResponse, decode_batch, encode_batch, read_batch, subject,
};
pub use upstream_fetch::{AttemptFailure, Cause, FactFailure, FetchTarget, UpstreamFetch};
pub use work_floor::LowWork;
