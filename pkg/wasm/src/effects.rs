//! Tells the host what a message did besides its answer.

use alloc::format;

use js_sys::Function;
use rootlight::rpc::{Effect, Reply};
use wasm_bindgen::JsValue;

/// Calls `heard(id, made)` for each filter or subscription that a message has made or ended.
pub(crate) fn tell(reply: &Reply, heard: Option<&Function>) {
    let Some(heard) = heard else { return };
    for effect in reply.effects() {
        let (id, made) = match effect {
            Effect::Filter(id) | Effect::Subscribed(id) => (id, true),
            Effect::Uninstalled(id) | Effect::Unsubscribed(id) => (id, false),
            Effect::Sent(_) | Effect::About(_) => continue,
        };
        // The function of `pkg/host.js` does not throw.
        let _ = heard.call2(&JsValue::NULL, &format!("{id:#x}").into(), &made.into());
    }
}
