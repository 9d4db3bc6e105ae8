//! Sends the requests of a session's round to the upstreams, and has the host answer its questions.

use std::time::{Duration, Instant};

use futures::StreamExt as _;
use futures::future::{join, join_all};
use futures::stream;
use rootlight::light::{RequestFailure, UpstreamRequest, UpstreamResponse};
use rootlight::rpc::{HostAnswer, HostQuestion, PartResponses, Round, RoundPart};
use rootlight_limits::budget::Reservation;

use super::ask::{CountedUpstreams, UpstreamResponses, ask};
use super::hedge::SharedHedges;
use super::sends::send_each;

/// For how long a round is tried again if there is no memory for any of its responses.
const MEMORY_PATIENCE: Duration = Duration::from_secs(5);
/// Pause between two such tries.
const MEMORY_PAUSE: Duration = Duration::from_millis(250);

/// Most questions of one round that the host answers at the same time.
const MAX_OPEN_QUESTIONS: usize = 4;

/// The responses to the parts of a round, with the reservation of their bytes, which lasts until the core has read them; and the
/// host's answers, each with the number of its question.
#[derive(Debug, Default)]
pub(super) struct RoundResponses {
    pub(super) parts: Vec<PartResponses>,
    pub(super) reserved: Reservation,
    pub(super) answers: Vec<(usize, HostAnswer)>,
}

impl RoundResponses {
    /// The responses of all parts.
    pub(super) fn iter(&self) -> impl Iterator<Item = &UpstreamResponse> {
        self.parts.iter().flat_map(PartResponses::responses)
    }
}

/// Sends each part of a round to the upstream that it names, to all upstreams at the same time. With hedges, the spare of a part
/// is asked as well when the upstream is slow. While there is no memory for any of the responses, the round drops them and
/// tries again after a pause. A round with questions to the host does not wait, because it has the answers in memory meanwhile.
pub(super) async fn ask_round(
    upstreams: CountedUpstreams<'_>,
    Round { parts, questions }: Round,
    hedges: Option<&SharedHedges>,
) -> RoundResponses {
    let answer = |(number, question): (usize, Box<dyn HostQuestion>)| {
        let answer = question.answer();
        async move { (number, answer.await) }
    };
    let answers: Vec<_> = questions.into_iter().map(answer).collect();
    let may_wait = answers.is_empty() && !parts.is_empty();
    let lacks_memory = |answer: &UpstreamResponse| matches!(answer, Err(RequestFailure::BudgetUsedUp));
    let responses = async {
        let started = Instant::now();
        loop {
            let fetched = ask_each(upstreams, &parts, hedges).await;
            if !may_wait || started.elapsed() >= MEMORY_PATIENCE || !fetched.iter().all(lacks_memory) {
                return fetched;
            }
            drop(fetched);
            tokio::time::sleep(MEMORY_PAUSE).await;
        }
    };
    let answers = stream::iter(answers).buffered(MAX_OPEN_QUESTIONS).collect::<Vec<_>>();
    let (responses, answers) = join(responses, answers).await;
    RoundResponses { answers, ..responses }
}

/// Sends each part once. Parts that send transactions have rules of their own (`sends.rs`).
async fn ask_each(
    (upstreams, metrics): CountedUpstreams<'_>,
    parts: &[RoundPart],
    hedges: Option<&SharedHedges>,
) -> RoundResponses {
    let (sent, asked): (Vec<RoundPart>, Vec<RoundPart>) = parts.iter().cloned().partition(RoundPart::sends);
    let numbered = |index: usize| upstreams.get(index).map(|upstream| (index, upstream));
    let asked = asked.into_iter().map(|mut part| {
        let (upstream, spare) = (numbered(part.upstream), part.spare.and_then(numbered));
        async move {
            let requests = std::mem::take(&mut part.requests);
            let (fetched, of_spare) = match (upstream, hedges, spare) {
                (Some(upstream), Some(hedges), Some(spare)) => {
                    hedges.ask(metrics, upstream, spare, requests).await
                }
                (Some(upstream), ..) => (ask(metrics, upstream, requests).await, false),
                (None, ..) => (no_such_upstream(&requests), false),
            };
            (part, fetched, of_spare)
        }
    });
    let (asked, sent) = join(join_all(asked), send_each((upstreams, metrics), sent)).await;
    let sent = sent.into_iter().map(|(part, fetched)| (part, fetched, false));
    let mut all = RoundResponses::default();
    for (part, fetched, of_spare) in asked.into_iter().chain(sent) {
        all.reserved.merge(fetched.reserved);
        all.parts.push(part.answered(fetched.answers, of_spare));
    }
    all
}

/// The failures of requests to an upstream that does not exist.
fn no_such_upstream(requests: &[UpstreamRequest]) -> UpstreamResponses {
    let failure = |_: &UpstreamRequest| Err(RequestFailure::Transport("no such upstream".into()));
    UpstreamResponses { answers: requests.iter().map(failure).collect(), ..UpstreamResponses::default() }
}
