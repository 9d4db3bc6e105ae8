//! Between the core's questions and the upstream driver's.

use futures::future::join_all;
use rootlight::light::{Answer, CallFailure, Question, UpstreamCall};

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

/// Asks each question the upstream it names, all upstreams at the same time; answers in the questions' order.
pub(super) async fn ask_each(upstreams: &[SharedUpstream], questions: Vec<Question>) -> Vec<Answer> {
    let mut answers: Vec<Option<Answer>> = questions.iter().map(|_| None).collect();
    let parts = upstreams.iter().enumerate().map(|(index, upstream)| {
        let mine = questions.iter().enumerate().filter(move |(_, question)| question.upstream == index);
        let (places, calls): (Vec<usize>, Vec<UpstreamCall>) =
            mine.map(|(place, question)| (place, question.call.clone())).unzip();
        async move {
            let answers = if calls.is_empty() { Vec::new() } else { ask(upstream, calls).await };
            places.into_iter().zip(answers).collect::<Vec<_>>()
        }
    });
    for (place, answer) in join_all(parts).await.into_iter().flatten() {
        answers[place] = Some(answer);
    }
    let nobody = || Err(CallFailure::Transport("no such upstream".into()));
    answers.into_iter().map(|answer| answer.unwrap_or_else(nobody)).collect()
}

fn failure(error: UpstreamError) -> CallFailure {
    match error {
        UpstreamError::Rpc { code, message, .. } => CallFailure::Rpc { code, message },
        UpstreamError::NotRecorded(_) => CallFailure::NotRecorded,
        UpstreamError::Busy { seconds, .. } => CallFailure::Busy { seconds: Some(seconds) },
        UpstreamError::Status(429 | 503) => CallFailure::Busy { seconds: None },
        UpstreamError::Malformed(_) => CallFailure::Malformed("not a JSON-RPC answer"),
        other => CallFailure::Transport(other.to_string()),
    }
}
