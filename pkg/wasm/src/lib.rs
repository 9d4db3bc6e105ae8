//! Rootlight for browsers and Node.js: a thin face over the core. It turns JavaScript values into bytes and back, and
//! waits; everything that decides what is true is in the core.

#[cfg(feature = "light")]
mod client;
#[cfg(feature = "light")]
mod config;
#[cfg(feature = "dev")]
mod dev;
#[cfg(feature = "light")]
mod driver;
#[cfg(feature = "light")]
mod failure;
#[cfg(feature = "light")]
mod host;
#[cfg(feature = "light")]
mod request;

#[cfg(feature = "verify")]
mod verify;

#[cfg(feature = "light")]
pub use client::Client;
#[cfg(feature = "dev")]
pub use dev::DevChain;
#[cfg(feature = "verify")]
pub use verify::{keccak256, verify_account, verify_receipt};

use wasm_bindgen::prelude::wasm_bindgen;

/// The package's version.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}
