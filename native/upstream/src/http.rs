//! JSON-RPC over HTTP: batches, limits of time and size, retries with increasing pauses.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use bytes::Bytes;
use futures::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use rootlight::light::{UpstreamRequest, encode_batch};
use rootlight_limits::Limits;
use rootlight_limits::budget::Reservation;
use rustls::ClientConfig;
use tokio::time::{Instant, timeout};
use tracing::debug;

use super::batch::{BatchTransport, Batching, Decoded, ask_all, decode_incoming};
use super::error::{NOT_A_URL, redact};
use super::last_address::LastAddress;
use super::source_quota::{CONTENDED, ReceivedBytes, SourceQuota, bytes_to_reserve};
use super::words::{self, describe};
use super::{ReservedResults, Upstream, UpstreamError, UpstreamResult, UrlError, quota_owner, tls};

/// Id of the first request in a batch.
const FIRST_ID: u64 = 1;

/// Bytes that are taken from the budget at a time while a response is read.
const READ_STEP: usize = 128 * 1024;

/// Limits of an upstream over HTTP or WebSocket.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Requests in one batch. The reference node refuses more than 50, many gateways more than 20.
    pub batch: usize,
    /// Number of batches that are sent before the first response.
    pub parallel: usize,
    /// Time limit for one try of a batch, connection and body included.
    pub timeout: Duration,
    /// Longest response, in bytes after decompression. The reference node stops at 10 MiB. A batch with a
    /// longer response is sent again in halves.
    pub answer_bytes: usize,
    /// Number of tries for one batch.
    pub attempts: u32,
    /// Pause after the first failed try; it doubles after each further one.
    pub pause: Duration,
    /// Longest pause, even if the upstream asks for more (`Retry-After`).
    pub longest_pause: Duration,
    /// The budgets in which responses count until they are verified.
    pub limits: Arc<Limits>,
}

impl HttpConfig {
    /// Limits for one of several upstreams: they give up sooner, so that another upstream is asked.
    #[must_use]
    pub fn one_of_several() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            attempts: 2,
            longest_pause: Duration::from_secs(2),
            ..Self::default()
        }
    }

    /// The pauses after failed tries, without an end.
    pub(super) fn pauses(&self) -> ExponentialBuilder {
        let pauses = ExponentialBuilder::new().with_factor(2.0).without_max_times();
        pauses.with_min_delay(self.pause).with_max_delay(self.longest_pause)
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            batch: 20,
            parallel: 4,
            timeout: Duration::from_secs(20),
            answer_bytes: 12 * 1024 * 1024,
            attempts: 4,
            pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(30),
            limits: Limits::new(),
        }
    }
}

/// An upstream over HTTP or HTTPS.
pub struct HttpUpstream {
    url: reqwest::Url,
    client: reqwest::Client,
    config: HttpConfig,
    batching: Batching,
    last_address: LastAddress,
    quota: SourceQuota,
}

/// A try that failed.
struct FailedAttempt {
    error: UpstreamError,
    /// `None` if another try cannot help; `Some` with the wait that the upstream asks for (`Retry-After`), if it states one.
    retry: Option<Option<Duration>>,
}

impl HttpUpstream {
    /// Prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// The text is not a URL, or the HTTP client cannot be created.
    pub fn new(url: &str, config: HttpConfig) -> Result<Self, UrlError> {
        let failed = |reason: String| UrlError { name: redact(url), reason };
        let url: reqwest::Url = url.parse().map_err(|_| failed(NOT_A_URL.into()))?;
        let client = client(config.timeout).map_err(failed)?;
        let batching = Batching::new(url.as_str(), config.batch, config.parallel);
        let last_address = LastAddress::of(url.as_str());
        let quota = SourceQuota::of_upstream(&config.limits);
        Ok(Self { url, client, config, batching, last_address, quota })
    }

