//! The task that owns a WebSocket connection to an upstream. It takes batches from the queue of `WsUpstream`, sends them, hands the
//! responses to those who wait for them, and opens the connection again when it breaks.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use backon::BackoffBuilder as _;
use futures::{SinkExt as _, StreamExt as _};
use rootlight::light::{ResponseSubject, subject};
use rootlight_limits::budget::Reservation;
use rootlight_p2p::session::RateWindow;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::MaybeTlsStream;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tracing::debug;

use super::error::Secrets;
use super::last_address::LastAddress;
use super::source_quota::{BudgetUsedUp, ReceivedBytes, SourceQuota};
use super::ws_frames::Frames;
use super::ws_open::{Duplex, UpstreamSocket, open};
use super::{HttpConfig, UpstreamError, words};

/// Id of the subscription request; other requests have ids from 1.
const SUBSCRIPTION: u64 = 0;

/// Subscribes to new blocks. An upstream without this method returns an error, which is ignored.
const SUBSCRIBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"eth_subscribe","params":["newHeads"]}"#;

/// Most messages in a minute whose id is not that of a request that was sent, or that are no responses at all. An honest upstream
/// sends hardly any.
const STRAYS: u64 = 64;
/// Most bytes of these messages in a minute.
const STRAY_BYTES: u64 = 1 << 20;

/// Most notices in a minute: notifications of the subscription, control frames, and responses to requests that no longer wait.
/// Blocks come every half a minute, but a development chain can mine a hundred in a second.
const NOTICES: u64 = 6_000;
/// Most bytes of notices in a minute.
const NOTICE_BYTES: u64 = 16 << 20;

/// Longest message that an upstream may send while no batch waits, in bytes.
const LONGEST_UNASKED: usize = 2 << 20;

/// Longest time between two checks for batches and messages that take too long.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// A batch to be sent, and the receiver of its response.
pub(super) struct OutgoingBatch {
    /// Id of the batch's first request. The others follow.
    pub(super) first: u64,
    /// Number of requests.
    pub(super) count: usize,
    /// The batch as JSON text.
    pub(super) body: String,
    /// Whether the requests are those of a caller, and not of the program itself.
    pub(super) is_caller: bool,
    /// Receives the response. The caller decodes it, so that other batches do not wait meanwhile.
    pub(super) answer: oneshot::Sender<Result<ReceivedBytes<Utf8Bytes>, UpstreamError>>,
}

/// Number of failures after which the pause no longer grows: after so many doublings it is the longest one anyway.
const MAX_DOUBLINGS: u32 = 16;

/// A batch without a response yet.
struct PendingBatch {
    batch: OutgoingBatch,
    /// How often the batch was sent.
    tries: u32,
    /// The end of the time limit of the present try.
    deadline: Instant,
}

/// The connection to one upstream, open or broken, with its waiting batches.
pub(super) struct WsConnection {
    url: String,
    /// The upstream's name for logs.
    name: String,
    config: HttpConfig,
    /// Signals new blocks.
    heads: Arc<Notify>,
    last_address: Arc<LastAddress>,
    /// The batches without a response, in the order in which they came.
    waiting: Vec<PendingBatch>,
    /// Number of consecutive connections without any response.
    failures: u32,
    quota: SourceQuota,
    /// For how long this connection was not read because too few bytes of the budget were free, as of the last check.
    unread: Duration,
    /// Whether the upstream has accepted the subscription of this connection.
    subscribed: bool,
    /// The id after the last one of a request that was sent.
    asked: u64,
    strays: UnaskedMeter,
    notices: UnaskedMeter,
    /// The zero of the meters' clock.
    started: Instant,
}

/// Counts messages without a waiting request, and their bytes, over each minute, on all connections to the upstream together.
struct UnaskedMeter {
    messages: RateWindow,
    bytes: RateWindow,
}

impl UnaskedMeter {
    const fn new(messages: u64, bytes: u64) -> Self {
        Self { messages: RateWindow::new(messages), bytes: RateWindow::new(bytes) }
    }

    /// Counts a message.
    fn take(&mut self, now_ms: u64, bytes: usize) -> Result<(), Unasked> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let counted = self.messages.take(now_ms, 1).and_then(|()| self.bytes.take(now_ms, bytes));
        counted.map_err(|_| Unasked)
    }
}

