//! The task that owns a WebSocket connection.

use std::net::IpAddr;
use std::sync::Arc;

use backon::BackoffBuilder as _;
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use rootlight::light::{Subject, subject};
use rootlight_p2p::session::RateWindow;
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};
use tokio_tungstenite::{Connector, MaybeTlsStream, WebSocketStream, connect_async_tls_with_config};
use tracing::debug;

use super::error::Secrets;
use super::intake::{Incoming, Intake, NoRoom, room_of};
use super::reached::Reached;
use super::{HttpConfig, UpstreamError, tls};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Id of the subscription request; other requests have ids from 1.
const SUBSCRIPTION: u64 = 0;

/// Subscribes to new blocks. An upstream without this method returns an error, which is ignored.
const SUBSCRIBE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"eth_subscribe","params":["newHeads"]}"#;

/// Messages in a minute that answer no request of ours, and their bytes: late answers, and answers of a batch one by one.
const STRAYS: u64 = 64;
const STRAY_BYTES: u64 = 1 << 20;

/// Notifications of the subscription and control frames in a minute, and their bytes. Blocks come every half a minute,
/// but a development chain can mine a hundred in a second.
const NOTICES: u64 = 6_000;
const NOTICE_BYTES: u64 = 16 << 20;

/// A batch to be sent, and where its response goes.
pub(super) struct OutgoingBatch {
    /// Id of its first request.
    pub(super) first: u64,
    /// Number of requests.
    pub(super) count: usize,
    /// The batch as JSON text.
    pub(super) body: String,
    /// Whether a caller asks, and not the program itself.
    pub(super) is_caller: bool,
    /// Receives the response. The caller decodes it, so that other batches do not wait meanwhile.
    pub(super) answer: oneshot::Sender<Result<Incoming<Utf8Bytes>, UpstreamError>>,
}

/// Number of failures after which the pause is the longest.
const LONGEST: u32 = 16;

/// A batch without a response yet.
struct Waiting {
    order: OutgoingBatch,
    tries: u32,
    deadline: Instant,
}

/// The connection to one upstream, open or broken, with its waiting batches.
pub(super) struct Link {
    url: String,
    name: String,
    config: HttpConfig,
    heads: Arc<Notify>,
    reached: Arc<Reached>,
    waiting: Vec<Waiting>,
    /// Number of consecutive connections without any response.
    failures: u32,
    intake: Intake,
    /// Whether the upstream has accepted the subscription of this connection.
    subscribed: bool,
    /// The id after the last one of a request that was sent.
    asked: u64,
    strays: Meter,
    notices: Meter,
    started: Instant,
}

/// Messages and bytes that were not asked for, over any minute, whatever connections they came through.
struct Meter {
    messages: RateWindow,
    bytes: RateWindow,
}

impl Meter {
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

/// The upstream sends more messages that were not asked for than an honest one.
struct Unasked;

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
    /// The upstream sent too many messages that were not asked for.
    Flooded,
}

/// The IP address at the other end of a connection.
fn peer(socket: &Socket) -> Option<IpAddr> {
    let stream = match socket.get_ref() {
        MaybeTlsStream::Plain(stream) => stream,
        MaybeTlsStream::Rustls(stream) => stream.get_ref().0,
        _ => return None,
    };
    stream.peer_addr().ok().map(|peer| peer.ip())
}

impl Link {
    pub(super) fn new(
        url: String,
        name: String,
        config: HttpConfig,
        heads: Arc<Notify>,
        reached: Arc<Reached>,
    ) -> Self {
        Self {
            url,
            name,
            config,
            heads,
            reached,
            waiting: Vec::new(),
            failures: 0,
            intake: Intake::of_upstream(),
            subscribed: false,
            asked: 0,
            strays: Meter::new(STRAYS, STRAY_BYTES),
            notices: Meter::new(NOTICES, NOTICE_BYTES),
            started: Instant::now(),
        }
    }

