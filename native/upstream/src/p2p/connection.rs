//! The task that owns the socket of a connection to a peer. It sends our requests and hands their responses to those who wait for
//! them, and answers the peer's requests one after another. The other tasks have a `PeerLink` to it (`link.rs`).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use futures::future::BoxFuture;
use rootlight_limits::budget::Reservation;
use rootlight_limits::priority;
use rootlight_limits::quota_owner::QuotaOwner;
use rootlight_limits::request_permits::RequestPermit;
use rootlight_p2p::message::{Message, Push, Request};
use rootlight_p2p::rlpx::{MAX_FRAME_READ, MAX_FRAME_SENT};
use rootlight_p2p::session::{CloseReason, DisconnectReason, Event, SendError, Session};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, timeout};

use super::error::PeerError;
use super::share::MinuteQuota;
use crate::source_quota::{BudgetUsedUp, ReceiveQuota, ReceivedBytes, SHORT, SourceQuota};

/// Longest wait for a response. A peer that does not have the requested data sends no response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(6);

/// Longest wait for the socket to take what is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The same while other peers wait for bytes of the budget that responses to this peer hold.
const CONTENDED_WRITE: Duration = Duration::from_secs(2);

/// Most bytes of one read.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Fewest open requests of ours for which a read that emptied the socket is followed by a pause, to read several responses at once.
const MANY_UNANSWERED: usize = 8;

/// The length of that pause. A read for each short response would take longer than all other work on the response.
const READ_PAUSE: Duration = Duration::from_millis(1);

/// Most messages of the program, and as many of callers, that are sent in one write.
const MOST_WRITTEN: usize = 16;

/// Pause before a message that exceeds the limit of messages in a minute is tried again.
const LIMIT_PAUSE: Duration = Duration::from_millis(200);

/// A message that would have to wait longer for the limit of a minute fails at once.
const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// Seconds for which a long message may come in. A response that takes longer comes after [`RESPONSE_TIMEOUT`] anyway.
const LONGEST_MESSAGE: u32 = 15;

/// The same while other requests wait for the bytes of the budget that the message holds.
const CONTENDED_MESSAGE: u32 = 2;

/// Why a connection ends whose slow message holds bytes of the budget that others need. This is no fault of the peer.
pub(super) const ENDED_FOR_BUDGET: DisconnectReason = DisconnectReason::TooManyPeers;

/// Longest message that a peer may send unasked, in bytes: a block.
pub const LONGEST_UNASKED: usize = 2 * 1024 * 1024;

/// For how long after a request the peer may send messages as long as its response, which may come after the request has failed.
const LATE: Duration = Duration::from_secs(60);

/// Most requests of a peer that wait for their responses. Further ones are dropped, as the reference node does.
const MAX_PEER_REQUESTS: usize = 256;

/// Most requests of a peer for state chunks that wait for their responses, as in the reference node.
const MAX_CHUNKS: usize = rootlight_p2p::chunk::limits::MAX_IN_FLIGHT;

/// The owner of a connection, which handles the messages that the peer sends unasked.
pub trait PeerHandler: Send + Sync + 'static {
    /// The quota in which messages of the peer count.
    fn quota(&self) -> SourceQuota;

    /// Handles a message without an id.
    fn handle_push(&self, push: Push<'_>);

    /// Makes the response to a request of the peer; the future returns `None` for a request without one. Returns `None` at
    /// once, as by default, if this owner answers no requests at all.
    fn respond(self: Arc<Self>, _request: PeerRequest) -> Option<BoxFuture<'static, Option<PeerResponse>>> {
        None
    }

    /// Whether other peers wait for bytes of the budget of long responses, or of that of short ones.
    fn is_contended(&self, _is_long: bool) -> bool {
        false
    }
}

/// A response to a peer's request, and the bytes of the budget that it takes until it is sent.
pub struct PeerResponse {
    /// The payload of the message.
    pub payload: Vec<u8>,
    /// The bytes of the budget.
    pub reserved: Reservation,
    /// Whether the bytes are taken from the budget of long responses.
    pub is_long: bool,
}

