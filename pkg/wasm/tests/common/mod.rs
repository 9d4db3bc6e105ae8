//! The tests that run in all three environments. Each environment is a crate of its own, because a test runner serves one
//! environment at a time.

use js_sys::Reflect;
use wasm_bindgen::JsValue;

pub mod verify;

/// The class name of the global object, which identifies the environment.
pub fn place() -> String {
    let constructor = Reflect::get(&js_sys::global(), &"constructor".into()).expect("a global object");
    Reflect::get(&constructor, &"name".into())
        .ok()
        .and_then(|name| JsValue::as_string(&name))
        .expect("a name")
}

/// Declares every shared test as a test of the including crate.
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

/// The tests that run in every environment.
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
