//! JSON-RPC over HTTP: batches, time and size limits, retries with growing pauses.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use futures::future::BoxFuture;
use reqwest::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use rootlight::light::{UpstreamCall, encode_batch};
use tracing::debug;

use crate::budget::{self, Held};

use super::batch::{Decoded, Exchange, ask_all, decode_apart};
use super::error::Secrets;
use super::{CallResult, Upstream, UpstreamError, UrlError};

/// Ids of the calls of a message count from here.
const FIRST_ID: u64 = 1;

/// Bytes of the budget that are taken at a time while an answer is read.
const READ_STEP: usize = 128 * 1024;

/// How often the bytes of an answer are there while it is taken apart: as it came, and its parts.
pub(super) const COPIES: usize = 2;

/// How long reading waits for room.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);

/// Limits of an upstream over HTTP or WebSocket.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// Calls in one message. The reference refuses more than 50; many gateways more than 20.
    pub batch: usize,
    /// Messages on their way at the same time.
    pub parallel: usize,
    /// Time for one message, connection and body included.
    pub timeout: Duration,
    /// Longest answer taken, bytes after decompression. The reference stops at 10 MiB; of a batch whose answer is
    /// longer, halves are asked for.
    pub answer_bytes: usize,
    /// Tries of one message.
    pub attempts: u32,
    /// Pause after the first failed try; doubles each time.
    pub pause: Duration,
    /// Longest pause, also where the upstream asks for more (`Retry-After`).
    pub longest_pause: Duration,
}

impl HttpConfig {
    /// For one of several upstreams: another one is asked sooner.
    #[must_use]
    pub fn one_of_several() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            attempts: 2,
            longest_pause: Duration::from_secs(2),
            ..Self::default()
        }
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
        }
    }
}

/// An upstream spoken to over HTTP or HTTPS.
pub struct HttpUpstream {
    url: reqwest::Url,
    name: String,
    secrets: Secrets,
    client: reqwest::Client,
    config: HttpConfig,
    /// Calls per message that this upstream is known to take; shrinks when it refuses a batch.
    batch: AtomicUsize,
}

/// A try that failed.
struct Failure {
    error: UpstreamError,
    /// Whether another try may help, and how long the upstream wants us to wait.
    retry: Option<Option<Duration>>,
}