/// A message that the task of the connection has to send.
pub(super) struct OutgoingMessage {
    /// The caller for whom the message is sent; `None` for the program itself.
    pub(super) quota_owner: Option<QuotaOwner>,
    pub(super) what: OutgoingKind,
    /// Gets the message with the response to a request, or `None` once a push is sent.
    pub(super) reply: ReplySender,
    /// The permit of a request, until the peer has responded or the request's time is over: even if the caller no longer waits,
    /// the peer works on the request.
    pub(super) permit: Option<RequestPermit>,
}

type ReplySender = oneshot::Sender<Result<Option<ReceivedBytes>, PeerError>>;

/// The contents of an outgoing message.
pub(super) enum OutgoingKind {
    Ask(Request),
    /// The payload of a message without a response.
    Push(Vec<u8>),
}

/// Milliseconds since a connection began.
#[derive(Clone, Copy)]
pub(super) struct Clock(Instant);

impl Clock {
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    pub(super) fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// A request of a peer.
#[derive(Clone, Copy)]
pub enum PeerRequest {
    /// A request, whose response has the same id.
    Request {
        /// The id.
        id: u64,
        /// The request.
        request: Request,
    },
    /// The block of this hash, which a peer requests without an id after the block was announced to it.
    Block(B256),
}

impl PeerRequest {
    const fn is_chunk(&self) -> bool {
        matches!(self, Self::Request { request: Request::Chunk(_), .. })
    }
}

/// The socket of a connection, and the open requests.
pub(super) struct PeerConnection {
    pub(super) stream: TcpStream,
    pub(super) session: Session,
    pub(super) clock: Clock,
    pub(super) host: Arc<dyn PeerHandler>,
    /// Messages of the program itself. A message that exceeds the limit of a minute waits.
    pub(super) own_messages: mpsc::Receiver<OutgoingMessage>,
    /// Messages of callers. A message that exceeds the limit of a minute, or its caller's share of it, fails.
    pub(super) caller_messages: mpsc::Receiver<OutgoingMessage>,
    pub(super) minute: MinuteQuota,
    pub(super) open_requests: OpenRequests,
    /// The response to the peer that is being made.
    pub(super) making: Option<PendingResponse>,
    /// The reservation of received bytes that are no whole message yet.
    pub(super) unread: ReceiveQuota,
    /// Seconds since the last whole message, while a long one comes in.
    pub(super) slow: u32,
    /// The end of the [`READ_PAUSE`] before the next read, if there is one.
    pub(super) read_after: Option<Instant>,
}

/// The open requests of both sides.
#[derive(Default)]
pub(super) struct OpenRequests {
    /// Our requests by id.
    waiting: BTreeMap<u64, OpenRequest>,
    next_id: u64,
    /// The peer's requests. The next one is answered when the response to the one before is sent.
    peer_requests: VecDeque<PeerRequest>,
    /// The reservation that a response holds until the socket has taken it, and whether the response is a long one.
    unsent: Option<(Reservation, bool)>,
    /// The lengths of responses that may come in, in bytes, each with the time until which it may.
    allowed: BTreeMap<usize, Instant>,
    /// The time since which the peer is not read because too few bytes of the budget are free for its messages.
    unread_since: Option<Instant>,
}

/// A request of ours without a response yet.
struct OpenRequest {
    request: Request,
    reply: ReplySender,
    permit: Option<RequestPermit>,
    until: Instant,
}

/// A response to the peer that is being made.
pub(super) struct PendingResponse {
    is_chunk: bool,
    answer: BoxFuture<'static, Option<PeerResponse>>,
}

impl PeerConnection {
    /// Serves the connection until it ends.
    pub(super) async fn run(&mut self, mut buffer: Vec<u8>) -> CloseReason {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        // The message of the program that waits for the limit of a minute.
        let mut held_back: Option<OutgoingMessage> = None;
        loop {
            if let Err(reason) = self.take_messages() {
                return reason;
            }
            self.send_waiting(&mut held_back);
            if let Err(reason) = self.write().await {
                return reason;
            }
            self.make_next();
            let can_take = held_back.is_none();
            let mut missing = self.unread.missing(self.coming());
            if missing > 0 && self.unread.try_more(missing) {
                missing = 0;
            }
            self.open_requests.note_read(missing == 0);
            let after = self.read_after;
            tokio::select! {
                // Without free bytes of the budget the socket is not read, so that the peer has to wait.
                () = self.unread.more(missing), if missing > 0 => {}
                () = tokio::time::sleep_until(after.unwrap_or_else(Instant::now)), if after.is_some() => {
                    self.read_after = None;
                }
                read = self.stream.read(&mut buffer), if missing == 0 && after.is_none() => match read {
                    Ok(count) if count > 0 => self.receive(&buffer, count),
                    _ => return CloseReason::ByPeer(DisconnectReason::TcpError),
                },
                message = self.own_messages.recv(), if can_take => match message {
                    Some(message) => held_back = self.send(message),
                    None => return CloseReason::ByUs(DisconnectReason::Requested),
                },
                Some(message) = self.caller_messages.recv() => self.send_for_caller(message),
                answer = made(&mut self.making) => self.answer(answer),
                () = tokio::time::sleep(LIMIT_PAUSE), if !can_take => {
                    held_back = held_back.take().and_then(|message| self.send(message));
                }
                () = self.open_requests.overdue() => self.open_requests.give_up(),
                _ = ticks.tick() => self.tick(missing == 0),
            }
        }
    }

