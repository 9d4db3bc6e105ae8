//! Exchanges over HTTP, for upstreams that are given by their address: `fetch` by gloo-net, its objects by web-sys. The limits are
//! those of `httpTransport` in `pkg/transport.js`, the transport for programs that need options of their own.

use gloo_net::http::{Request, Response};
use js_sys::{Date, Error, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{
    AbortSignal, Headers, ReadableStreamDefaultReader, ReferrerPolicy, RequestCache, RequestCredentials,
    RequestInit, RequestRedirect,
};

/// Time limit of one exchange, in milliseconds. A batch of blocks from a slow node takes seconds.
const TIMEOUT: u32 = 20_000;

/// Size limit of one response, in bytes. A batch of 50 full blocks is smaller.
const MAX_BYTES: u32 = 32 * 1024 * 1024;

#[wasm_bindgen]
extern "C" {
    /// What reading from a stream gives.
    type Part;
    #[wasm_bindgen(method, getter, structural)]
    fn done(this: &Part) -> bool;
    #[wasm_bindgen(method, getter, structural)]
    fn value(this: &Part) -> Uint8Array;
}

/// Sends a JSON-RPC request to an address without user and password, and resolves to the bytes of the response. Rejects with
/// an error that says why there is none; that of a busy node has `retryAfter`, the seconds to wait, or null if the node names no
/// time.
#[wasm_bindgen]
pub async fn post(
    address: String,
    authorization: Option<String>,
    body: String,
) -> Result<Uint8Array, JsValue> {
    let request = Request::from(request(&address, authorization, &body)?);
    let response = request.send().await.map_err(reason)?;
    // Nodes send errors with these two.
    if matches!(response.status(), 200 | 400) {
        return read(&response).await;
    }
    if let Some(body) = response.body() {
        // The status says enough, whether or not the rest can be refused.
        let _ = JsFuture::from(body.cancel()).await;
    }
    Err(failed(&response).into())
}

fn request(address: &str, authorization: Option<String>, body: &str) -> Result<web_sys::Request, JsValue> {
    let headers = Headers::new()?;
    headers.set("content-type", "application/json")?;
    if let Some(authorization) = authorization {
        headers.set("authorization", &authorization)?;
    }
    let options = RequestInit::new();
    options.set_method("POST");
    options.set_headers(&headers);
    options.set_body(&body.into());
    options.set_signal(Some(&AbortSignal::timeout_with_u32(TIMEOUT)));
    options.set_cache(RequestCache::NoStore);
    options.set_credentials(RequestCredentials::Omit);
    options.set_redirect(RequestRedirect::Error);
    options.set_referrer_policy(ReferrerPolicy::NoReferrer);
    web_sys::Request::new_with_str_and_init(address, &options)
}

/// The error of an exchange that failed.
fn reason(error: gloo_net::Error) -> JsValue {
    let text = match error {
        gloo_net::Error::JsError(error) => error.message,
        gloo_net::Error::GlooError(text) => text,
    };
    Error::new(&text).into()
}

/// The error for an HTTP status.
fn failed(response: &Response) -> Error {
    let status = response.status();
    let error = Error::new(&format!("HTTP status {status}"));
    if matches!(status, 429 | 503) {
        let after = response.headers().get("retry-after").unwrap_or_default();
        let seconds = JsValue::from_str(&after).unchecked_into_f64();
        let pause = if seconds.is_nan() { (Date::parse(&after) - Date::now()) / 1000.0 } else { seconds };
        let pause = if pause > 0.0 { pause.ceil().into() } else { JsValue::NULL };
        // An error object takes any property.
        let _ = Reflect::set(&error, &"retryAfter".into(), &pause);
    }
    error
}

/// Reads a response piece by piece, and no further than the limit.
async fn read(response: &Response) -> Result<Uint8Array, JsValue> {
    let mut pieces: Vec<Uint8Array> = Vec::new();
    let mut size = 0_u32;
    if let Some(body) = response.body() {
        let reader: ReadableStreamDefaultReader = body.get_reader().unchecked_into();
        loop {
            let part: Part = JsFuture::from(reader.read()).await?.unchecked_into();
            if part.done() {
                break;
            }
            let piece = part.value();
            size = size.saturating_add(piece.length());
            if size > MAX_BYTES {
                let _ = JsFuture::from(reader.cancel()).await;
                return Err(Error::new(&format!("answer larger than {MAX_BYTES} bytes")).into());
            }
            pieces.push(piece);
        }
    }
    let all = Uint8Array::new_with_length(size);
    let mut at = 0;
    for piece in &pieces {
        all.set(piece, at);
        at += piece.length();
    }
    Ok(all)
}
