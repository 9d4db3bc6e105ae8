//! Runs `common` in a browser.
#![cfg(all(target_arch = "wasm32", feature = "dev"))]

mod common;

use wasm_bindgen_test::wasm_bindgen_test;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

#[wasm_bindgen_test]
fn headers_have_the_hashes_of_the_reference_node() {
    common::hashes();
}

#[wasm_bindgen_test]
fn documents_are_verified() {
    common::documents();
}

#[wasm_bindgen_test]
fn the_dispatcher_answers_from_a_development_chain() {
    common::dispatcher();
}