    /// Runs until all users of the upstream are gone.
    pub(super) async fn run(mut self, mut orders: mpsc::Receiver<OutgoingBatch>) {
        loop {
            let end = match self.connect().await {
                Ok(socket) => self.serve(socket, &mut orders).await,
                Err(error) => End::Broken(error),
            };
            let error = match end {
                End::Done => return,
                End::Broken(error) => {
                    self.failures = self.failures.saturating_add(1);
                    error
                }
                End::Flooded => {
                    // All tries are used up at once, so that the pause is the longest and requests fail meanwhile.
                    self.failures = self.failures.max(self.config.attempts).max(LONGEST);
                    UpstreamError::Malformed("too many messages that were not asked for".into())
                }
            };
            debug!(upstream = %self.name, %error, "connection lost");
            self.give_up(&error);
            if !self.pause(&error, &mut orders).await {
                return;
            }
        }
    }

    async fn connect(&self) -> Result<Socket, UpstreamError> {
        let limit = self.config.answer_bytes;
        let config = WebSocketConfig::default().max_message_size(Some(limit)).max_frame_size(Some(limit));
        let tls = Connector::Rustls(tls::config());
        let connecting = connect_async_tls_with_config(self.url.as_str(), Some(config), true, Some(tls));
        match timeout(self.config.timeout, connecting).await {
            Ok(Ok((socket, _))) => {
                self.reached.note(peer(&socket));
                Ok(socket)
            }
            Ok(Err(error)) => Err(self.failure(error).without(&Secrets::of(&self.url))),
            Err(_) => Err(UpstreamError::Timeout(self.config.timeout.as_millis())),
        }
    }

    /// Fails the batches whose tries are used up; an oversized response and a flood fail all batches.
    fn give_up(&mut self, error: &UpstreamError) {
        let too_large = matches!(error, UpstreamError::TooLarge(_));
        let (attempts, failures) = (self.config.attempts, self.failures);
        let spent = |waiting: &mut Waiting| too_large || waiting.tries.max(failures) >= attempts;
        for waiting in self.waiting.extract_if(.., spent) {
            // The caller may be gone.
            let _ = waiting.order.answer.send(Err(error.clone()));
        }
    }

    /// Waits before the next connection, longer after each failure. While the upstream has failed for all
    /// tries, new batches fail at once, so that other upstreams are asked. Returns whether the upstream still
    /// has users.
    async fn pause(&mut self, error: &UpstreamError, orders: &mut mpsc::Receiver<OutgoingBatch>) -> bool {
        let earlier = self.failures.saturating_sub(1).min(LONGEST) as usize;
        let longest = self.config.longest_pause;
        let pause = self.config.pauses().build().nth(earlier).map_or(longest, |pause| pause.min(longest));
        let until = Instant::now() + pause;
        loop {
            tokio::select! {
                () = sleep_until(until) => return true,
                order = orders.recv() => match order {
                    None => return false,
                    Some(order) if self.failures >= self.config.attempts => {
                        let _ = order.answer.send(Err(error.clone()));
                    }
                    Some(order) => self.waiting.push(Waiting { order, tries: 0, deadline: until }),
                },
            }
        }
    }

    async fn serve(&mut self, socket: Socket, orders: &mut mpsc::Receiver<OutgoingBatch>) -> End {
        let (mut sink, mut stream) = socket.split();
        if let Err(error) = self.greet(&mut sink).await {
            return End::Broken(error);
        }
        loop {
            let deadline = self.waiting.iter().map(|waiting| waiting.deadline).min();
            let late = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let outcome = tokio::select! {
                order = orders.recv() => match order {
                    None => return End::Done,
                    Some(order) => {
                        self.waiting.push(Waiting { order, tries: 0, deadline: Instant::now() });
                        self.send_last(&mut sink).await
                    }
                },
                message = next(&mut stream) => match message {
                    Ok(message) => match self.receive(message).await {
                        Ok(()) => Ok(()),
                        Err(Unasked) => return End::Flooded,
                    },
                    Err(error) => Err(error.map_or_else(closed, |error| self.failure(error))),
                },
                () = late => Err(UpstreamError::Timeout(self.config.timeout.as_millis())),
            };
            if let Err(error) = outcome {
                return End::Broken(error);
            }
        }
    }

