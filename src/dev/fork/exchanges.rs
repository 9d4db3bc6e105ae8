//! Requests to the upstreams of a fork, and their responses.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;

use super::error::ForkError;
use crate::light::{RequestFailure, UnprovenPolicy, UpstreamRequest, UpstreamResponse};

/// JSON-RPC error code of a method that does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// The exchanges of one fetch, which is a function that runs again with each response: [`Stop::Ask`] names what it needs next.
/// Runs ask in the same order each time.
#[derive(Debug)]
pub struct Exchanges {
    names: Arc<[String]>,
    unproven: UnprovenPolicy,
    done: Vec<Exchange>,
    /// How many of them the present run has used.
    used: usize,
}

/// An upstream, what it was asked, and what it responded.
type Exchange = (usize, Vec<UpstreamRequest>, Arc<[UpstreamResponse]>);

/// Why a fetch has not ended well.
#[derive(Debug)]
pub enum Stop {
    /// The fetch needs the responses of the upstream with this index to these requests.
    Ask(usize, Vec<UpstreamRequest>),
    /// The upstreams do not supply the data.
    Failed(ForkError),
}

impl From<ForkError> for Stop {
    fn from(error: ForkError) -> Self {
        Self::Failed(error)
    }
}

/// The result of a fetch.
pub type Fetched<T> = Result<T, Stop>;

impl Exchanges {
    /// No exchanges yet with upstreams of these names, which are asked in this order. With a quorum each of them counts.
    #[must_use]
    pub fn new(names: Arc<[String]>, unproven: UnprovenPolicy) -> Self {
        Self { names, unproven, done: Vec::new(), used: 0 }
    }

    /// Takes the responses to requests that a fetch has asked for, before it runs again. Missing ones count as failed.
    pub fn feed(
        &mut self,
        upstream: usize,
        requests: Vec<UpstreamRequest>,
        mut responses: Vec<UpstreamResponse>,
    ) {
        let failed = || Err(RequestFailure::Malformed("no response"));
        responses.resize_with(requests.len(), failed);
        self.done.push((upstream, requests, responses.into()));
        self.used = 0;
    }

    /// How many exchanges are held. Once [`Stop::Ask`] is returned, those of parts that are done are not.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.done.len()
    }

    pub(super) const fn unproven(&self) -> UnprovenPolicy {
        self.unproven
    }

    /// The names of the upstreams.
    pub(super) fn names(&self) -> Arc<[String]> {
        self.names.clone()
    }

    /// The name of the first upstream.
    pub(super) fn first_name(&self) -> String {
        self.names.first().cloned().unwrap_or_default()
    }

    /// How many exchanges the present run has used.
    pub(super) const fn used(&self) -> usize {
        self.used
    }

    /// Drops the exchanges of a part of a fetch that is done: later runs do not ask for it. `used` is from before that part.
    pub(super) fn forget(&mut self, used: usize) {
        self.done.truncate(used);
        self.used = used;
    }

    /// The responses of an upstream to requests.
    pub(super) fn ask(
        &mut self,
        upstream: usize,
        requests: Vec<UpstreamRequest>,
    ) -> Fetched<Arc<[UpstreamResponse]>> {
        if requests.is_empty() {
            return Ok(Arc::default());
        }
        let next = self.done.get(self.used).filter(|(of, asked, _)| *of == upstream && *asked == requests);
        let Some((.., responses)) = next else {
            self.done.truncate(self.used);
            return Err(Stop::Ask(upstream, requests));
        };
        self.used = self.used.saturating_add(1);
        Ok(responses.clone())
    }

    /// Asks one upstream after the other until `read` takes what one answers.
    pub(super) fn first<T>(
        &mut self,
        requests: &[UpstreamRequest],
        read: impl Fn(&str, &[UpstreamResponse]) -> Result<T, ForkError>,
    ) -> Fetched<T> {
        let mut failure = no_upstream();
        for (upstream, name) in self.names().iter().enumerate() {
            match read(name, &self.ask(upstream, requests.to_vec())?) {
                Ok(value) => return Ok(value),
                Err(error) => failure = error,
            }
        }
        Err(failure.into())
    }
}

/// No upstream was given.
pub(super) fn no_upstream() -> ForkError {
    ForkError::Upstream("no upstream is given".to_owned())
}

/// Whether the upstream has no such method.
pub(super) const fn lacks_method(failure: &RequestFailure) -> bool {
    matches!(failure, RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. })
}

/// The text of a result that is not `null`.
pub(super) fn given<'a>(
    name: &str,
    what: &str,
    response: Option<&'a UpstreamResponse>,
) -> Result<Option<&'a str>, ForkError> {
    let reason = match response {
        Some(Ok(raw)) => return Ok(Some(raw.get()).filter(|text| *text != "null")),
        Some(Err(failure)) => failure.to_string(),
        None => "no response".to_owned(),
    };
    Err(ForkError::Unanswered { name: name.to_owned(), what: what.to_owned(), reason })
}

/// The upstream's answer is not what a hash commits to.
pub(super) fn refuted(name: &str, what: &str, reason: impl Display) -> ForkError {
    ForkError::False { name: name.to_owned(), what: what.to_owned(), reason: reason.to_string() }
}
