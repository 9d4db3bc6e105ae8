//! Serving a local chain: the development chain, or one that is followed and re-executed.

mod service;

pub use service::{Entropy, LocalOptions, LocalService};
