//! The upstreams of a fork.

use std::sync::atomic::{AtomicU64, Ordering};

use rootlight::light::{UnprovenPolicy, UpstreamRequest};
use rootlight_upstream::{SharedUpstream, UpstreamError, UpstreamResult};

use super::error::ForkError;

/// JSON-RPC error code of a method that does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// The upstreams of a fork, and what counts where they do not prove state.
#[derive(Debug)]
pub struct ForkSource {
    pub(super) upstreams: Vec<SharedUpstream>,
    pub(super) unproven: UnprovenPolicy,
    exchanges: AtomicU64,
}

impl ForkSource {
    /// These upstreams, which are asked in this order. With a quorum each of them counts, whatever its domain.
    #[must_use]
    pub fn new(upstreams: Vec<SharedUpstream>, unproven: UnprovenPolicy) -> Self {
        Self { upstreams, unproven, exchanges: AtomicU64::new(0) }
    }

    /// How many lists of requests were sent so far.
    pub fn exchanges(&self) -> u64 {
        self.exchanges.load(Ordering::Relaxed)
    }

    /// Sends requests to one upstream; there are as many results.
    pub(super) async fn ask(
        &self,
        upstream: &SharedUpstream,
        requests: Vec<UpstreamRequest>,
    ) -> Vec<UpstreamResult> {
        if requests.is_empty() {
            return Vec::new();
        }
        let count = requests.len();
        self.exchanges.fetch_add(1, Ordering::Relaxed);
        let (mut results, _reserved) = upstream.request_reserved(requests).await;
        results.resize_with(count, || Err(UpstreamError::Malformed("no response".to_owned())));
        results
    }

    /// Asks one upstream after the other until `read` takes what one answers.
    pub(super) async fn first<T>(
        &self,
        requests: &[UpstreamRequest],
        read: impl Fn(&SharedUpstream, Vec<UpstreamResult>) -> Result<T, ForkError>,
    ) -> Result<T, ForkError> {
        let mut failure = ForkError::Upstream("no upstream is given".to_owned());
        for upstream in &self.upstreams {
            match read(upstream, self.ask(upstream, requests.to_vec()).await) {
                Ok(value) => return Ok(value),
                Err(error) => failure = error,
            }
        }
        Err(failure)
    }
}

/// Whether the upstream has no such method.
pub(super) fn lacks_method(error: &UpstreamError) -> bool {
    matches!(error, UpstreamError::Rpc { code: METHOD_NOT_FOUND, .. })
}

/// The text of a result that is not `null`.
pub(super) fn given(
    upstream: &SharedUpstream,
    what: &str,
    result: Option<UpstreamResult>,
) -> Result<Option<String>, ForkError> {
    match result {
        Some(Ok(raw)) if raw.get() == "null" => Ok(None),
        Some(Ok(raw)) => Ok(Some(raw.get().to_owned())),
        Some(Err(error)) => Err(unanswered(upstream, what, &error.to_string())),
        None => Err(unanswered(upstream, what, "no response")),
    }
}

/// The upstream gave no answer.
pub(super) fn unanswered(upstream: &SharedUpstream, what: &str, reason: &str) -> ForkError {
    ForkError::Unanswered {
        name: upstream.name().to_owned(),
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}

/// The upstream's answer is not what a hash commits to.
pub(super) fn refuted(upstream: &SharedUpstream, what: &str, reason: impl std::fmt::Display) -> ForkError {
    ForkError::False { name: upstream.name().to_owned(), what: what.to_owned(), reason: reason.to_string() }
}