    /// Takes `count` bytes that were read into the buffer, and decides whether the next read waits for [`READ_PAUSE`].
    fn receive(&mut self, buffer: &[u8], count: usize) {
        let (read, rest) = buffer.split_at(count.min(buffer.len()));
        self.session.receive(read, self.clock.now());
        let many = self.open_requests.waiting.len() >= MANY_UNANSWERED;
        self.read_after = (many && !rest.is_empty()).then(|| Instant::now() + READ_PAUSE);
    }

    /// Takes the messages that have come in.
    fn take_messages(&mut self) -> Result<(), CloseReason> {
        self.session.set_read_limit(self.open_requests.longest_message());
        while let Some(event) = self.next_event() {
            match event {
                Event::Message(payload) => {
                    self.slow = 0;
                    self.take(payload);
                }
                Event::Closed(reason) => return Err(reason),
                Event::Ready(_) => {}
            }
        }
        Ok(())
    }

    /// Sends waiting messages, so that one write takes several of them. `held_back` is one that waits for the limit of a minute.
    fn send_waiting(&mut self, held_back: &mut Option<OutgoingMessage>) {
        for _ in 0..MOST_WRITTEN {
            if held_back.is_none()
                && let Ok(message) = self.own_messages.try_recv()
            {
                *held_back = self.send(message);
            }
            if let Ok(message) = self.caller_messages.try_recv() {
                self.send_for_caller(message);
            }
        }
    }

    /// The bytes that need memory of the budget: those received that are no message yet, or the whole length of a begun message.
    fn coming(&self) -> usize {
        self.session.begun_message().unwrap_or(0).max(self.session.unread())
    }

    /// Does the work of each second. `reads` says that the socket is read: a wait for memory is not the peer's slowness.
    fn tick(&mut self, reads: bool) {
        self.session.tick(self.clock.now());
        if self.coming() <= SHORT {
            self.slow = 0;
        } else if reads {
            self.slow = self.slow.saturating_add(1);
        }
        if self.slow > LONGEST_MESSAGE {
            self.session.disconnect(DisconnectReason::PingTimeout);
        } else if self.slow > CONTENDED_MESSAGE && self.unread.is_wanted() {
            self.session.disconnect(ENDED_FOR_BUDGET);
        }
    }

    /// The next event of the session. While a long message is decrypted, another thread takes over the other tasks of this one.
    fn next_event(&mut self) -> Option<Event> {
        let is_long = self.session.whole_message().is_some_and(|bytes| bytes > SHORT);
        let now = self.clock.now();
        priority::run_in_place(is_long, || self.session.next_event(now))
    }

    /// Sends a caller's message if the caller's share of the minute allows this; otherwise the message fails.
    fn send_for_caller(&mut self, message: OutgoingMessage) {
        if message.reply.is_closed() {
            return;
        }
        let now = self.clock.now();
        let left = self.session.sends_left(now);
        if message.quota_owner.is_some_and(|owner| !self.minute.take(owner, now, left)) {
            let _ = message.reply.send(Err(PeerError::Share));
            return;
        }
        if let Some(held_back) = self.send(message) {
            let _ = held_back.reply.send(Err(PeerError::Share));
        }
    }

