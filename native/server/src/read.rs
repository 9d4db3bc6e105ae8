//! The one place where the messages of callers are read.

use rootlight::rpc::Message;
use rootlight_limits::priority::{Pauses, SHORT_JSON};
use rootlight_limits::runs::Size;

use super::server_state::ServerState;
use crate::service::{Caller, dispatcher};

/// Reads a message of a caller. Reading a long one takes milliseconds, so it is done in turn and not on the thread of a
/// connection. Returns `None` if the system has no thread for it.
pub(super) async fn read(shared: &ServerState, caller: &Caller, text: Vec<u8>) -> Option<Message> {
    let most = caller.connection.batch_limit();
    if text.len() <= SHORT_JSON {
        return Some(Message::read(&text, dispatcher(), most));
    }
    Box::pin(read_long(shared, caller, text)).await
}

async fn read_long(shared: &ServerState, caller: &Caller, text: Vec<u8>) -> Option<Message> {
    let most = caller.connection.batch_limit();
    let size = if text.trim_ascii_start().starts_with(b"[") { Size::Batch } else { Size::Single };
    let place = shared.reads.enter(caller.peer, size).await;
    let reading = move |_: &Pauses<'_>| {
        let _place = place;
        Message::read(&text, dispatcher(), most)
    };
    shared.counts.limits.work().run_last(reading).await
}
