//! Errors as EIP-1193 wants them: `Error` objects with `code` and `data`.

use js_sys::{Error, Reflect};
use wasm_bindgen::JsValue;

/// EIP-1193: the provider is not connected to any chain.
pub(crate) const DISCONNECTED: i32 = 4900;

/// JSON-RPC: the request itself is unusable.
pub(crate) const INVALID_REQUEST: i32 = -32600;

/// JSON-RPC: something broke on our side.
pub(crate) const INTERNAL: i32 = -32603;

/// What the server answers for a revert.
const REVERTED_ON_SERVER: i32 = -32015;

/// What wallets expect for a revert; some client libraries decode its reason for this code only.
const REVERTED: i32 = 3;

/// An `Error` with a code.
pub(crate) fn failure(code: i32, message: &str) -> JsValue {
    with_data(code, message, &JsValue::UNDEFINED)
}

/// An `Error` from the `error` member of a JSON-RPC answer.
pub(crate) fn from_answer(error: &JsValue) -> JsValue {
    let member = |name: &str| Reflect::get(error, &name.into()).unwrap_or(JsValue::UNDEFINED);
    let code = member("code").as_f64().map_or(INTERNAL, |code| code as i32);
    let code = if code == REVERTED_ON_SERVER { REVERTED } else { code };
    with_data(code, &member("message").as_string().unwrap_or_default(), &member("data"))
}

fn with_data(code: i32, message: &str, data: &JsValue) -> JsValue {
    let error: JsValue = Error::new(message).into();
    // Setting a member of an object made here cannot fail.
    let _ = Reflect::set(&error, &"code".into(), &code.into());
    if !data.is_undefined() {
        let _ = Reflect::set(&error, &"data".into(), data);
    }
    error
}