    /// Sends a message. Returns the message if it has to wait a moment for the limit of a minute.
    fn send(&mut self, message: OutgoingMessage) -> Option<OutgoingMessage> {
        let id = self.open_requests.next_id.saturating_add(1);
        let payload = match &message.what {
            // The caller no longer waits for the response.
            OutgoingKind::Ask(_) if message.reply.is_closed() => return None,
            OutgoingKind::Ask(request) => &Message::Request { id, request: *request }.encode(),
            OutgoingKind::Push(payload) => payload,
        };
        match (self.session.send_message(payload, self.clock.now()), &message.what) {
            // A message that waits for long would keep the messages behind it waiting.
            (Err(SendError::Rate { wait_ms }), _) if Duration::from_millis(wait_ms) > LONGEST_HOLD => {
                let _ = message.reply.send(Err(PeerError::Limit(wait_ms)));
            }
            (Err(SendError::Rate { .. }), _) => return Some(message),
            // The session has ended. The next event says so, and then all waiting requests fail.
            (Err(_), _) => {}
            (Ok(()), OutgoingKind::Ask(request)) => {
                let request = *request;
                let OutgoingMessage { reply, permit, .. } = message;
                self.open_requests.next_id = id;
                let now = Instant::now();
                self.open_requests.allowed.insert(longest_response(&request), now + LATE);
                let until = now + RESPONSE_TIMEOUT;
                self.open_requests.waiting.insert(id, OpenRequest { request, reply, permit, until });
            }
            (Ok(()), OutgoingKind::Push(_)) => drop(message.reply.send(Ok(None))),
        }
        None
    }

    /// Hands a message to its receiver. A response to no request of ours is dropped.
    fn take(&mut self, payload: Vec<u8>) {
        let answered = match Message::decode(&payload) {
            Ok(Message::Push(Push::GetBlock(hash))) => return self.queue(PeerRequest::Block(hash)),
            Ok(Message::Push(push)) => return self.host.handle_push(push),
            Ok(Message::Response { id, response }) => {
                let asked = self.open_requests.waiting.get(&id);
                Some(id).filter(|_| asked.is_some_and(|asked| response.answers(&asked.request)))
            }
            Ok(Message::Request { id, request }) => {
                return self.queue(PeerRequest::Request { id, request });
            }
            // A message that does not decode does not say which request it answers.
            Err(_) => None,
        };
        if let Some(asked) = answered.and_then(|id| self.open_requests.waiting.remove(&id)) {
            let _ = asked.reply.send(self.unread.admit(payload).map(Some).map_err(PeerError::from));
        }
    }

    /// Queues a request of the peer, unless too many wait.
    fn queue(&mut self, request: PeerRequest) {
        let waiting = &mut self.open_requests.peer_requests;
        let chunks = waiting.iter().filter(|request| request.is_chunk()).count();
        let making = usize::from(self.making.as_ref().is_some_and(|making| making.is_chunk));
        let too_many = request.is_chunk() && chunks.saturating_add(making) >= MAX_CHUNKS;
        if waiting.len() < MAX_PEER_REQUESTS && !too_many {
            waiting.push_back(request);
        }
    }

    /// Begins the response to the next request of the peer, if the response before is sent and the limit of a minute allows
    /// another message. So a peer has at most one response in memory, however slowly it reads.
    fn make_next(&mut self) {
        if self.making.is_some() || self.session.sends_left(self.clock.now()) == 0 {
            return;
        }
        let Some(request) = self.open_requests.peer_requests.pop_front() else { return };
        let Some(answer) = self.host.clone().respond(request) else {
            return self.open_requests.peer_requests.clear();
        };
        self.making = Some(PendingResponse { is_chunk: request.is_chunk(), answer });
    }

    fn answer(&mut self, answer: Option<PeerResponse>) {
        self.making = None;
        let Some(PeerResponse { payload, reserved, is_long }) = answer else { return };
        // A response that exceeds the limit of a minute is dropped, as the reference node does.
        if self.session.send_message(&payload, self.clock.now()).is_ok() {
            self.open_requests.unsent = Some((reserved, is_long));
        }
    }

