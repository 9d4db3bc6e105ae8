//! The requests of one round of a message, by the upstream that they go to, and the questions to the host.

use alloc::{boxed::Box, vec::Vec};

use super::auxiliary::HostQuestion;
use crate::light::{NO_RESPONSE, UpstreamRequest, UpstreamResponse};

/// The requests and questions whose answers a session needs before it runs its message again. A host sends all of them at the
/// same time.
#[derive(Debug, Default)]
pub struct Round {
    /// Requests to upstreams.
    pub parts: Vec<RoundPart>,
    /// Questions that the host's auxiliary source answers, each with the index of its request in the message. The host returns
    /// the answer under the same index.
    pub questions: Vec<(usize, Box<dyn HostQuestion>)>,
}

/// The requests of a round that go to one upstream.
#[derive(Debug, Clone)]
pub struct RoundPart {
    /// The upstream, by number.
    pub upstream: usize,
    /// The spare: the upstream to which the host sends the same requests if this one is slow.
    pub spare: Option<usize>,
    /// The requests: either all of them send transactions, or none does.
    pub requests: Vec<UpstreamRequest>,
    /// The position of each request among those of the round.
    indexes: Vec<usize>,
}

/// The responses to a part of a round.
#[derive(Debug)]
pub struct PartResponses {
    /// The position of each request among those of the round.
    indexes: Vec<usize>,
    /// The responses, in the same order.
    responses: Vec<UpstreamResponse>,
    /// Whether the spare upstream gave them.
    of_spare: bool,
}

impl Round {
    /// Adds a request, which an upstream or its spare answers.
    pub(super) fn add(&mut self, upstream: usize, spare: Option<usize>, request: &UpstreamRequest) {
        let (index, sends) = (self.requests(), request.sends());
        let fits =
            |part: &&mut RoundPart| (part.upstream, part.spare, part.sends()) == (upstream, spare, sends);
        match self.parts.iter_mut().find(fits) {
            Some(part) => {
                part.indexes.push(index);
                part.requests.push(request.clone());
            }
            None => {
                let (requests, indexes) = (alloc::vec![request.clone()], alloc::vec![index]);
                self.parts.push(RoundPart { upstream, spare, requests, indexes });
            }
        }
    }

    /// The number of requests.
    pub fn requests(&self) -> usize {
        self.parts.iter().map(|part| part.requests.len()).fold(0, usize::saturating_add)
    }

    /// The responses of a host that asks one upstream after the other.
    pub fn answered(self, mut ask: impl FnMut(&RoundPart) -> Vec<UpstreamResponse>) -> Vec<PartResponses> {
        let ask_part = |part: RoundPart| {
            let responses = ask(&part);
            // `false`: such a host does not ask the spare upstream.
            part.answered(responses, false)
        };
        self.parts.into_iter().map(ask_part).collect()
    }
}

impl RoundPart {
    /// Whether the requests send transactions.
    pub fn sends(&self) -> bool {
        self.requests.first().is_some_and(UpstreamRequest::sends)
    }

    /// The responses, in the order of the requests; `of_spare` says that the spare upstream gave them.
    pub fn answered(self, responses: Vec<UpstreamResponse>, of_spare: bool) -> PartResponses {
        PartResponses { indexes: self.indexes, responses, of_spare }
    }
}

impl PartResponses {
    /// The responses.
    pub fn responses(&self) -> &[UpstreamResponse] {
        &self.responses
    }

    /// Whether the spare upstream gave these responses, and the request at this position of the round is among theirs.
    pub(super) fn is_of_spare(&self, index: usize) -> bool {
        self.of_spare && self.indexes.contains(&index)
    }
}

/// The responses in the order in which the requests were added to the round. A request without a response has the failure
/// [`NO_RESPONSE`].
pub(super) fn in_order(parts: Vec<PartResponses>) -> Vec<UpstreamResponse> {
    let count = parts.iter().map(|part| part.indexes.len()).fold(0, usize::saturating_add);
    let mut all: Vec<UpstreamResponse> = (0..count).map(|_| Err(NO_RESPONSE)).collect();
    for PartResponses { indexes, responses, .. } in parts {
        for (index, response) in indexes.into_iter().zip(responses) {
            if let Some(slot) = all.get_mut(index) {
                *slot = response;
            }
        }
    }
    all
}
