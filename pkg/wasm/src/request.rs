//! EIP-1193 calls to JSON-RPC messages, and their answers back.

use js_sys::{Object, Reflect, JSON};
use wasm_bindgen::JsValue;

use crate::failure::{failure, from_answer, INTERNAL, INVALID_REQUEST};

/// The JSON-RPC request for what the caller passed.
pub(crate) fn message(call: &JsValue) -> Result<String, JsValue> {
    let unusable = |reason: &str| failure(INVALID_REQUEST, reason);
    if !call.is_object() {
        return Err(unusable("request takes an object with method and params"));
    }
    let request = Object::new();
    Reflect::set(&request, &"jsonrpc".into(), &"2.0".into())?;
    Reflect::set(&request, &"id".into(), &1.into())?;
    for name in ["method", "params"] {
        Reflect::set(&request, &name.into(), &Reflect::get(call, &name.into())?)?;
    }
    let text =
        JSON::stringify(&request).map_err(|_| unusable("method and params must be representable as JSON"))?;
    text.as_string().ok_or_else(|| unusable("method and params must be representable as JSON"))
}

/// The result of a JSON-RPC answer, or its error as an `Error`.
pub(crate) fn result(answer: &str) -> Result<JsValue, JsValue> {
    let answer = JSON::parse(answer).map_err(|_| failure(INTERNAL, "the answer is no JSON"))?;
    let error = Reflect::get(&answer, &"error".into())?;
    if error.is_undefined() {
        Reflect::get(&answer, &"result".into())
    } else {
        Err(from_answer(&error))
    }
}