    /// Writes the output of the session. The connection ends if the peer does not read for a while.
    async fn write(&mut self) -> Result<(), CloseReason> {
        let output = self.session.take_output();
        if !output.is_empty() {
            let unsent = self.open_requests.unsent.as_ref();
            let contended = async {
                let Some((_, is_long)) = unsent else {
                    return std::future::pending().await;
                };
                loop {
                    tokio::time::sleep(CONTENDED_WRITE).await;
                    if self.host.is_contended(*is_long) {
                        return;
                    }
                }
            };
            tokio::select! {
                written = timeout(WRITE_TIMEOUT, self.stream.write_all(&output)) => {
                    written.ok().and_then(Result::ok).ok_or(CloseReason::ByPeer(DisconnectReason::TcpError))?;
                }
                () = contended => return Err(CloseReason::ByPeer(DisconnectReason::TcpError)),
            }
        }
        self.open_requests.unsent = None;
        Ok(())
    }

    /// Tells the peer that the connection ends, and closes it.
    pub(super) async fn say_goodbye(&mut self) {
        // Received bytes are not read any more.
        self.unread = ReceiveQuota::new(self.host.quota());
        self.session.disconnect(DisconnectReason::Requested);
        let _ = self.write().await;
        let _ = self.stream.shutdown().await;
    }
}

impl OpenRequests {
    /// Notes whether the peer is read. While it is not, the time limits of our requests do not run.
    fn note_read(&mut self, is_read: bool) {
        if !is_read {
            self.unread_since.get_or_insert_with(Instant::now);
            return;
        }
        let Some(since) = self.unread_since.take() else { return };
        let now = Instant::now();
        for asked in self.waiting.values_mut() {
            let begun = since.max(asked.until - RESPONSE_TIMEOUT);
            asked.until += now.saturating_duration_since(begun);
        }
    }

    /// The end of a request whose time is over at `until`. While the peer is not read, a request lasts at least
    /// [`RESPONSE_TIMEOUT`] from the time at which reading stopped.
    fn end(&self, until: Instant) -> Instant {
        self.unread_since.map_or(until, |since| until.max(since + RESPONSE_TIMEOUT))
    }

    /// Waits until the time of the oldest request is over: that with the lowest id, because all have the same time limit.
    async fn overdue(&self) {
        match self.waiting.first_key_value() {
            Some((_, oldest)) => tokio::time::sleep_until(self.end(oldest.until)).await,
            None => std::future::pending().await,
        }
    }

    /// The longest message that the peer may send now, in bytes.
    fn longest_message(&mut self) -> usize {
        let now = Instant::now();
        self.allowed.retain(|_, until| *until > now);
        self.allowed.last_key_value().map_or(0, |(bytes, _)| *bytes).max(LONGEST_UNASKED)
    }

    /// Fails the requests whose time is over.
    fn give_up(&mut self) {
        let now = Instant::now();
        while let Some((id, oldest)) = self.waiting.first_key_value() {
            if self.end(oldest.until) > now {
                return;
            }
            let id = *id;
            let Some(OpenRequest { reply, permit, .. }) = self.waiting.remove(&id) else { return };
            // The peer may have responded, but was not read. This is no fault of the peer.
            if self.unread_since.is_some() {
                let _ = reply.send(Err(BudgetUsedUp.into()));
                continue;
            }
            permit.iter().for_each(RequestPermit::unanswered);
            let _ = reply.send(Err(PeerError::NoResponse(RESPONSE_TIMEOUT)));
        }
    }
}

/// The greatest length of the response to a request, in bytes.
const fn longest_response(request: &Request) -> usize {
    match request {
        Request::SnapBlocks { .. } | Request::SnapStatus => MAX_FRAME_READ,
        Request::Block(_) | Request::Body(_) => MAX_FRAME_SENT,
        Request::Headers { .. } | Request::Chunk(_) => 2 * LONGEST_UNASKED,
        Request::BlockHash { .. } | Request::Skeleton { .. } => LONGEST_UNASKED,
    }
}

/// Waits for the response that is being made, for ever if there is none.
async fn made(making: &mut Option<PendingResponse>) -> Option<PeerResponse> {
    match making {
        Some(making) => making.answer.as_mut().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "connection_test.rs"]
mod tests;
