//! The light client: missing facts, the requests that fetch them, the checks that prove them, and header
//! synchronization.

mod backlog;
mod base64;
mod clock;
mod connect;
mod errand;
mod fact;
mod fault;
mod floor;
mod header_batch;
mod header_window;
#[cfg(test)]
mod header_window_test;
mod lz4;
mod meter;
mod outbox;
mod pin;
pub mod plan;
pub mod prove;
#[cfg(test)]
mod prove_test;
mod record;
mod store;
mod sync;
mod task;
mod upstream;

pub use clock::Now;
pub(crate) use connect::Branch;
pub use connect::MAX_BRANCH;
pub use errand::{Errand, Question, Settled};
pub(crate) use fact::facts;
pub use fact::{BlockRef, Fact, Facts};
pub use fault::{SyncCause, SyncFault};
pub use floor::LowWork;
pub use header_batch::{
    Batch, BatchError, MAX_BATCH_BYTES, MAX_BATCH_HEADERS, decode_headers, encode_headers,
};
pub use meter::Progress;
pub use outbox::Outbox;
pub use pin::{Identity, MAX_AGE, Pin, Unproven, UnprovenError};
pub use record::{Evidence, Record};
pub(crate) use store::Sent;
pub(crate) use store::Touch;
pub use store::{FactCache, FactStore, Known, Location};
pub use sync::{
    Capabilities, DEFAULT_BATCH, KeptFault, Observation, PAGE_HEADERS, Page, REPROVEN, ReadPage, Restoring,
    Sync, SyncOptions, SyncStep, UpstreamState,
};
pub use task::{AttemptFailure, Cause, FactFailure, MAX_UNCLES, Task, Wanted};
pub use upstream::{
    Answer, CallFailure, MAX_ERROR_TEXT, NO_ANSWER, Put, Response, Subject, UpstreamCall, decode_batch,
    encode_batch, read_batch, subject,
};
