//! The shared tests in a window of headless Chromium.
#![cfg(target_arch = "wasm32")]

#[macro_use]
mod common;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

shared_tests!();

#[wasm_bindgen_test::wasm_bindgen_test]
fn the_tests_run_in_a_window() {
    assert_eq!(common::place(), "Window");
}
