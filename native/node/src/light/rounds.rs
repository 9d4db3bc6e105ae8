//! Sends the requests of a round of a session to the upstreams that they name.

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

/// For how long a round of requests is tried again whose responses find no room, and the pause between two tries.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);
const ROOM_PAUSE: Duration = Duration::from_millis(250);

/// Questions of one round that the host answers at the same time.
const QUESTIONS: usize = 4;

/// The responses to the parts of a round, and the budget's bytes that they take until the core has read them; and the answers of
/// the host itself, by the numbers of the questions.
#[derive(Debug, Default)]
pub(super) struct RoundResponses {
    pub(super) parts: Vec<PartResponses>,
    pub(super) reserved: Reservation,
    pub(super) answers: Vec<(usize, HostAnswer)>,
}

impl RoundResponses {
    pub(super) fn iter(&self) -> impl Iterator<Item = &UpstreamResponse> {
        self.parts.iter().flat_map(PartResponses::responses)
    }
}

/// Sends each part of a round to the upstream that it names, to all upstreams at the same time. With hedges, the spare of a part
/// is asked as well when the upstream is slow. While there is room for none of the responses, the round waits, holding none;
/// one with questions to the host, whose answers would be held, does not.
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
    let lacks_room = |answer: &UpstreamResponse| matches!(answer, Err(RequestFailure::NoRoom));
    let responses = async {
        let started = Instant::now();
        loop {
            let fetched = ask_each(upstreams, &parts, hedges).await;
            if !may_wait || started.elapsed() >= ROOM_PATIENCE || !fetched.iter().all(lacks_room) {
                return fetched;
            }
            drop(fetched);
            tokio::time::sleep(ROOM_PAUSE).await;
        }
    };
    let answers = stream::iter(answers).buffered(QUESTIONS).collect::<Vec<_>>();
    let (responses, answers) = join(responses, answers).await;
    RoundResponses { answers, ..responses }
}

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

fn no_such_upstream(requests: &[UpstreamRequest]) -> UpstreamResponses {
    let failure = |_: &UpstreamRequest| Err(RequestFailure::Transport("no such upstream".into()));
    UpstreamResponses { answers: requests.iter().map(failure).collect(), ..UpstreamResponses::default() }
}
