//! The light client: what is lacking, how to ask for it, how to prove it, and header synchronization.

mod fact;
mod fault;
mod header_window;
pub mod offline;
mod pin;
pub mod plan;
pub mod prove;
mod store;
mod sync;
mod task;
mod upstream;

pub use fact::{BlockRef, Fact, Facts};
pub use fault::{SyncCause, SyncFault};
pub use pin::{Identity, Pin};
pub use store::{FactCache, FactStore, Known, Location};
pub use sync::{Sync, SyncStep, DEFAULT_BATCH};
pub use task::{AttemptFailure, Cause, FactFailure, Task, Wanted, MAX_UNCLES};
pub use upstream::{decode_batch, encode_batch, Answer, CallFailure, UpstreamCall, MAX_ERROR_TEXT};
