//! The shared tests in Node.js.
#![cfg(target_arch = "wasm32")]

#[macro_use]
mod common;

shared_tests!();

#[wasm_bindgen_test::wasm_bindgen_test]
fn this_is_the_place() {
    assert_eq!(common::place(), "Object");
}
