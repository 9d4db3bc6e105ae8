//! The trait [`Upstream`] of sources of chain data: nodes over HTTP or WebSocket, peers, recordings, and wrappers of these.

use std::net::IpAddr;
use std::sync::Arc;

use futures::future::BoxFuture;
use rootlight::light::UpstreamRequest;
use rootlight_limits::budget::Reservation;
use tokio::sync::Notify;

use super::error::UpstreamResult;

/// The source that answers now, of an upstream that uses one source after another, such as a slot of discovered nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurrentSource {
    /// A number that no earlier source of this upstream had.
    pub number: u64,
    /// The name of the source, in the form of [`Upstream::name`].
    pub name: String,
    /// Whether there is no source at present: requests fail until one is found.
    pub vacant: bool,
}

/// Why a source should be replaced by another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dismissal {
    /// The source sent data that no honest source sends. The text is the evidence.
    Lied(String),
    /// The source is useless for this reason, and may be honest.
    Useless(String),
}

/// The results of requests, and the bytes of a budget that they take.
pub type ReservedResults = (Vec<UpstreamResult>, Reservation);

/// Adds an empty reservation to results that count in no budget: those of a chain in the same process.
pub async fn unreserved(results: impl Future<Output = Vec<UpstreamResult>>) -> ReservedResults {
    (results.await, Reservation::default())
}

/// A source of chain data.
pub trait Upstream: Send + Sync + 'static {
    /// Sends all requests, and returns their results in the same order, with the bytes of the budget that they take. The caller
    /// keeps the reservation as long as the results. A failure of the whole batch, such as a broken connection, becomes the
    /// error of each request.
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults>;

    /// Does what [`Self::request_reserved`] does, for results that need not count in the budget after they were read.
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        Box::pin(async move { self.request_reserved(requests).await.0 })
    }

    /// Returns a name for logs, without credentials and without the path, which may hold an API key.
    fn name(&self) -> &str;

    /// Returns the upstream to which this one passes requests on, for a wrapper. A wrapper that does not implement the methods
    /// below has those of the inner upstream.
    fn inner(&self) -> Option<&dyn Upstream> {
        None
    }

    /// Returns the IP address at which the upstream was reached last; `None` if it is not known.
    fn address(&self) -> Option<IpAddr> {
        self.inner()?.address()
    }

    /// Returns the source that answers now, for an upstream with one source after another; `None` if it is always the same.
    fn current_source(&self) -> Option<CurrentSource> {
        self.inner()?.current_source()
    }

    /// Asks the upstream to replace the source with this number ([`CurrentSource::number`]), for this reason. Does nothing if the
    /// source was replaced already, or if the upstream has only one source.
    fn dismiss(&self, number: u64, reason: Dismissal) {
        if let Some(inner) = self.inner() {
            inner.dismiss(number, reason);
        }
    }

    /// Returns a signal for new blocks, if the upstream announces them without a request. The signal only causes an
    /// earlier request for the head.
    fn head_signal(&self) -> Option<Arc<Notify>> {
        self.inner()?.head_signal()
    }
}

impl std::fmt::Debug for dyn Upstream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An upstream shared by all its users.
pub type SharedUpstream = Arc<dyn Upstream>;
