//! The light client: what is lacking, how to ask for it, how to prove it, and header synchronization.

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
    decode_headers, encode_headers, Batch, BatchError, MAX_BATCH_BYTES, MAX_BATCH_HEADERS,
};
pub use meter::Progress;
pub use outbox::Outbox;
pub use pin::{Identity, Pin, Unproven, UnprovenError, MAX_AGE};
pub use record::{Evidence, Record};
pub(crate) use store::Sent;
pub(crate) use store::Touch;
pub use store::{FactCache, FactStore, Known, Location};
pub use sync::{
    Capabilities, KeptFault, Observation, Page, ReadPage, Restoring, Sync, SyncOptions, SyncStep,
    UpstreamState, DEFAULT_BATCH, PAGE_HEADERS, REPROVEN,
};
pub use task::{AttemptFailure, Cause, FactFailure, Task, Wanted, MAX_UNCLES};
pub use upstream::{
    decode_batch, encode_batch, read_batch, subject, Answer, CallFailure, Put, Response, Subject,
    UpstreamCall, MAX_ERROR_TEXT, NO_ANSWER,
};