    /// Sends one batch of `count` requests once.
    async fn once(&self, body: Bytes, count: usize) -> Result<(Decoded, Reservation), FailedAttempt> {
        let sent =
            self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body).send();
        let response = sent.await.map_err(|failure| self.transport(failure))?;
        self.last_address.note(response.remote_addr().map(|peer| peer.ip()));
        let status = response.status();
        let wanted = retry_after(response.headers());
        let body = self.read(response).await;
        if status.as_u16() == 429 || status.is_server_error() {
            let status = status.as_u16();
            let error = wanted.map_or(UpstreamError::Status(status), |pause| UpstreamError::Busy {
                status,
                seconds: pause.as_secs(),
            });
            return Err(FailedAttempt { error, retry: Some(wanted) });
        }
        // "Content Too Large": halves of the batch may be accepted.
        if status.as_u16() == 413 && count > 1 {
            return Ok((Decoded::Refused(UpstreamError::Status(413)), Reservation::default()));
        }
        if let (Err(FailedAttempt { error: UpstreamError::TooLarge(limit), .. }), true) = (&body, count > 1) {
            return Ok((Decoded::Refused(UpstreamError::TooLarge(*limit)), Reservation::default()));
        }
        // The reference node sends some JSON-RPC errors with status 400, so the body is decoded before the
        // status is judged.
        let decoded = match body {
            Ok(body) => decode_incoming(body, FIRST_ID, count).await.map_err(FailedAttempt::last),
            Err(failure) => Err(failure),
        };
        match decoded {
            Err(failure) if !status.is_success() && matches!(failure.error, UpstreamError::Malformed(_)) => {
                Err(FailedAttempt::last(UpstreamError::Status(status.as_u16())))
            }
            other => other,
        }
    }

    /// Reads a body up to the size limit. The announced length is not trusted.
    async fn read(&self, mut response: reqwest::Response) -> Result<ReceivedBytes, FailedAttempt> {
        let limit = self.config.answer_bytes;
        let used_up = |_| FailedAttempt::last(UpstreamError::BudgetUsedUp);
        // `begun` is the time from which the upstream counts as slow.
        let (mut bytes, mut reserved, mut begun) = (Vec::new(), Reservation::default(), Instant::now());
        loop {
            // The timeout only makes `check_pace` run often enough while no bytes come.
            let chunk = timeout(CONTENDED, response.chunk()).await;
            self.quota.check_pace(&reserved, begun.elapsed()).map_err(FailedAttempt::last)?;
            let Ok(chunk) = chunk else { continue };
            let Some(chunk) = chunk.map_err(|failure| self.transport(failure))? else { break };
            if bytes.len().saturating_add(chunk.len()) > limit {
                return Err(FailedAttempt::last(UpstreamError::TooLarge(limit)));
            }
            let length = bytes.len().saturating_add(chunk.len());
            let missing = bytes_to_reserve(length).saturating_sub(reserved.bytes());
            if missing > 0 {
                let more = missing.max(READ_STEP);
                // A response that holds bytes of the budget already does not wait for more.
                let taken = match reserved.bytes() {
                    0 => self.quota.reserve_when_free(more).await,
                    _ => self.quota.try_reserve(more),
                };
                if reserved.bytes() == 0 {
                    // The wait for bytes of the budget is no slowness of the upstream.
                    begun = Instant::now();
                }
                reserved.merge(taken.map_err(used_up)?);
                bytes.reserve_exact(READ_STEP.max(chunk.len()));
            }
            bytes.extend_from_slice(&chunk);
        }
        self.quota.admit(bytes, reserved).map_err(used_up)
    }

    /// The failure of a connection. A request of a caller is not sent again after the time limit: the upstream may still be
    /// running it, and would run it once more.
    fn transport(&self, failure: reqwest::Error) -> FailedAttempt {
        let may_run = failure.is_timeout() && !failure.is_connect();
        let retry = (!may_run || quota_owner().is_none()).then_some(None);
        let error = if failure.is_timeout() {
            UpstreamError::Timeout(self.config.timeout.as_millis())
        } else {
            let is_open = !failure.is_connect();
            // The URL may contain a key.
            let failure = failure.without_url();
            UpstreamError::Transport(if is_open { describe(&failure) } else { words::unopened(&failure) })
        };
        FailedAttempt { error, retry }
    }
}

impl FailedAttempt {
    /// A failure after which another try cannot help.
    fn last(error: UpstreamError) -> Self {
        Self { error, retry: None }
    }
}

impl BatchTransport for HttpUpstream {
    fn send<'a>(
        &'a self,
        requests: &'a [UpstreamRequest],
    ) -> BoxFuture<'a, Result<(Decoded, Reservation), UpstreamError>> {
        Box::pin(async move {
            // `Bytes`, so that all tries share one copy.
            let body = Bytes::from(encode_batch(requests, FIRST_ID));
            let retries = self.config.attempts.saturating_sub(1) as usize;
            let longest = self.config.longest_pause;
            (|| self.once(body.clone(), requests.len()))
                .retry(self.config.pauses().with_max_times(retries))
                .sleep(tokio::time::sleep)
                .when(|failure| failure.retry.is_some())
                .adjust(|failure, pause| {
                    let wanted = failure.retry.flatten();
                    pause.map(|pause| wanted.unwrap_or(pause).min(longest))
                })
                .notify(|failure, wait| {
                    debug!(upstream = %self.batching.name, error = %failure.error, ?wait, "trying again");
                })
                .await
                .map_err(|failure| failure.error)
        })
    }

    fn batching(&self) -> &Batching {
        &self.batching
    }
}

impl Upstream for HttpUpstream {
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

    fn address(&self) -> Option<IpAddr> {
        self.last_address.address()
    }
}

/// Makes an HTTP client whose requests take at most `limit`.
pub(super) fn client(limit: Duration) -> Result<reqwest::Client, String> {
    reqwest::Client::builder()
        .timeout(limit)
        .connect_timeout(limit)
        // A redirect could lead to addresses inside our own network.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("rootlight/", env!("CARGO_PKG_VERSION")))
        .tls_backend_preconfigured(ClientConfig::clone(&tls::config()))
        .build()
        .map_err(|failure| failure.without_url().to_string())
}

/// Reads `Retry-After` in seconds. Its date form is ignored, because JSON-RPC gateways do not use it.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::super::with_caller;
    use super::*;

    /// How often a node that never answers is sent a request.
    async fn tries(owner: Option<u64>) -> usize {
        let node = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", node.local_addr().unwrap());
        let taken = tokio::spawn(async move {
            let mut open = Vec::new();
            while let Ok(Ok((stream, _))) = timeout(Duration::from_secs(5), node.accept()).await {
                open.push(stream);
            }
            open.len()
        });
        let (limit, pause) = (Duration::from_millis(100), Duration::from_millis(10));
        let config = HttpConfig { timeout: limit, pause, ..HttpConfig::default() };
        let upstream = HttpUpstream::new(&url, config).unwrap();
        let asked = upstream.request(vec![UpstreamRequest::new("eth_call", "[]".into())]);
        let answers = match owner {
            Some(owner) => with_caller(owner.into(), asked).await,
            None => asked.await,
        };
        assert!(matches!(answers[0], Err(UpstreamError::Timeout(_))), "{answers:?}");
        taken.await.unwrap()
    }

    #[tokio::test]
    async fn a_request_of_a_caller_is_not_run_again_after_the_time_limit() {
        assert_eq!(tries(Some(1)).await, 1);
        assert_eq!(tries(None).await, 4, "the program asks again");
    }
}
