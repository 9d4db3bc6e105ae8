//! Between the core's questions and the upstream driver's.

use rootlight::light::{Answer, CallFailure, UpstreamCall};

use crate::upstream::{Call, SharedUpstream, UpstreamError};

/// Asks the core's questions; as many answers come back, in order.
pub(super) async fn ask(upstream: &SharedUpstream, calls: Vec<UpstreamCall>) -> Vec<Answer> {
    let count = calls.len();
    let calls = calls
        .into_iter()
        // The core writes its parameters itself, so they are an array.
        .map(|call| Call::new(call.method, serde_json::from_str(&call.params).unwrap_or_default()))
        .collect();
    let mut answers: Vec<Answer> =
        upstream.request(calls).await.into_iter().map(|result| result.map_err(failure)).collect();
    answers.resize_with(count, || Err(CallFailure::Malformed("no answer")));
    answers
}

fn failure(error: UpstreamError) -> CallFailure {
    match error {
        UpstreamError::Rpc { code, message, .. } => CallFailure::Rpc { code, message },
        UpstreamError::NotRecorded(_) => CallFailure::NotRecorded,
        UpstreamError::Malformed(_) => CallFailure::Malformed("not a JSON-RPC answer"),
        other => CallFailure::Transport(other.to_string()),
    }
}
