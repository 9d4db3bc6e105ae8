//! Long answers to `eth_getLogs` in pieces: each piece is made when the caller has received the one before, so that memory is bounded.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use rootlight::rpc::LogStream;
use rootlight_limits::Limits;
use rootlight_limits::budget::BUDGET_USED_UP;
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::priority::Pauses;
use rootlight_limits::runs::{RunQueue, Size};
use rootlight_server::service::Pieces;

/// Makes the pieces of an answer. Each piece waits for a permit in the queue of runs of all callers, and counts in the budget of
/// answers until it is sent. An error ends the answer early: the caller sees a broken transfer, not a shorter list. `patience`
/// limits the wait for bytes of the budget.
pub(super) fn pieces(
    logs: LogStream,
    caller_id: CallerId,
    (runs, limits): (Arc<RunQueue>, Arc<Limits>),
    patience: Duration,
) -> Pieces {
    let step = move |mut logs: LogStream| {
        let (runs, limits) = (runs.clone(), limits.clone());
        async move {
            // A stream is one call, not a batch.
            let permit = runs.enter(caller_id, Size::Single).await;
            let reserved = limits.reserve_run(caller_id.quota_owner(), logs.next_bytes(), patience).await;
            let mut reserved = reserved.ok_or_else(|| io::Error::other(BUDGET_USED_UP))?;
            let make = move |pauses: &Pauses<'_>| {
                let _permit = permit;
                let piece = logs.next_piece();
                // Pieces are too short to pause within them, but a caller may request them without end.
                pauses.pause();
                (piece, logs)
            };
            let (piece, logs) = limits
                .work()
                .spawn_lowered(Some(caller_id.quota_owner()), make)
                .await
                .map_err(io::Error::other)?;
            let Some(text) = piece.map_err(io::Error::other)? else { return Ok(None) };
            reserved.shrink_to(text.len());
            Ok(Some(((text, reserved), logs)))
        }
    };
    Pieces(futures::stream::try_unfold(logs, step).boxed())
}
