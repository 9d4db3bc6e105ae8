//! Runs `common` in Node.js.
#![cfg(all(target_arch = "wasm32", feature = "dev"))]

mod common;
