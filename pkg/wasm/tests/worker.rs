//! The shared tests in a dedicated worker of headless Chromium.
#![cfg(target_arch = "wasm32")]

#[macro_use]
mod common;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

shared_tests!();

#[wasm_bindgen_test::wasm_bindgen_test]
fn this_is_the_place() {
    assert_eq!(common::place(), "DedicatedWorkerGlobalScope");
}