impl HttpUpstream {
    /// Prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// The text is no URL, or the client cannot be made.
    pub fn new(url: &str, config: HttpConfig) -> Result<Self, UrlError> {
        // One process-wide choice; a second call finds it made.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let failed = |reason: String| UrlError { name: redact(url), reason };
        let url: reqwest::Url = url.parse().map_err(|_| failed("not a URL".into()))?;
        let client = reqwest::Client::builder()
            .timeout(config.timeout)
            .connect_timeout(config.timeout)
            // An upstream must not send us to other places inside our network.
            .redirect(reqwest::redirect::Policy::none())
            .user_agent(concat!("rootlight/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|failure| failed(failure.without_url().to_string()))?;
        let (name, secrets) = (redact(url.as_str()), Secrets::of(url.as_str()));
        let batch = AtomicUsize::new(config.batch.max(1));
        Ok(Self { url, name, secrets, client, config, batch })
    }

    /// Sends one message until it is answered or the tries are used up.
    async fn attempt(&self, calls: &[UpstreamCall]) -> Result<(Decoded, Held), UpstreamError> {
        let body = encode_batch(calls, FIRST_ID);
        let mut pause = self.config.pause;
        let mut attempt = 1;
        loop {
            let failure = match self.once(body.clone(), calls.len()).await {
                Ok(decoded) => return Ok(decoded),
                Err(failure) => failure,
            };
            let Some(wanted) = failure.retry.filter(|_| attempt < self.config.attempts) else {
                return Err(failure.error);
            };
            let wait = wanted.unwrap_or(pause).min(self.config.longest_pause);
            debug!(upstream = %self.name, error = %failure.error, attempt, ?wait, "trying again");
            tokio::time::sleep(wait).await;
            pause = pause.saturating_mul(2);
            attempt += 1;
        }
    }

    async fn once(&self, body: String, count: usize) -> Result<(Decoded, Held), Failure> {
        let sent =
            self.client.post(self.url.clone()).header(CONTENT_TYPE, "application/json").body(body).send();
        let response = sent.await.map_err(|failure| self.transport(failure))?;
        let status = response.status();
        let wanted = retry_after(response.headers());
        let text = self.read(response).await;
        if status.as_u16() == 429 || status.is_server_error() {
            let status = status.as_u16();
            let error = wanted.map_or(UpstreamError::Status(status), |pause| UpstreamError::Busy {
                status,
                seconds: pause.as_secs(),
            });
            return Err(Failure { error, retry: Some(wanted) });
        }
        if status.as_u16() == 413 && count > 1 {
            return Ok((Decoded::Refused(UpstreamError::Status(413)), Held::default()));
        }
        if let (Err(Failure { error: UpstreamError::TooLarge(limit), .. }), true) = (&text, count > 1) {
            return Ok((Decoded::Refused(UpstreamError::TooLarge(*limit)), Held::default()));
        }
        // The reference sends some JSON-RPC errors with status 400, so the body is looked at first.
        let decoded = match text {
            Ok((text, held)) => {
                let decoded = decode_apart(text, FIRST_ID, count).await;
                decoded.map(|decoded| (decoded, held)).map_err(Failure::last)
            }
            Err(failure) => Err(failure),
        };
        match decoded {
            Err(failure) if !status.is_success() && matches!(failure.error, UpstreamError::Malformed(_)) => {
                Err(Failure::last(UpstreamError::Status(status.as_u16())))
            }
            other => other,
        }
    }

    /// Reads a body up to the size limit, without trusting the announced length.
    async fn read(&self, mut response: reqwest::Response) -> Result<(String, Held), Failure> {
        let limit = self.config.answer_bytes;
        let (mut bytes, mut held) = (Vec::new(), Held::default());
        while let Some(chunk) = response.chunk().await.map_err(|failure| self.transport(failure))? {
            if bytes.len().saturating_add(chunk.len()) > limit {
                return Err(Failure::last(UpstreamError::TooLarge(limit)));
            }
            let length = bytes.len().saturating_add(chunk.len());
            if length > held.bytes() / COPIES {
                let more = (length - held.bytes() / COPIES).max(READ_STEP);
                let room = budget::upstreams().take_within(more.saturating_mul(COPIES), ROOM_PATIENCE).await;
                held.merge(room.ok_or(Failure::last(UpstreamError::NoRoom))?);
                bytes.reserve_exact(more.max(chunk.len()));
            }
            bytes.extend_from_slice(&chunk);
        }
        held.shrink_to(bytes.len().saturating_mul(COPIES));
        let text = String::from_utf8(bytes);
        let text = text.map_err(|_| Failure::last(UpstreamError::Malformed("not UTF-8".into())))?;
        Ok((text, held))
    }

    fn transport(&self, failure: reqwest::Error) -> Failure {
        let error = if failure.is_timeout() {
            UpstreamError::Timeout(self.config.timeout.as_millis())
        } else {
            // The URL may hold a key.
            UpstreamError::Transport(describe(&failure.without_url()))
        };
        Failure { error, retry: Some(None) }
    }
}

impl Failure {
    fn last(error: UpstreamError) -> Self {
        Self { error, retry: None }
    }
}

impl Exchange for HttpUpstream {
    fn send<'a>(
        &'a self,
        calls: &'a [UpstreamCall],
    ) -> BoxFuture<'a, Result<(Decoded, Held), UpstreamError>> {
        Box::pin(self.attempt(calls))
    }

    fn size(&self) -> &AtomicUsize {
        &self.batch
    }

    fn parallel(&self) -> usize {
        self.config.parallel
    }

    fn label(&self) -> &str {
        &self.name
    }

    fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}

impl Upstream for HttpUpstream {
    fn request(&self, calls: Vec<UpstreamCall>) -> BoxFuture<'_, Vec<CallResult>> {
        Box::pin(async move { ask_all(self, calls, false).await.0 })
    }

    fn request_held(&self, calls: Vec<UpstreamCall>) -> BoxFuture<'_, (Vec<CallResult>, Held)> {
        Box::pin(ask_all(self, calls, true))
    }

    fn name(&self) -> &str {
        &self.name
    }
}

/// Scheme, host and port only.
pub(super) fn redact(url: &str) -> String {
    match url.parse::<reqwest::Url>() {
        Ok(url) => url.origin().ascii_serialization(),
        Err(_) => "upstream".to_owned(),
    }
}

/// An error with its causes, which is where the useful part of a connection failure is.
fn describe(failure: &dyn std::error::Error) -> String {
    let mut text = failure.to_string();
    let mut source = failure.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// `Retry-After` in seconds; dates are not used by JSON-RPC gateways.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds: u64 = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
