//! Sends the core's requests to one upstream.

use rootlight::light::{RequestFailure, UpstreamRequest, UpstreamResponse};
use rootlight_limits::budget::Held;
use rootlight_server::metrics::{Metrics, Outcome};
use rootlight_upstream::SharedUpstream;

/// Responses of upstreams, and the budget's bytes that they take until the core has read them.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) answers: Vec<UpstreamResponse>,
    pub(super) held: Held,
    /// The places of the responses that come from the spare upstreams of their requests.
    pub(super) by_spare: Vec<usize>,
}

/// Sends requests to the upstream of this number, and counts them. Returns as many responses, in the same order.
pub(super) async fn ask_counted(
    metrics: &Metrics,
    (index, upstream): (usize, &SharedUpstream),
    requests: Vec<UpstreamRequest>,
) -> Fetched {
    let count = requests.len();
    let (results, held) = upstream.request_held(requests).await;
    let mut answers: Vec<UpstreamResponse> =
        results.into_iter().map(|result| result.map_err(RequestFailure::from)).collect();
    answers.resize_with(count, || Err(RequestFailure::Malformed("no response")));
    answers.iter().for_each(|answer| metrics.asked(index, outcome(answer)));
    Fetched { answers, held, by_spare: Vec::new() }
}

fn outcome(answer: &UpstreamResponse) -> Outcome {
    match answer {
        Ok(_) => Outcome::Result,
        Err(
            RequestFailure::Transport(_)
            | RequestFailure::Busy { .. }
            | RequestFailure::NoRoom
            | RequestFailure::Lacking(_)
            | RequestFailure::Unasked(_),
        ) => Outcome::Silence,
        Err(_) => Outcome::Error,
    }
}
