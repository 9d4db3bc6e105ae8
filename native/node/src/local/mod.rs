//! Serving a local chain: the development chain, or a chain that a follower imports and executes.

mod attempts;
mod codes;
mod indexing;
mod job;
mod log_stream;
mod parts;
mod polled;
mod report;
mod service;
mod watchdog;

pub use parts::{Entropy, LocalOptions, moment};
pub use service::LocalService;
