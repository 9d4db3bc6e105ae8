//! Sends the core's requests to the upstreams that they name.

use futures::future::join_all;
use rootlight::light::{RequestFailure, RoutedRequest, UpstreamRequest, UpstreamResponse};

use crate::budget::Held;
use crate::metrics::{Outcome, metrics};
use crate::upstream::SharedUpstream;

/// Responses of upstreams, and the budget's bytes that they take until the core has read them.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) answers: Vec<UpstreamResponse>,
    pub(super) held: Held,
}

/// Does what [`ask`] does, and counts the requests for the upstream of this number.
pub(super) async fn ask_counted(
    index: usize,
    upstream: &SharedUpstream,
    requests: Vec<UpstreamRequest>,
) -> Fetched {
    let fetched = ask(upstream, requests).await;
    fetched.answers.iter().for_each(|answer| metrics().asked(index, outcome(answer)));
    fetched
}

/// Sends requests to one upstream; returns as many responses, in the same order.
pub(super) async fn ask(upstream: &SharedUpstream, requests: Vec<UpstreamRequest>) -> Fetched {
    let count = requests.len();
    let (results, held) = upstream.request_held(requests).await;
    let mut answers: Vec<UpstreamResponse> =
        results.into_iter().map(|result| result.map_err(RequestFailure::from)).collect();
    answers.resize_with(count, || Err(RequestFailure::Malformed("no response")));
    Fetched { answers, held }
}

fn outcome(answer: &UpstreamResponse) -> Outcome {
    match answer {
        Ok(_) => Outcome::Result,
        Err(RequestFailure::Transport(_) | RequestFailure::Busy { .. }) => Outcome::Silence,
        Err(_) => Outcome::Error,
    }
}

/// Sends each request to the upstream that it names, to all upstreams at the same time; responses keep the order
/// of the requests.
pub(super) async fn ask_each(upstreams: &[SharedUpstream], requests: Vec<RoutedRequest>) -> Fetched {
    let mut answers: Vec<Option<UpstreamResponse>> = requests.iter().map(|_| None).collect();
    let mut parts: Vec<(Vec<usize>, Vec<UpstreamRequest>)> =
        upstreams.iter().map(|_| Default::default()).collect();
    for (place, routed) in requests.into_iter().enumerate() {
        if let Some((places, mine)) = parts.get_mut(routed.upstream) {
            places.push(place);
            mine.push(routed.request);
        }
    }
    let parts = upstreams.iter().enumerate().zip(parts);
    let parts = parts.map(|((index, upstream), (places, requests))| async move {
        let fetched = if requests.is_empty() {
            Fetched::default()
        } else {
            ask_counted(index, upstream, requests).await
        };
        (places, fetched)
    });
    let mut held = Held::default();
    for (places, fetched) in join_all(parts).await {
        held.merge(fetched.held);
        for (place, answer) in places.into_iter().zip(fetched.answers) {
            answers[place] = Some(answer);
        }
    }
    let nobody = || Err(RequestFailure::Transport("no such upstream".into()));
    Fetched { answers: answers.into_iter().map(|answer| answer.unwrap_or_else(nobody)).collect(), held }
}
