//! Sends the requests of a round of a session to the upstreams that they name.

use std::collections::BTreeMap;

use futures::future::{join, join_all};
use rootlight::light::{RequestFailure, RoutedRequest, UpstreamRequest, UpstreamResponse};
use rootlight_limits::budget::Reservation;
use rootlight_server::metrics::Metrics;
use rootlight_upstream::SharedUpstream;

use super::ask::{UpstreamResponses, ask};
use super::hedge::Hedges;
use super::sends::{Sending, send_each};

/// The requests of a round that go to one upstream and have the same spare, and their indices in the round.
#[derive(Default)]
struct UpstreamPart {
    indices: Vec<usize>,
    requests: Vec<UpstreamRequest>,
}

/// The parts of a round, by upstream and spare.
type UpstreamParts = BTreeMap<(usize, Option<usize>), UpstreamPart>;

/// Sends each request to the upstream that it names, to all upstreams at the same time; responses keep the order of the
/// requests. With hedges, the spare of a request is asked as well when the upstream is slow.
pub(super) async fn ask_each(
    (upstreams, metrics): (&[SharedUpstream], &Metrics),
    requests: Vec<RoutedRequest>,
    hedges: Option<&Hedges>,
) -> UpstreamResponses {
    let mut answers: Vec<Option<UpstreamResponse>> = requests.iter().map(|_| None).collect();
    let (mut parts, mut sent) = (UpstreamParts::new(), UpstreamParts::new());
    for (index, routed) in requests.into_iter().enumerate() {
        let spare = routed.spare.filter(|spare| hedges.is_some() && *spare < upstreams.len());
        let parts = if routed.request.sends() { &mut sent } else { &mut parts };
        let part = parts.entry((routed.upstream, spare)).or_default();
        part.indices.push(index);
        part.requests.push(routed.request);
    }
    let sent = sent.into_iter().filter(|((upstream, _), _)| *upstream < upstreams.len());
    let sent = sent.map(|((upstream, _), UpstreamPart { indices, requests })| Sending {
        upstream,
        indices,
        requests,
    });
    let asked = parts.into_iter().filter_map(|((index, spare), UpstreamPart { indices, requests })| {
        let upstream = upstreams.get(index)?;
        let spare = spare.and_then(|spare| Some((spare, upstreams.get(spare)?)));
        Some(async move {
            let (fetched, of_spare) = match (hedges, spare) {
                (Some(hedges), Some(spare)) => hedges.ask(metrics, (index, upstream), spare, requests).await,
                _ => (ask(metrics, (index, upstream), requests).await, false),
            };
            (indices, fetched, of_spare)
        })
    });
    let (asked, sent) = join(join_all(asked), send_each((upstreams, metrics), sent.collect())).await;
    let (mut reserved, mut from_spare) = (Reservation::default(), Vec::new());
    let sent = sent.into_iter().map(|(indices, fetched)| (indices, fetched, false));
    for (indices, fetched, of_spare) in asked.into_iter().chain(sent) {
        reserved.merge(fetched.reserved);
        from_spare.extend(indices.iter().filter(|_| of_spare));
        for (index, answer) in indices.into_iter().zip(fetched.answers) {
            answers[index] = Some(answer);
        }
    }
    let nobody = || Err(RequestFailure::Transport("no such upstream".into()));
    let answers = answers.into_iter().map(|answer| answer.unwrap_or_else(nobody)).collect();
    UpstreamResponses { answers, reserved, from_spare }
}
