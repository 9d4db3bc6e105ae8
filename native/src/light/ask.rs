//! Sends the core's calls to the upstreams that they name.

use futures::future::join_all;
use rootlight::light::{Answer, CallFailure, Question, UpstreamCall};

use crate::budget::Held;
use crate::upstream::SharedUpstream;

/// Responses of upstreams, and the budget's bytes that they take until the core has read them.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) answers: Vec<Answer>,
    pub(super) held: Held,
}

/// Sends calls to one upstream; returns as many responses, in the same order.
pub(super) async fn ask(upstream: &SharedUpstream, calls: Vec<UpstreamCall>) -> Fetched {
    let count = calls.len();
    let (results, held) = upstream.request_held(calls).await;
    let mut answers: Vec<Answer> =
        results.into_iter().map(|result| result.map_err(CallFailure::from)).collect();
    answers.resize_with(count, || Err(CallFailure::Malformed("no response")));
    Fetched { answers, held }
}

/// Sends each call to the upstream that it names, to all upstreams at the same time; responses keep the order
/// of the calls.
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
