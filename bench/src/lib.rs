//! Shared code of the benchmarks. docs/benchmarks.md has their results.

pub mod bitcoin;
#[cfg(not(target_arch = "wasm32"))]
pub mod bitcoin_window;
pub mod headers;
#[cfg(not(target_arch = "wasm32"))]
pub mod proven;
pub mod ratio;
pub mod recordings;
#[cfg(not(target_arch = "wasm32"))]
pub mod state;
#[cfg(not(target_arch = "wasm32"))]
pub mod sync;
#[cfg(not(target_arch = "wasm32"))]
pub mod transfers;
