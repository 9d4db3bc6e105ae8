//! Sends requests to one upstream, and counts the responses in the metrics.

use rootlight::light::{RequestFailure, UpstreamRequest, UpstreamResponse};
use rootlight_limits::budget::Reservation;
use rootlight_server::metrics::{Metrics, UpstreamOutcome};
use rootlight_upstream::SharedUpstream;

/// The upstreams, and the metrics in which their responses count.
pub(super) type CountedUpstreams<'a> = (&'a [SharedUpstream], &'a Metrics);

/// Responses of an upstream, with the reservation of their bytes, which lasts until the core has read them.
#[derive(Debug, Default)]
pub(super) struct UpstreamResponses {
    /// One response for each request, in the same order.
    pub(super) answers: Vec<UpstreamResponse>,
    pub(super) reserved: Reservation,
}

/// Sends requests to the upstream of this number, and counts them. Returns as many responses, in the same order.
pub(super) async fn ask(
    metrics: &Metrics,
    (index, upstream): (usize, &SharedUpstream),
    requests: Vec<UpstreamRequest>,
) -> UpstreamResponses {
    let count = requests.len();
    let (results, reserved) = upstream.request_reserved(requests).await;
    let mut answers: Vec<UpstreamResponse> =
        results.into_iter().map(|result| result.map_err(RequestFailure::from)).collect();
    // An upstream that returns fewer responses has failed for the rest.
    answers.resize_with(count, || Err(RequestFailure::Malformed("no response")));
    answers.iter().for_each(|answer| metrics.asked(index, outcome(answer)));
    UpstreamResponses { answers, reserved }
}

/// How a response counts in the metrics: a failure without an answer of the upstream counts as silence, also if the request was not
/// sent.
fn outcome(answer: &UpstreamResponse) -> UpstreamOutcome {
    match answer {
        Ok(_) => UpstreamOutcome::Result,
        Err(
            RequestFailure::Transport(_)
            | RequestFailure::Busy { .. }
            | RequestFailure::BudgetUsedUp
            | RequestFailure::NotAvailable(_)
            | RequestFailure::NotSent(_),
        ) => UpstreamOutcome::Silence,
        Err(_) => UpstreamOutcome::Error,
    }
}
