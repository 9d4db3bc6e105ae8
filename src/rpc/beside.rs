//! What a host has beside its light client, and asks before its upstreams or in their place.

use alloc::boxed::Box;
use core::fmt;

use serde_json::value::RawValue;

use super::{envelope::Outcome, error::RpcError, request::Request};
use crate::{
    engine::Refusal,
    light::{Known, PinnedHead, UpstreamRequest, UpstreamResponse},
    state::Facts,
    trie::ProvenNodes,
};

/// What a host has beside its light client: an index of blocks, or a full node of its own. Nothing proves its answers, so
/// that they are marked `unproven`.
pub trait Beside: fmt::Debug + Send + Sync {
    /// The question that takes the place of a request, or the error that refuses the request. `None`: the request is
    /// answered here.
    fn before(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        known: Known<'_>,
    ) -> Option<Result<Asked, RpcError>>;

    /// The question that takes the place of a request which is refused here, or the error that refuses the request. `None`:
    /// upstreams are asked, as far as the client's configuration allows it.
    fn instead(
        &self,
        request: &Request,
        pinned: &PinnedHead,
        refusal: &Refusal,
    ) -> Option<Result<Asked, RpcError>>;

    /// Reads the state among the facts that a run misses; `None` if there is none of it here.
    ///
    /// # Errors
    /// The run is refused.
    fn supply(
        &self,
        missing: &Facts,
        pinned: &PinnedHead,
        known: Known<'_>,
    ) -> Result<Option<ProvenNodes>, Refusal>;
}

/// A question to what is beside the client. The host sees it as a request to the best upstream.
#[derive(Debug)]
pub struct Asked {
    /// What the host sees.
    pub request: UpstreamRequest,
    /// What becomes of the response.
    pub question: Box<dyn Question>,
}

/// What becomes of the response to a question.
pub trait Question: fmt::Debug + Send {
    /// Evaluates the response.
    fn answered(self: Box<Self>, response: UpstreamResponse, pinned: &PinnedHead) -> Answered;
}

/// The answer to a question.
#[derive(Debug)]
pub enum Answered {
    /// The answer to the request.
    Whole(Outcome),
    /// The answer to the request. It cannot change any more, and is kept for later requests that ask the same.
    Final(Box<RawValue>),
    /// A part of the answer, and the request for the rest.
    Part(Box<dyn Part>, Request),
}

/// A part of an answer, whose rest is answered next.
pub trait Part: fmt::Debug + Send {
    /// The bytes that the part takes until then.
    fn bytes(&self) -> usize;

    /// The whole answer.
    ///
    /// # Errors
    /// The whole answer is not allowed.
    fn joined(self: Box<Self>, rest: &RawValue) -> Outcome;
}
