//! JSON-RPC over WebSocket. The connection is opened again when it breaks, and no request is lost.
//!
//! One task owns the connection. Callers hand it batches and wait. Batches without a response when the
//! connection breaks are sent again over the next connection, with the same number of tries as over HTTP.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::future::BoxFuture;
use rootlight::light::{UpstreamRequest, encode_batch};
use rootlight_limits::budget::Reservation;
use tokio::sync::{Notify, OnceCell, mpsc, oneshot};

use super::batch::{BatchTransport, Batching, Decoded, ask_all, decode_incoming};
use super::error::{NOT_A_URL, redact};
use super::last_address::LastAddress;
use super::ws_link::{OutgoingBatch, WsConnection};
use super::{HttpConfig, ReservedResults, Upstream, UpstreamError, UpstreamResult, UrlError, quota_owner};

/// Most batches that wait for the connection's task. Further senders wait.
const QUEUE: usize = 64;

/// An upstream over WebSocket.
pub struct WsUpstream {
    url: String,
    config: HttpConfig,
    batching: Batching,
    /// The next unused request id. Ids are unique over all connections, so that a late response answers no other request.
    next: AtomicU64,
    /// Signals new blocks.
    heads: Arc<Notify>,
    last_address: Arc<LastAddress>,
    /// The queue of the connection's task; empty until the first request starts the task.
    batches: OnceCell<mpsc::Sender<OutgoingBatch>>,
}

impl WsUpstream {
    /// Prepares a client with the limits of an HTTP upstream; nothing is sent yet.
    ///
    /// # Errors
    /// The text is not a URL.
    pub fn new(url: &str, config: HttpConfig) -> Result<Self, UrlError> {
        let parsed: Result<reqwest::Url, _> = url.parse();
        if !parsed.is_ok_and(|url| url.has_host()) {
            return Err(UrlError { name: redact(url), reason: NOT_A_URL.into() });
        }
        Ok(Self {
            url: url.to_owned(),
            batching: Batching::new(url, config.batch, config.parallel),
            config,
            next: AtomicU64::new(1),
            heads: Arc::default(),
            last_address: Arc::new(LastAddress::of(url)),
            batches: OnceCell::new(),
        })
    }

    /// Returns the queue of the connection's task, which the first request starts.
    async fn batches(&self) -> &mpsc::Sender<OutgoingBatch> {
        let start = || async {
            let (sender, receiver) = mpsc::channel(QUEUE);
            let (heads, last_address) = (self.heads.clone(), self.last_address.clone());
            let link = WsConnection::new(
                self.url.clone(),
                self.batching.name.clone(),
                self.config.clone(),
                heads,
                last_address,
            );
            tokio::spawn(link.run(receiver));
            sender
        };
        self.batches.get_or_init(start).await
    }
}

impl BatchTransport for WsUpstream {
    fn send<'a>(
        &'a self,
        requests: &'a [UpstreamRequest],
    ) -> BoxFuture<'a, Result<(Decoded, Reservation), UpstreamError>> {
        Box::pin(async move {
            let task_ended = || UpstreamError::Transport("the connection's task has ended".into());
            let first = self.next.fetch_add(requests.len() as u64, Ordering::Relaxed);
            let body = encode_batch(requests, first);
            let (answer, answered) = oneshot::channel();
            let (count, is_caller) = (requests.len(), quota_owner().is_some());
            let batch = OutgoingBatch { first, count, body, is_caller, answer };
            self.batches().await.send(batch).await.map_err(|_| task_ended())?;
            match answered.await.map_err(|_| task_ended())? {
                Ok(response) => decode_incoming(response, first, requests.len()).await,
                // As over HTTP, a batch with too long a response is sent again in halves.
                Err(error @ UpstreamError::TooLarge(_)) if requests.len() > 1 => {
                    Ok((Decoded::Refused(error), Reservation::default()))
                }
                Err(error) => Err(error),
            }
        })
    }

    fn batching(&self) -> &Batching {
        &self.batching
    }
}

impl Upstream for WsUpstream {
    fn request(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, Vec<UpstreamResult>> {
        // The results count in no budget after they were read.
        Box::pin(async move { ask_all(self, requests, false).await.0 })
    }

    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        // The reservation covers the results.
        Box::pin(ask_all(self, requests, true))
    }

    fn name(&self) -> &str {
        &self.batching.name
    }

    fn head_signal(&self) -> Option<Arc<Notify>> {
        Some(self.heads.clone())
    }

    fn address(&self) -> Option<IpAddr> {
        self.last_address.address()
    }
}
