//! The tests of all three places. Each place is a crate of its own, since a test runner serves one place at a time.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

pub mod verify;

/// The name of the global object's class, which tells where this runs.
pub fn place() -> String {
    let constructor = Reflect::get(&js_sys::global(), &"constructor".into()).expect("a global object");
    Reflect::get(&constructor, &"name".into())
        .ok()
        .and_then(|name| JsValue::as_string(&name))
        .expect("a name")
}

/// Lists every shared test as one of the including crate.
macro_rules! everywhere {
    ($($module:ident :: $name:ident),* $(,)?) => {
        $(
            #[wasm_bindgen_test::wasm_bindgen_test]
            fn $name() {
                common::$module::$name();
            }
        )*
    };
}

/// The tests that run in every place.
macro_rules! shared_tests {
    () => {
        everywhere! {
            verify::a_receipt_is_proven,
            verify::every_changed_digit_of_a_receipt_is_refused,
            verify::an_account_is_proven,
            verify::a_false_claim_is_refused,
            verify::keccak_is_keccak,
        }
    };
}
