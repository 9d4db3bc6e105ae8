//! Serving a local chain: the development chain, or one that is followed and re-executed.

mod report;
mod service;
mod watchdog;

pub use service::{moment, Entropy, LocalOptions, LocalService};
