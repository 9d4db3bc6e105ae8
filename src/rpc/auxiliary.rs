//! Auxiliary sources of a host: asked before its upstreams, or when they cannot prove an answer.

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
    /// The question to send in place of a request, or the error that refuses it. `None`: the client answers the
    /// request.
    fn intercept(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        known: KnownFacts<'_>,
    ) -> Option<Result<AuxiliaryRequest, RpcError>>;

    /// The question that takes the place of a request which is refused here, or the error that refuses the request. `None`:
    /// upstreams are asked, as far as the client's configuration allows it.
    fn fall_back(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        refusal: &Refusal,
    ) -> Option<Result<AuxiliaryRequest, RpcError>>;

    /// Reads the state among the facts that a run misses; `None` if there is none of it here.
    ///
    /// # Errors
    /// The run is refused.
    fn supply_state(
        &self,
        missing: &Facts,
        pinned: &PinnedHead,
        known: KnownFacts<'_>,
    ) -> Result<Option<ProvenNodes>, Refusal>;
}

/// A question to the auxiliary source.
#[derive(Debug)]
pub enum AuxiliaryRequest {
    /// A request to the best upstream, which is the source.
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
    pub held: Box<dyn Any + Send>,
}

/// The answer to a question.
#[derive(Debug)]
pub enum AuxiliaryAnswer {
    /// The answer to the request.
    Whole(Outcome),
    /// The answer to the request. It cannot change any more, and is kept for later requests that ask the same.
    Final(Box<RawValue>),
    /// A part of the answer, and the request for the rest.
    Part(Box<dyn PartialResult>, Request),
}

/// A part of an answer, whose rest is answered next.
pub trait PartialResult: fmt::Debug + Send {
    /// The bytes that the part takes until then.
    fn bytes(&self) -> usize;

    /// The whole answer.
    ///
    /// # Errors
    /// The whole answer is not allowed.
    fn joined(self: Box<Self>, rest: &RawValue) -> Outcome;
}
