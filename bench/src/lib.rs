//! Shared code of the benchmarks. docs/benchmarks.md has their results.

pub mod headers;
pub mod ratio;
pub mod recordings;
#[cfg(not(target_arch = "wasm32"))]
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod sync;
