//! The requests of a fetch to the upstreams of a fork, and their responses. The files beside this one write fetches as functions
//! without waiting; the host sends the requests and runs the function again.

use alloc::borrow::ToOwned;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::Display;

use super::error::ForkError;
use crate::light::{RequestFailure, UnprovenPolicy, UpstreamRequest, UpstreamResponse};

/// JSON-RPC error code of a method that does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// The exchanges of one fetch. A fetch is a function that runs again with each response: [`Stop::Ask`] names the requests that it needs
/// next. Each run makes the same requests in the same order, so the stored exchanges answer the first ones.
#[derive(Debug)]
pub struct Exchanges {
    names: Arc<[String]>,
    unproven: UnprovenPolicy,
    done: Vec<Exchange>,
    /// How many of `done` the present run has used.
    used: usize,
}

/// The index of an upstream, the requests to it, and its responses.
type Exchange = (usize, Vec<UpstreamRequest>, Arc<[UpstreamResponse]>);

/// Why a run of a fetch ended without a result.
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
    /// Begins without exchanges. `names` are the names of the upstreams, which are asked in this order; a quorum asks all until enough
    /// agree.
    #[must_use]
    pub fn new(names: Arc<[String]>, unproven: UnprovenPolicy) -> Self {
        Self { names, unproven, done: Vec::new(), used: 0 }
    }

    /// Stores the responses to the requests of [`Stop::Ask`], before the fetch runs again. Missing responses count as failed.
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

    /// The number of answered exchanges that are stored. When [`Stop::Ask`] is returned, those of completed parts are dropped already.
    #[must_use]
    pub const fn answered(&self) -> usize {
        self.done.len()
    }

    /// Whether state without proof is accepted, and from how many upstreams.
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

    /// Drops the exchanges of a completed part of a fetch, because later runs do not request that part. `used` is the value of
    /// [`Self::used`] from before the part.
    pub(super) fn forget(&mut self, used: usize) {
        self.done.truncate(used);
        self.used = used;
    }

    /// The responses of an upstream to requests.
    ///
    /// # Errors
    /// [`Stop::Ask`] if they are not stored.
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
            // Exchanges beyond the present run, if any, have other requests.
            self.done.truncate(self.used);
            return Err(Stop::Ask(upstream, requests));
        };
        self.used = self.used.saturating_add(1);
        Ok(responses.clone())
    }

    /// Asks one upstream after the other until `read` accepts the responses of one. `read` gets the upstream's name. Returns the error
    /// for the last upstream if it accepts none.
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

/// The error if there are no upstreams.
pub(super) fn no_upstream() -> ForkError {
    ForkError::Upstream("no upstream is given".to_owned())
}

/// Whether a request failed because the upstream does not have the method.
pub(super) const fn lacks_method(failure: &RequestFailure) -> bool {
    matches!(failure, RequestFailure::Rpc { code: METHOD_NOT_FOUND, .. })
}

/// The text of a result; `None` for `null`. `what` names the data in the error.
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

/// The error of an upstream's response that does not decode or is not what a hash commits to.
pub(super) fn refuted(name: &str, what: &str, reason: impl Display) -> ForkError {
    ForkError::False { name: name.to_owned(), what: what.to_owned(), reason: reason.to_string() }
}
