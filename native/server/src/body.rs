//! Reading request bodies, with limits of their size, their time, and the memory of all bodies together; and the messages in them
//! and in WebSocket frames.

use std::time::Duration;

use axum::body::{BodyDataStream, Bytes, HttpBody};
use axum::extract::Request;
use futures::{FutureExt as _, StreamExt as _};
use rootlight::rpc::{Caller, Message};
use rootlight_limits::Limits;
use rootlight_limits::budget::{BUDGET_USED_UP, Reservation};
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::{Pauses, SHORT_JSON};
use rootlight_limits::quota_owner::QuotaOwner;
use rootlight_limits::runs::Size;
use tokio::time::{Instant, timeout};

use super::connection_slots::FREE_BYTES;
use super::server_state::ServerState;
use crate::methods::dispatcher;

/// The number of bytes of a too long body that are read and discarded. Closing the connection while the client still
/// sends would reset it, and the client would not see the error; but reading must end.
const SURPLUS_BYTES: usize = 1024 * 1024;

/// The number of bytes of the bodies of one address that are read between two rests (`rests.rs`) while long work occupies all
/// processors. Moving bytes takes as much time of the threads that serve connections as answering brief messages. A long
/// message loses little by a rest, because it would only wait longer for its turn afterwards.
const PIECE: usize = 128 * 1024;

/// The time between two checks whether other requests wait for the bytes of the budget that a stalled body holds.
const PATIENCE: Duration = Duration::from_secs(1);

/// The reason why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnreadBody {
    /// The body is longer than a message may be.
    #[error("request body is too long")]
    TooLong,
    /// The body was not sent in time.
    #[error("request body took too long")]
    TooSlow,
    /// The request budget is used up.
    #[error("{BUDGET_USED_UP}")]
    BudgetUsedUp,
    #[error("request body ended early")]
    Broken,
}

/// Takes the body of a request, up to the limit. Returns it with the bytes of the request budget that it holds.
pub(crate) async fn read(
    request: &mut Request,
    owner: QuotaOwner,
    shared: &ServerState,
) -> Result<(Vec<u8>, Reservation), UnreadBody> {
    let (limits, most) = (&shared.counts.limits, shared.limits.message_bytes);
    let announced = usize::try_from(request.body().size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most.saturating_add(SURPLUS_BYTES) {
        return Err(UnreadBody::TooLong);
    }
    // The end of the time limit. The clock is read only when the body is first waited for.
    let mut until = None;
    let mut until = || *until.get_or_insert_with(|| Instant::now() + shared.limits.body_timeout);
    let exact = request.body().size_hint().exact().is_some();
    let mut chunks = std::mem::take(request.body_mut()).into_data_stream();
    let (mut body, mut reserved) = (Vec::new(), Reservation::default());
    let (mut surplus, mut piece) = (0_usize, 0_usize);
    while let Some(chunk) = next(&mut chunks, &mut until, (owner, &reserved), limits).await? {
        piece = piece.saturating_add(chunk.len());
        if piece >= PIECE {
            piece = 0;
            if limits.work().is_busy() {
                tokio::time::sleep_until(shared.rests.next_piece(owner, Instant::now())).await;
            }
        }
        let length = body.len().saturating_add(chunk.len());
        if surplus == 0 && length <= most {
            if length > FREE_BYTES && reserved.bytes() == 0 {
                // The body's whole possible size is taken at once, so that no body holds some bytes and waits for more.
                let whole = if exact { announced.min(most) } else { most };
                let left = until().saturating_duration_since(Instant::now());
                let taking = Box::pin(limits.requests().take_within(owner, whole, left));
                reserved = taking.await.ok_or(UnreadBody::BudgetUsedUp)?;
                body.reserve_exact(whole.saturating_sub(body.len()));
            }
            body.extend_from_slice(&chunk);
            continue;
        }
        // The body is too long: its bytes and their reservation are dropped, and the rest is read and discarded.
        (body, reserved) = (Vec::new(), Reservation::default());
        surplus = surplus.saturating_add(chunk.len());
        if surplus > SURPLUS_BYTES {
            break;
        }
    }
    if surplus > 0 {
        return Err(UnreadBody::TooLong);
    }
    Ok((body, reserved))
}

/// Reads the next chunk. A body that holds bytes of the budget must make progress while others wait for them.
async fn next(
    chunks: &mut BodyDataStream,
    until: &mut impl FnMut() -> Instant,
    (owner, reserved): (QuotaOwner, &Reservation),
    limits: &Limits,
) -> Result<Option<Bytes>, UnreadBody> {
    if chunks.is_end_stream() {
        return Ok(None);
    }
    // A chunk that has come in already is taken without a look at the clock.
    if let Some(chunk) = chunks.next().now_or_never() {
        return chunk.transpose().map_err(|_| UnreadBody::Broken);
    }
    let until = until();
    // Boxed, because most bodies come in with their heads.
    Box::pin(async move {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let is_contended = || reserved.bytes() > 0 && limits.requests().is_contended(owner);
            match timeout(left.min(PATIENCE), chunks.next()).await {
                Ok(None) => return Ok(None),
                Ok(Some(Ok(chunk))) => return Ok(Some(chunk)),
                Ok(Some(Err(_))) => return Err(UnreadBody::Broken),
                Err(_) if left <= PATIENCE || is_contended() => return Err(UnreadBody::TooSlow),
                Err(_) => {}
            }
        }
    })
    .await
}

/// Parses a message of a caller. Parsing a long one takes milliseconds, so that it waits in the queue `ServerState::reads` and
/// then runs on a thread of its own. Returns `None` if the system has no thread for it.
pub(super) async fn read_message(shared: &ServerState, caller: &Caller, text: Vec<u8>) -> Option<Message> {
    let most = caller.batch_limit();
    if text.len() <= SHORT_JSON {
        return Some(Message::read(&text, dispatcher(), most));
    }
    // Boxed, because few messages are long.
    Box::pin(async move {
        let size = if text.trim_ascii_start().starts_with(b"[") { Size::Batch } else { Size::Single };
        let permit = shared.reads.enter(CallerId::of(caller), size).await;
        let reading = move |_: &Pauses<'_>| {
            let _permit = permit;
            Message::read(&text, dispatcher(), most)
        };
        shared.counts.limits.work().run_last(reading).await
    })
    .await
}