/// The upstream sends more messages without a request than an honest one does.
struct Unasked;

impl From<Unasked> for End {
    fn from(_: Unasked) -> Self {
        Self::Flooded
    }
}

impl From<UpstreamError> for End {
    fn from(error: UpstreamError) -> Self {
        Self::Broken(error)
    }
}

/// A message of the connection.
enum Received {
    Text(Utf8Bytes),
    /// A frame that is not a text, of this length.
    Other(usize),
}

/// Why a connection is no longer used.
enum End {
    /// All users of the upstream are gone.
    Done,
    /// The connection broke or could not be opened.
    Broken(UpstreamError),
    /// The upstream sent too many messages without a request.
    Flooded,
}

impl WsConnection {
    pub(super) fn new(
        url: String,
        name: String,
        config: HttpConfig,
        heads: Arc<Notify>,
        last_address: Arc<LastAddress>,
    ) -> Self {
        let quota = SourceQuota::of_upstream(&config.limits);
        Self {
            url,
            name,
            config,
            heads,
            last_address,
            waiting: Vec::new(),
            failures: 0,
            quota,
            unread: Duration::ZERO,
            subscribed: false,
            asked: 0,
            strays: UnaskedMeter::new(STRAYS, STRAY_BYTES),
            notices: UnaskedMeter::new(NOTICES, NOTICE_BYTES),
            started: Instant::now(),
        }
    }

    /// Runs until all users of the upstream are gone.
    pub(super) async fn run(mut self, mut batches: mpsc::Receiver<OutgoingBatch>) {
        loop {
            let end = match self.connect().await {
                Ok(socket) => {
                    let Err(end) = self.serve(socket, &mut batches).await;
                    end
                }
                Err(error) => End::Broken(error),
            };
            let Some(error) = self.count(end) else { return };
            debug!(upstream = %self.name, %error, "connection lost");
            self.give_up(&error);
            if !self.pause(&error, &mut batches).await {
                return;
            }
        }
    }

    /// Counts the end of a connection as a failure of the upstream if it is one. Returns the error; `None` if all users are
    /// gone.
    fn count(&mut self, end: End) -> Option<UpstreamError> {
        match end {
            End::Done => None,
            // This program lacks memory, which is no failure of the upstream.
            End::Broken(UpstreamError::BudgetUsedUp) => Some(UpstreamError::BudgetUsedUp),
            End::Broken(error) => {
                self.failures = self.failures.saturating_add(1);
                Some(error)
            }
            End::Flooded => {
                // All tries are used up at once, so that the pause is the longest and requests fail meanwhile.
                self.failures = self.failures.max(self.config.attempts).max(MAX_DOUBLINGS);
                Some(UpstreamError::Malformed("too many messages that were not asked for".into()))
            }
        }
    }

    /// Opens the connection within the time limit.
    async fn connect(&self) -> Result<UpstreamSocket<MaybeTlsStream<TcpStream>>, UpstreamError> {
        let opening = open(&self.url, self.config.answer_bytes, self.quota.clone());
        match timeout(self.config.timeout, opening).await {
            Ok(Ok((socket, address))) => {
                self.last_address.note(address);
                Ok(socket)
            }
            Ok(Err(error)) => Err(self.failure(error).without(&Secrets::of(&self.url))),
            Err(_) => Err(UpstreamError::Timeout(self.config.timeout.as_millis())),
        }
    }

    /// Fails the batches whose tries are used up; an oversized response, a flood and the lack of memory fail all batches.
    fn give_up(&mut self, error: &UpstreamError) {
        let all = matches!(error, UpstreamError::TooLarge(_) | UpstreamError::BudgetUsedUp);
        let (attempts, failures) = (self.config.attempts, self.failures);
        let spent = |waiting: &mut PendingBatch| all || waiting.tries.max(failures) >= attempts;
        for waiting in self.waiting.extract_if(.., spent) {
            // The caller may be gone.
            let _ = waiting.batch.answer.send(Err(error.clone()));
        }
    }

