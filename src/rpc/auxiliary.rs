//! Auxiliary sources: sources of unproven answers that a host has besides its upstreams. A session asks its source before the
//! upstreams ([`AuxiliarySource::intercept`]), or when they cannot prove an answer ([`AuxiliarySource::fall_back`]).

use alloc::boxed::Box;
use core::{any::Any, fmt, future::Future, pin::Pin};

use serde_json::value::RawValue;

use super::{envelope::Outcome, error::RpcError, request::Request};
use crate::{
    engine::Refusal,
    light::{KnownFacts, PinnedHead, UpstreamRequest, UpstreamResponse},
    state::Facts,
    trie::ProvenNodes,
};

/// A source of answers besides the upstreams: an index of blocks, or the operator's own full node. Its answers have no proof
/// and are marked `unproven`.
pub trait AuxiliarySource: fmt::Debug + Send + Sync {
    /// The auxiliary request that takes the place of a caller's request before any handler runs, or the error that refuses the
    /// caller's request. `None`: a handler answers the request from proven facts. `known` are the facts that are proven
    /// already.
    fn intercept(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        known: KnownFacts<'_>,
    ) -> Option<Result<AuxiliaryRequest, RpcError>>;

    /// The auxiliary request that takes the place of a caller's request which the engine refuses with `refusal`, or the error
    /// that refuses the caller's request. `None`: the request goes to upstreams, as far as the client's configuration allows
    /// unproven answers.
    fn fall_back(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        refusal: &Refusal,
    ) -> Option<Result<AuxiliaryRequest, RpcError>>;

    /// Reads the state that a run misses from the source; `missing` are all facts that the run misses. `None` if the source has
    /// none of that state.
    ///
    /// # Errors
    /// The reason for which the run is refused.
    fn supply_state(
        &self,
        missing: &Facts,
        pinned: &PinnedHead,
        known: KnownFacts<'_>,
    ) -> Result<Option<ProvenNodes>, Refusal>;
}

/// A request to the auxiliary source.
#[derive(Debug)]
pub enum AuxiliaryRequest {
    /// A request to the best upstream, which is the source, and the function that evaluates its response.
    Upstream(UpstreamRequest, EvaluateResponse),
    /// A question that the host itself answers.
    Host(Box<dyn HostQuestion>),
}

/// Evaluates the response of an upstream that is the auxiliary source.
pub type EvaluateResponse = fn(UpstreamResponse, &PinnedHead) -> AuxiliaryAnswer;

/// A question that the host answers, such as one to an index of blocks.
pub trait HostQuestion: fmt::Debug + Send {
    /// Answers the question.
    fn answer(self: Box<Self>) -> Pin<Box<dyn Future<Output = HostAnswer> + Send>>;
}

/// The host's answer to a question.
#[derive(Debug)]
pub struct HostAnswer {
    /// The answer.
    pub answer: AuxiliaryAnswer,
    /// A value that is dropped once the session has the answer, such as the reservation of its memory.
    pub reserved: Box<dyn Any + Send>,
}

/// The answer to an [`AuxiliaryRequest`].
#[derive(Debug)]
pub enum AuxiliaryAnswer {
    /// The whole answer to the caller's request. The answer may be another one later, so that the client does not keep it.
    Whole(Outcome),
    /// The whole answer to the caller's request, as with [`Self::Whole`]. The answer cannot change any more, so that the client
    /// keeps it for later requests to the source that are the same.
    Final(Box<RawValue>),
    /// A part of the answer, and the caller's request for the rest, which the session answers next.
    Part(Box<dyn PartialResult>, Request),
}

/// A part of an answer, which waits until the session has the rest.
pub trait PartialResult: fmt::Debug + Send {
    /// The bytes of memory that the waiting part takes.
    fn bytes(&self) -> usize;

    /// The whole answer, made of this part and `rest`, the result of the request for the rest.
    ///
    /// # Errors
    /// The error to answer instead, such as that both parts together are too long.
    fn joined(self: Box<Self>, rest: &RawValue) -> Outcome;
}
