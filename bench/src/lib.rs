//! Shared set-up of the benches. What they found: docs/benchmarks.md.

pub mod headers;
pub mod ratio;
pub mod recordings;
#[cfg(not(target_arch = "wasm32"))]
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod sync;