    /// Subscribes to new blocks, and sends the batches that earlier connections left without a response.
    async fn greet(&mut self, sink: &mut SplitSink<Socket, Message>) -> Result<(), UpstreamError> {
        self.subscribed = false;
        self.write(sink, SUBSCRIBE.to_owned()).await?;
        self.waiting.retain(|waiting| !waiting.order.answer.is_closed());
        let mut open = std::mem::take(&mut self.waiting);
        open.reverse();
        while let Some(waiting) = open.pop() {
            self.waiting.push(waiting);
            if let Err(error) = self.send_last(sink).await {
                self.waiting.extend(open.into_iter().rev());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Sends the newest waiting batch.
    async fn send_last(&mut self, sink: &mut SplitSink<Socket, Message>) -> Result<(), UpstreamError> {
        let Some(waiting) = self.waiting.last_mut() else { return Ok(()) };
        waiting.tries = waiting.tries.saturating_add(1);
        waiting.deadline = Instant::now() + self.config.timeout;
        let body = waiting.order.body.clone();
        self.asked = self.asked.max(waiting.order.first.saturating_add(waiting.order.count as u64));
        self.write(sink, body).await
    }

    async fn write(&self, sink: &mut SplitSink<Socket, Message>, text: String) -> Result<(), UpstreamError> {
        match timeout(self.config.timeout, sink.send(Message::text(text))).await {
            Ok(sent) => sent.map_err(|error| self.failure(error)),
            Err(_) => Err(UpstreamError::Timeout(self.config.timeout.as_millis())),
        }
    }

    /// Delivers a message to the batch that waits for it; other messages are dropped, up to some number.
    async fn receive(&mut self, message: Received) -> Result<(), Unasked> {
        let now_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let text = match message {
            Received::Text(text) => text,
            Received::Other(length) => return self.notices.take(now_ms, length),
        };
        let length = text.len();
        let Ok((subject, text)) = self.intake.glance(text, |text| subject(text)).await else { return Ok(()) };
        match subject {
            // A notification is only a hint to ask for the head, so its contents are not read.
            Subject::Notification if self.subscribed => {
                self.heads.notify_one();
                return self.notices.take(now_ms, length);
            }
            Subject::Request(SUBSCRIPTION) if !self.subscribed => {
                // An error counts as well: nothing more depends on it.
                self.subscribed = true;
                return self.notices.take(now_ms, length);
            }
            _ => {}
        }
        let Some(place) = self.place(subject) else {
            // Some upstreams answer a batch one by one, so the rest of an answered batch comes for requests of ours.
            return match subject {
                Subject::Request(id) if id < self.asked => self.notices.take(now_ms, length),
                _ => self.strays.take(now_ms, length),
            };
        };
        self.failures = 0;
        let order = self.waiting.remove(place).order;
        // The connection's task must not wait for room, because its other batches would wait with it.
        let room = self.intake.room_for(order.is_caller, room_of(length));
        let answer = room.and_then(|room| self.intake.admit(text, room));
        let answer = answer.map_err(|NoRoom| UpstreamError::NoRoom);
        let _ = order.answer.send(answer);
        Ok(())
    }

    /// The place of the batch that a message answers.
    fn place(&self, subject: Subject) -> Option<usize> {
        match subject {
            Subject::Notification | Subject::Request(SUBSCRIPTION) | Subject::Nothing => None,
            Subject::Request(id) => self.waiting.iter().position(|waiting| {
                let order = &waiting.order;
                id.checked_sub(order.first).is_some_and(|index| index < order.count as u64)
            }),
            // An error without an id is taken as the response to the oldest batch of several requests, or else
            // to the oldest one.
            Subject::Unknown => {
                let batch = self.waiting.iter().position(|waiting| waiting.order.count > 1);
                batch.or((!self.waiting.is_empty()).then_some(0))
            }
        }
    }

    fn failure(&self, error: tungstenite::Error) -> UpstreamError {
        match error {
            tungstenite::Error::Http(response) => UpstreamError::Status(response.status().as_u16()),
            tungstenite::Error::Capacity(_) => UpstreamError::TooLarge(self.config.answer_bytes),
            other => UpstreamError::Transport(other.to_string()),
        }
    }
}

fn closed() -> UpstreamError {
    UpstreamError::Transport("the upstream closed the connection".into())
}

/// Returns the next message; `Err(None)` if the connection has ended.
async fn next(stream: &mut SplitStream<Socket>) -> Result<Received, Option<tungstenite::Error>> {
    match stream.next().await {
        Some(Ok(Message::Text(text))) => Ok(Received::Text(text)),
        Some(Ok(Message::Close(_))) | None => Err(None),
        // The library answers pings; JSON-RPC messages are text.
        Some(Ok(other)) => Ok(Received::Other(other.len())),
        Some(Err(error)) => Err(Some(error)),
    }
}
