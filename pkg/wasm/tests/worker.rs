//! The shared tests in a dedicated worker of headless Chromium.
#![cfg(target_arch = "wasm32")]

#[macro_use]
mod common;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_dedicated_worker);

shared_tests!();

#[wasm_bindgen_test::wasm_bindgen_test]
fn the_tests_run_in_a_dedicated_worker() {
    assert_eq!(common::place(), "DedicatedWorkerGlobalScope");
}
