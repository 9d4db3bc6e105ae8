//! Serving a local chain: the development chain, or a chain that a follower imports and executes.

mod codes;
mod indexing;
mod log_stream;
mod report;
mod service;
mod watchdog;

pub use service::{Entropy, LocalOptions, LocalService, moment};
