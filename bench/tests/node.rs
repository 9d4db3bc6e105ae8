//! Runs `common` in Node.js.
#![cfg(target_arch = "wasm32")]

mod common;

#[wasm_bindgen_test::wasm_bindgen_test]
fn headers() {
    common::report("Node.js");
}
