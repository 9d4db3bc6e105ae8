//! Sends transactions to several upstreams at once, and does not wait long for an upstream that does not answer.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt as _};
use rootlight::light::{RequestFailure, SEND_GRACE, UpstreamRequest};
use rootlight::rpc::RoundPart;
use rootlight_server::metrics::{Metrics, UpstreamOutcome};
use tokio::time::{Instant, timeout_at};

use super::ask::{CountedUpstreams, UpstreamResponses, ask};

/// Sends transactions; returns the responses to each part. Once an upstream has accepted each transaction, the other upstreams have
/// [`SEND_GRACE`] milliseconds left to answer.
pub(super) async fn send_each(
    (upstreams, metrics): CountedUpstreams<'_>,
    parts: Vec<RoundPart>,
) -> Vec<(RoundPart, UpstreamResponses)> {
    let mut not_accepted: BTreeSet<&str> =
        parts.iter().flat_map(|part| &part.requests).map(|request| request.params.as_str()).collect();
    let mut under_way: FuturesUnordered<_> = parts
        .iter()
        .enumerate()
        .filter_map(|(number, part)| {
            let upstream = upstreams.get(part.upstream)?;
            let asked = ask(metrics, (part.upstream, upstream), part.requests.clone());
            Some(async move { (number, asked.await) })
        })
        .collect();
    let mut responses: Vec<Option<UpstreamResponses>> = parts.iter().map(|_| None).collect();
    let mut end = None;
    loop {
        let next = match end {
            None => under_way.next().await,
            Some(end) => timeout_at(end, under_way.next()).await.unwrap_or_default(),
        };
        let Some((number, fetched)) = next else { break };
        let answered = parts[number].requests.iter().zip(&fetched.answers);
        for (request, _) in answered.filter(|(request, answer)| request.is_taken(answer)) {
            not_accepted.remove(request.params.as_str());
        }
        if not_accepted.is_empty() {
            end.get_or_insert_with(|| Instant::now() + Duration::from_millis(SEND_GRACE));
        }
        responses[number] = Some(fetched);
    }
    drop(under_way);
    let with_part = |(part, fetched): (RoundPart, Option<UpstreamResponses>)| {
        let fetched = fetched.unwrap_or_else(|| silent(metrics, &part));
        (part, fetched)
    };
    parts.into_iter().zip(responses).map(with_part).collect()
}

/// Failures in place of the responses of an upstream that took longer than the others. They do not count against the upstream, because
/// a lying upstream could state at once that it has a transaction.
fn silent(metrics: &Metrics, part: &RoundPart) -> UpstreamResponses {
    let answer = |_: &UpstreamRequest| {
        metrics.asked(part.upstream, UpstreamOutcome::Silence);
        let reason = format!("not within {SEND_GRACE} ms after another upstream had the transaction");
        Err(RequestFailure::NotAvailable(reason))
    };
    UpstreamResponses { answers: part.requests.iter().map(answer).collect(), ..UpstreamResponses::default() }
}
