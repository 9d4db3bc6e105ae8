//! Between the core's questions and the upstream driver's.

use futures::future::join_all;
use rootlight::light::{Answer, CallFailure, Question, UpstreamCall};

use crate::budget::Held;
use crate::upstream::{Call, SharedUpstream, UpstreamError};

/// Answers of upstreams, and the bytes of the budget that they take until they are fed.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) answers: Vec<Answer>,
    pub(super) held: Held,
}

/// Asks the core's questions; as many answers come back, in order.
pub(super) async fn ask(upstream: &SharedUpstream, calls: Vec<UpstreamCall>) -> Fetched {
    let count = calls.len();
    let calls = calls
        .into_iter()
        // The core writes its parameters itself, so they are an array.
        .map(|call| Call::new(call.method, serde_json::from_str(&call.params).unwrap_or_default()))
        .collect();
    let (results, held) = upstream.request_held(calls).await;
    let mut answers: Vec<Answer> = results.into_iter().map(|result| result.map_err(failure)).collect();
    answers.resize_with(count, || Err(CallFailure::Malformed("no answer")));
    Fetched { answers, held }
}

/// Asks each question the upstream it names, all upstreams at the same time; answers in the questions' order.
pub(super) async fn ask_each(upstreams: &[SharedUpstream], questions: Vec<Question>) -> Fetched {
    let mut answers: Vec<Option<Answer>> = questions.iter().map(|_| None).collect();
    let parts = upstreams.iter().enumerate().map(|(index, upstream)| {
        let mine = questions.iter().enumerate().filter(move |(_, question)| question.upstream == index);
        let (places, calls): (Vec<usize>, Vec<UpstreamCall>) =
            mine.map(|(place, question)| (place, question.call.clone())).unzip();
        async move {
            let fetched = if calls.is_empty() { Fetched::default() } else { ask(upstream, calls).await };
            (places, fetched)
        }
    });
    let mut held = Held::default();
    for (places, fetched) in join_all(parts).await {
        held.merge(fetched.held);
        for (place, answer) in places.into_iter().zip(fetched.answers) {
            answers[place] = Some(answer);
        }
    }
    let nobody = || Err(CallFailure::Transport("no such upstream".into()));
    Fetched { answers: answers.into_iter().map(|answer| answer.unwrap_or_else(nobody)).collect(), held }
}

fn failure(error: UpstreamError) -> CallFailure {
    match error {
        UpstreamError::Rpc { code, message, .. } => CallFailure::Rpc { code, message },
        UpstreamError::NotRecorded(_) => CallFailure::NotRecorded,
        UpstreamError::Busy { seconds, .. } => CallFailure::Busy { seconds: Some(seconds) },
        // Not its fault: it is asked again soon.
        UpstreamError::NoRoom => CallFailure::Busy { seconds: Some(1) },
        UpstreamError::Status(429 | 503) => CallFailure::Busy { seconds: None },
        UpstreamError::Malformed(_) => CallFailure::Malformed("not a JSON-RPC answer"),
        other => CallFailure::Transport(other.to_string()),
    }
}
