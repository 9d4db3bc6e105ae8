//! Rootlight for browsers and Node.js.

use wasm_bindgen::prelude::wasm_bindgen;

/// The package's version.
#[wasm_bindgen]
#[must_use]
pub fn version() -> String {
    env!("CARGO_PKG_VERSION").into()
}