    /// Waits before the next connection, longer after each failure. While the upstream has failed for all
    /// tries, new batches fail at once, so that other upstreams are asked. Returns whether the upstream still
    /// has users.
    async fn pause(&mut self, error: &UpstreamError, batches: &mut mpsc::Receiver<OutgoingBatch>) -> bool {
        let earlier = self.failures.saturating_sub(1).min(MAX_DOUBLINGS) as usize;
        let longest = self.config.longest_pause;
        let pause = self.config.pauses().build().nth(earlier).map_or(longest, |pause| pause.min(longest));
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(until) => return true,
                batch = batches.recv() => match batch {
                    None => return false,
                    Some(batch) if self.failures >= self.config.attempts => {
                        let _ = batch.answer.send(Err(error.clone()));
                    }
                    Some(batch) => self.waiting.push(PendingBatch { batch, tries: 0, deadline: until }),
                },
            }
        }
    }

    /// Serves batches over a connection until it ends.
    async fn serve<S: Duplex>(
        &mut self,
        mut socket: UpstreamSocket<S>,
        batches: &mut mpsc::Receiver<OutgoingBatch>,
    ) -> Result<Infallible, End> {
        self.unread = Duration::ZERO;
        self.greet(&mut socket).await?;
        loop {
            let next_look = self.look(socket.get_mut())?;
            tokio::select! {
                batch = batches.recv() => {
                    let batch = batch.ok_or(End::Done)?;
                    self.waiting.push(PendingBatch { batch, tries: 0, deadline: Instant::now() });
                    self.send_last(&mut socket).await?;
                }
                message = next(&mut socket) => {
                    let message = message.map_err(|error| self.end(error))?;
                    let reserved = socket.get_mut().take_reservation();
                    self.receive(message, reserved).await?;
                }
                () = sleep_until(next_look) => {}
            }
        }
    }

    /// Fails if a batch waits for too long, or a message comes in for too long. Returns the time of the next check.
    fn look<S: Duplex>(&mut self, frames: &mut Frames<S>) -> Result<Instant, UpstreamError> {
        let longest = self.config.answer_bytes;
        frames.set_limit(if self.waiting.is_empty() { longest.min(LONGEST_UNASKED) } else { longest });
        // The time limits of batches do not run while the upstream is not read.
        let unread = frames.unread_for();
        let more = unread.saturating_sub(self.unread);
        self.unread = unread;
        frames.check(self.config.timeout)?;
        let now = Instant::now();
        let mut next = now + LOOK_INTERVAL;
        for waiting in &mut self.waiting {
            waiting.deadline += more;
            if waiting.deadline <= now {
                return Err(UpstreamError::Timeout(self.config.timeout.as_millis()));
            }
            next = next.min(waiting.deadline);
        }
        Ok(next)
    }

    /// Subscribes to new blocks, and sends the batches that earlier connections left without a response.
    async fn greet<S: Duplex>(&mut self, socket: &mut UpstreamSocket<S>) -> Result<(), UpstreamError> {
        self.subscribed = false;
        self.write(socket, SUBSCRIBE.to_owned()).await?;
        self.waiting.retain(|waiting| !waiting.batch.answer.is_closed());
        let mut open = std::mem::take(&mut self.waiting);
        open.reverse();
        while let Some(waiting) = open.pop() {
            self.waiting.push(waiting);
            if let Err(error) = self.send_last(socket).await {
                self.waiting.extend(open.into_iter().rev());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sends the newest waiting batch.
    async fn send_last<S: Duplex>(&mut self, socket: &mut UpstreamSocket<S>) -> Result<(), UpstreamError> {
        let Some(waiting) = self.waiting.last_mut() else { return Ok(()) };
        waiting.tries = waiting.tries.saturating_add(1);
        waiting.deadline = Instant::now() + self.config.timeout;
        let body = waiting.batch.body.clone();
        self.asked = self.asked.max(waiting.batch.first.saturating_add(waiting.batch.count as u64));
        self.write(socket, body).await
    }

    /// Sends a text message within the time limit.
    async fn write<S: Duplex>(
        &self,
        socket: &mut UpstreamSocket<S>,
        text: String,
    ) -> Result<(), UpstreamError> {
        match timeout(self.config.timeout, socket.send(Message::text(text))).await {
            Ok(sent) => sent.map_err(|error| self.failure(error)),
            Err(_) => Err(UpstreamError::Timeout(self.config.timeout.as_millis())),
        }
    }

    /// Hands a message with its reservation to the batch that waits for it. Other messages are dropped; too many of them are an
    /// error.
    async fn receive(&mut self, message: Received, reserved: Reservation) -> Result<(), Unasked> {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let text = match message {
            Received::Text(text) => text,
            Received::Other(length) => return self.notices.take(now_ms, length),
        };
        let length = text.len();
        // This fails only if reading the message panics. Its batch then waits for the end of the time limit.
        let Ok((subject, text)) = self.quota.peek_bytes(text, |text| subject(text)).await else {
            return Ok(());
        };
        match subject {
            // A notification only causes a request for the head, so its contents are not read.
            ResponseSubject::Notification if self.subscribed => {
                self.heads.notify_one();
                return self.notices.take(now_ms, length);
            }
            ResponseSubject::Request(SUBSCRIPTION) if !self.subscribed => {
                // An error is accepted too: an upstream without subscriptions sends no notifications.
                self.subscribed = true;
                return self.notices.take(now_ms, length);
            }
            _ => {}
        }
        let Some(index) = self.answered(subject) else {
            // Some upstreams respond to each request of a batch by a message of its own. The first one answers the batch, and the
            // others, with ids of requests that were sent, count as notices.
            return match subject {
                ResponseSubject::Request(id) if id < self.asked => self.notices.take(now_ms, length),
                _ => self.strays.take(now_ms, length),
            };
        };
        self.failures = 0;
        let batch = self.waiting.remove(index).batch;
        let answer = self.quota.admit_for(batch.is_caller, text, reserved);
        let _ = batch.answer.send(answer.map_err(|BudgetUsedUp| UpstreamError::BudgetUsedUp));
        Ok(())
    }

    /// The index of the batch that a message answers.
    fn answered(&self, subject: ResponseSubject) -> Option<usize> {
        match subject {
            ResponseSubject::Notification
            | ResponseSubject::Request(SUBSCRIPTION)
            | ResponseSubject::Nothing => None,
            ResponseSubject::Request(id) => self.waiting.iter().position(|waiting| {
                let batch = &waiting.batch;
                id.checked_sub(batch.first).is_some_and(|index| index < batch.count as u64)
            }),
            // An error without an id is taken as the response to the oldest batch of several requests, or else
            // to the oldest one.
            ResponseSubject::Unknown => {
                let batch = self.waiting.iter().position(|waiting| waiting.batch.count > 1);
                batch.or((!self.waiting.is_empty()).then_some(0))
            }
        }
    }

    /// Why the connection ends after an error; `None` if the upstream has closed it.
    fn end(&self, error: Option<tungstenite::Error>) -> End {
        match error.map_or_else(closed, |error| self.failure(error)) {
            UpstreamError::TooLarge(_) if self.waiting.is_empty() => End::Flooded,
            error => End::Broken(error),
        }
    }

    /// The error of a failed WebSocket.
    fn failure(&self, error: tungstenite::Error) -> UpstreamError {
        match error {
            tungstenite::Error::Http(response) => UpstreamError::Status(response.status().as_u16()),
            tungstenite::Error::Capacity(_) => UpstreamError::TooLarge(self.config.answer_bytes),
            // Errors of the quota come through the WebSocket library.
            tungstenite::Error::Io(error) => error
                .downcast::<UpstreamError>()
                .unwrap_or_else(|error| UpstreamError::Transport(words::unopened(&error))),
            other => UpstreamError::Transport(other.to_string()),
        }
    }
}

fn closed() -> UpstreamError {
    UpstreamError::Transport("the upstream closed the connection".into())
}

/// Returns the next message; `Err(None)` if the connection has ended.
async fn next<S: Duplex>(socket: &mut UpstreamSocket<S>) -> Result<Received, Option<tungstenite::Error>> {
    match socket.next().await {
        Some(Ok(Message::Text(text))) => Ok(Received::Text(text)),
        Some(Ok(Message::Close(_))) | None => Err(None),
        // The library answers pings; JSON-RPC messages are text.
        Some(Ok(other)) => Ok(Received::Other(other.len())),
        Some(Err(error)) => Err(Some(error)),
    }
}

#[cfg(test)]
#[path = "ws_link_test.rs"]
mod tests;
