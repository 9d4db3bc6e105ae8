//! Tests of the sidecar: proofs beside a node that has none. Those on a recorded RocksDB store need the feature `rskj-store`.

#[path = "../common/mod.rs"]
mod common;

mod beside;
mod peers;
#[cfg(feature = "rskj-store")]
mod recorded;
mod unsimulated;
#[cfg(feature = "rskj-store")]
mod written;
