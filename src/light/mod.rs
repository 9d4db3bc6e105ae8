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
mod meter;
mod outbox;
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
pub use meter::Progress;
pub use outbox::Outbox;
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
