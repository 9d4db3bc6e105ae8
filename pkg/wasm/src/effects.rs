//! Tells the host which filters and subscriptions a message has made or ended, so that the host ends them with their page or
//! WebSocket.

use alloc::format;

use js_sys::Function;
use rootlight::rpc::{Effect, Reply};
use wasm_bindgen::JsValue;

/// Calls `on_filter(id, is_made, is_subscription)` for each filter or subscription that a message has made or ended. `id` is its id in
/// `0x` hexadecimal.
pub(crate) fn tell(reply: &Reply, on_filter: Option<&Function>) {
    let Some(on_filter) = on_filter else { return };
    for effect in reply.effects() {
        let (id, is_made, is_subscription) = match effect {
            Effect::Filter(id) => (id, true, false),
            Effect::Subscribed(id) => (id, true, true),
            Effect::Uninstalled(id) => (id, false, false),
            Effect::Unsubscribed(id) => (id, false, true),
            Effect::Sent(_) | Effect::About(_) => continue,
        };
        // The result is ignored: the functions of `pkg/host.js` and `pkg/bin/sockets.js` do not throw.
        let _ = on_filter.call3(
            &JsValue::NULL,
            &format!("{id:#x}").into(),
            &is_made.into(),
            &is_subscription.into(),
        );
    }
}
