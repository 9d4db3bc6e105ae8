//! Serving a local chain: the development chain, or a chain that a follower imports and executes.

mod codes;
mod indexing;
mod inline_poll;
mod inline_runs;
mod log_stream;
mod message_run;
mod mined;
mod report;
mod service;
mod state;
mod watchdog;

pub use service::LocalService;
pub use state::{Entropy, LocalOptions, NoChange, host_input};
