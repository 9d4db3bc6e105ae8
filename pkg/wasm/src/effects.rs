//! Tells the host what a message did besides its answer.

use alloc::format;

use js_sys::Function;
use rootlight::rpc::{Effect, Reply};
use wasm_bindgen::JsValue;

/// Calls `heard(id, made, notified)` for each filter or subscription that a message has made or ended; `notified` says that it is
/// a subscription.
pub(crate) fn tell(reply: &Reply, heard: Option<&Function>) {
    let Some(heard) = heard else { return };
    for effect in reply.effects() {
        let (id, made, notified) = match effect {
            Effect::Filter(id) => (id, true, false),
            Effect::Subscribed(id) => (id, true, true),
            Effect::Uninstalled(id) => (id, false, false),
            Effect::Unsubscribed(id) => (id, false, true),
            Effect::Sent(_) | Effect::About(_) => continue,
        };
        // The functions of `pkg/host.js` and `pkg/bin/sockets.js` do not throw.
        let _ = heard.call3(&JsValue::NULL, &format!("{id:#x}").into(), &made.into(), &notified.into());
    }
}
