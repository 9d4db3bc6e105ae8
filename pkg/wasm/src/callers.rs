//! Messages of the callers of a server in Node.js (`pkg/bin`). Their rights differ: pages of other origins may call fewer methods, and
//! each WebSocket has subscriptions of its own.

use alloc::string::String;
use alloc::sync::Arc;

use js_sys::Function;
use rootlight::rpc::Caller;
use wasm_bindgen::prelude::*;

use crate::client::Client;
use crate::dev::DevChain;

/// Most subscriptions of a WebSocket, as in the native server.
const SUBSCRIPTIONS: usize = 100;

/// The bit of `kind` that says that the caller is a WebSocket. `pkg/bin/server.js` sets both bits.
const SOCKET: u8 = 1;

/// The bit of `kind` that says that a page of another origin may use keys all the same.
const ADMITTED: u8 = 2;

/// A caller, with the limit of batches of the provider's `own` caller. `asker` identifies the caller's address, `number` the HTTP request
/// or the WebSocket; both are whole numbers, which JavaScript passes as `f64`.
fn caller(own: &Caller, origin: Option<String>, asker: f64, number: f64, kind: u8) -> Arc<Caller> {
    let caller = Caller::new(asker as u64, number as u64)
        .from_foreign_page(origin, number as u64)
        .admitting_all_pages(kind & ADMITTED != 0)
        .with_batch_limit(own.batch_limit());
    Arc::new(if kind & SOCKET != 0 { caller.with_subscriptions(SUBSCRIPTIONS) } else { caller })
}

#[wasm_bindgen]
impl Client {
    /// As [`Client::request`], for a message of a caller. `origin` is that of a page that may not call every method.
    #[wasm_bindgen(js_name = requestFrom)]
    pub fn request_from(
        &self,
        origin: Option<String>,
        asker: f64,
        number: f64,
        kind: u8,
        message: &str,
        on_filter: Option<Function>,
    ) -> JsValue {
        self.answer(caller(&self.own(), origin, asker, number, kind), message, on_filter)
    }
}

#[wasm_bindgen]
impl DevChain {
    /// As [`DevChain::request`], for a message of a caller. `origin` is that of a page that may not call every method.
    #[wasm_bindgen(js_name = requestFrom)]
    pub fn request_from(
        &self,
        origin: Option<String>,
        asker: f64,
        number: f64,
        kind: u8,
        message: &str,
        on_filter: Option<Function>,
    ) -> JsValue {
        let Some(own) = self.own() else { return JsValue::UNDEFINED };
        self.answer(caller(&own, origin, asker, number, kind), message, on_filter)
    }
}
