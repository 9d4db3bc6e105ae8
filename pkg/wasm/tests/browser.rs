//! Runs `common` in a browser.
#![cfg(all(target_arch = "wasm32", feature = "dev"))]

mod common;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);
