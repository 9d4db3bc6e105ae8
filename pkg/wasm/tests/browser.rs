//! In a window.
#![cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test;

wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);
#[wasm_bindgen_test]
fn v() {
    assert_eq!(rootlight_wasm::version(), "0.1.0");
}
