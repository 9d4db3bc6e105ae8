//! Serving a local chain: the development chain, or one that is followed and re-executed.

mod report;
mod service;

pub use service::{moment, Entropy, LocalOptions, LocalService};
