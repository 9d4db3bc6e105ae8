//! The shared tests in Node.js.
#![cfg(target_arch = "wasm32")]

#[macro_use]
mod common;

shared_tests!();

#[wasm_bindgen_test::wasm_bindgen_test]
fn the_tests_run_in_node_js() {
    assert_eq!(common::place(), "Object");
}
