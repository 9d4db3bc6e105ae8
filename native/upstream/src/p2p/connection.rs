//! The task that owns the socket of a connection: reads, writes, and answers one request of the peer after another.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use futures::future::BoxFuture;
use rootlight::types::Asker;
use rootlight_limits::budget::Reservation;
use rootlight_limits::priority;
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
use crate::source_quota::{NoRoom, ReceiveQuota, ReceivedBytes, SHORT, SourceQuota};

/// Longest wait for a response. A peer that lacks something does not respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(6);

/// Longest wait for the socket to take what is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// The same while other peers wait for the room that the responses to this one take.
const CONTENDED_WRITE: Duration = Duration::from_secs(2);

/// Bytes that are read at once.
pub(super) const READ_BYTES: usize = 64 * 1024;

/// Fewest unanswered questions for which more responses are waited for after a read that emptied the socket.
const MANY_UNANSWERED: usize = 8;

/// How long they are waited for. A read for each short response would take longer than all else that is done with it.
const READ_PAUSE: Duration = Duration::from_millis(1);

/// Most messages of the program, and of callers, that are sent in one write.
const MOST_WRITTEN: usize = 16;

/// Pause before a message that the limit of a minute holds back is tried again.
const LIMIT_PAUSE: Duration = Duration::from_millis(200);

/// A message that the limit of a minute holds back for longer fails at once.
const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// Seconds for which a long message may come in. A response that takes longer comes too late anyway.
const LONGEST_MESSAGE: u32 = 15;

/// The same while others wait for the room that it takes.
const CONTENDED_MESSAGE: u32 = 2;

/// Why a connection ends whose message takes room that others want. An honest peer may be as slow: this is no fault of it.
pub(super) const ENDED_FOR_ROOM: DisconnectReason = DisconnectReason::TooManyPeers;

/// Longest message that a peer may send unasked, in bytes: a block.
pub const LONGEST_UNASKED: usize = 2 * 1024 * 1024;

/// For how long a response may come after its question. Responses that come too late are dropped.
const LATE: Duration = Duration::from_secs(60);

/// Most requests of a peer that wait for their responses. Further ones are dropped, as stock nodes do.
const MAX_ASKED: usize = 256;

/// Most requests of a peer for state chunks that wait for their responses, as stock nodes have it.
const MAX_CHUNKS: usize = rootlight_p2p::chunk::limits::MAX_IN_FLIGHT;

/// The owner of a connection: it handles the messages that the peer sends unasked.
pub trait PeerHandler: Send + Sync + 'static {
    /// The quota in which messages of the peer count.
    fn quota(&self) -> SourceQuota;

    /// A message without an id came.
    fn pushed(&self, push: Push<'_>);

    /// Makes the response to a request of the peer; a request that has none gives `None` in the end. `None` at once if the
    /// peer is never answered.
    fn respond(self: Arc<Self>, _asked: PeerRequest) -> Option<BoxFuture<'static, Option<PeerResponse>>> {
        None
    }

    /// Whether other peers wait for the room that a response to this one takes, a long or a short one.
    fn is_contended(&self, _is_long: bool) -> bool {
        false
    }
}

/// A response, and the bytes of the budget that it takes until it is sent.
pub struct PeerResponse {
    /// The payload of the message.
    pub payload: Vec<u8>,
    /// The bytes of the budget.
    pub reserved: Reservation,
    /// Whether the bytes are those of long responses.
    pub is_long: bool,
}

pub(super) struct OutgoingMessage {
    pub(super) asker: Option<Asker>,
    pub(super) what: OutgoingKind,
    /// Gets the message with the response, and of a push nothing once it is on its way.
    pub(super) reply: ReplySender,
    /// The place of a question, which is free again when the peer has answered or its time is over: even if the caller has
    /// gone, the peer works on it.
    pub(super) permit: Option<RequestPermit>,
}

type ReplySender = oneshot::Sender<Result<Option<ReceivedBytes>, PeerError>>;

pub(super) enum OutgoingKind {
    Ask(Request),
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
    /// The block of this hash, which a peer that was told of it asks for without an id.
    Block(B256),
}

impl PeerRequest {
    const fn is_chunk(&self) -> bool {
        matches!(self, Self::Request { request: Request::Chunk(_), .. })
    }
}

/// The socket of a connection, and the questions that wait.
pub(super) struct PeerConnection {
    pub(super) stream: TcpStream,
    pub(super) session: Session,
    pub(super) clock: Clock,
    pub(super) host: Arc<dyn PeerHandler>,
    /// Messages of the program itself, which wait for the limit of a minute.
    pub(super) own_messages: mpsc::Receiver<OutgoingMessage>,
    /// Messages of callers, which do not.
    pub(super) caller_messages: mpsc::Receiver<OutgoingMessage>,
    pub(super) minute: MinuteQuota,
    pub(super) open_requests: OpenRequests,
    /// The response that is being made.
    pub(super) making: Option<PendingResponse>,
    /// The room of what has come in and is no whole message yet.
    pub(super) unread: ReceiveQuota,
    /// Seconds since the last whole message, while a long one comes in.
    pub(super) slow: u32,
    /// Until when more is waited for before the next read.
    pub(super) read_after: Option<Instant>,
}

/// The open requests of both sides.
#[derive(Default)]
pub(super) struct OpenRequests {
    /// Our requests by id.
    waiting: BTreeMap<u64, OpenRequest>,
    next_id: u64,
    /// The peer's requests. The next one is answered when the response before is sent.
    asked: VecDeque<PeerRequest>,
    /// Room that a response takes until the socket has it, and whether the response is a long one.
    unsent: Option<(Reservation, bool)>,
    /// The longest responses to our questions, in bytes, and until when they may come.
    allowed: BTreeMap<usize, Instant>,
    /// Since when the peer is not read because there is no room for what it sends.
    unread_since: Option<Instant>,
}

/// A question that the peer has not answered.
struct OpenRequest {
    request: Request,
    reply: ReplySender,
    permit: Option<RequestPermit>,
    until: Instant,
}

/// A response that is being made.
pub(super) struct PendingResponse {
    is_chunk: bool,
    answer: BoxFuture<'static, Option<PeerResponse>>,
}

impl PeerConnection {
    /// Serves the connection until it ends.
    pub(super) async fn run(&mut self, mut buffer: Vec<u8>) -> CloseReason {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        let mut reserved: Option<OutgoingMessage> = None;
        loop {
            if let Err(reason) = self.take_messages() {
                return reason;
            }
            self.send_waiting(&mut reserved);
            if let Err(reason) = self.write().await {
                return reason;
            }
            self.make_next();
            let can_take = reserved.is_none();
            let mut missing = self.unread.missing(self.coming());
            if missing > 0 && self.unread.try_more(missing) {
                missing = 0;
            }
            self.open_requests.note_read(missing == 0);
            let after = self.read_after;
            tokio::select! {
                // Without room the peer has to wait.
                () = self.unread.more(missing), if missing > 0 => {}
                () = tokio::time::sleep_until(after.unwrap_or_else(Instant::now)), if after.is_some() => {
                    self.read_after = None;
                }
                read = self.stream.read(&mut buffer), if missing == 0 && after.is_none() => match read {
                    Ok(count) if count > 0 => self.receive(&buffer, count),
                    _ => return CloseReason::ByPeer(DisconnectReason::TcpError),
                },
                message = self.own_messages.recv(), if can_take => match message {
                    Some(message) => reserved = self.send(message),
                    None => return CloseReason::ByUs(DisconnectReason::Requested),
                },
                Some(message) = self.caller_messages.recv() => self.send_for_caller(message),
                answer = made(&mut self.making) => self.answer(answer),
                () = tokio::time::sleep(LIMIT_PAUSE), if !can_take => {
                    reserved = reserved.take().and_then(|message| self.send(message));
                }
                () = self.open_requests.overdue() => self.open_requests.give_up(),
                _ = ticks.tick() => self.tick(missing == 0),
            }
        }
    }

    /// Takes bytes that were read into the buffer. If they were all that there were, and many responses are to come, these are
    /// read together.
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

    /// Sends what waits, so that one write takes several messages. `reserved` is one that the limit of a minute holds back.
    fn send_waiting(&mut self, reserved: &mut Option<OutgoingMessage>) {
        for _ in 0..MOST_WRITTEN {
            if reserved.is_none()
                && let Ok(message) = self.own_messages.try_recv()
            {
                *reserved = self.send(message);
            }
            if let Ok(message) = self.caller_messages.try_recv() {
                self.send_for_caller(message);
            }
        }
    }

    /// The bytes that wait to be read as messages, with those of a begun message that are still to come.
    fn coming(&self) -> usize {
        self.session.begun_message().unwrap_or(0).max(self.session.unread())
    }

    /// Does what is due each second. `reads` says that the peer is waited for, and not room: only a whole message ends the
    /// count of the seconds that a long one takes.
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
            self.session.disconnect(ENDED_FOR_ROOM);
        }
    }

    /// The next event of the session. A long message is decrypted while other threads do what else this thread has to do.
    fn next_event(&mut self) -> Option<Event> {
        let is_long = self.session.whole_message().is_some_and(|bytes| bytes > SHORT);
        let now = self.clock.now();
        priority::in_place(is_long, || self.session.next_event(now))
    }

    /// Sends a caller's message if its share of the minute allows this.
    fn send_for_caller(&mut self, message: OutgoingMessage) {
        if message.reply.is_closed() {
            return;
        }
        let now = self.clock.now();
        let room = self.session.send_room(now);
        if message.asker.is_some_and(|asker| !self.minute.take(asker, now, room)) {
            let _ = message.reply.send(Err(PeerError::Share));
            return;
        }
        if let Some(reserved) = self.send(message) {
            let _ = reserved.reply.send(Err(PeerError::Share));
        }
    }

    /// Sends a message. Gives it back if the limit of a minute holds it back for a moment.
    fn send(&mut self, message: OutgoingMessage) -> Option<OutgoingMessage> {
        let id = self.open_requests.next_id.saturating_add(1);
        let payload = match &message.what {
            // The caller has gone.
            OutgoingKind::Ask(_) if message.reply.is_closed() => return None,
            OutgoingKind::Ask(request) => &Message::Request { id, request: *request }.encode(),
            OutgoingKind::Push(payload) => payload,
        };
        match (self.session.send_message(payload, self.clock.now()), &message.what) {
            // A message that waits for long would keep those behind it waiting.
            (Err(SendError::Rate { wait_ms }), _) if Duration::from_millis(wait_ms) > LONGEST_HOLD => {
                let _ = message.reply.send(Err(PeerError::Limit(wait_ms)));
            }
            (Err(SendError::Rate { .. }), _) => return Some(message),
            // The end of the session shows as an event; then all that wait learn of it.
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

    /// Hands a message to its receiver. A message that was not asked for is dropped.
    fn take(&mut self, payload: Vec<u8>) {
        let answered = match Message::decode(&payload) {
            Ok(Message::Push(Push::GetBlock(hash))) => return self.queue(PeerRequest::Block(hash)),
            Ok(Message::Push(push)) => return self.host.pushed(push),
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
    fn queue(&mut self, asked: PeerRequest) {
        let waiting = &mut self.open_requests.asked;
        let chunks = waiting.iter().filter(|asked| asked.is_chunk()).count();
        let making = usize::from(self.making.as_ref().is_some_and(|making| making.is_chunk));
        let too_many = asked.is_chunk() && chunks.saturating_add(making) >= MAX_CHUNKS;
        if waiting.len() < MAX_ASKED && !too_many {
            waiting.push_back(asked);
        }
    }

    /// Begins the response to the next request of the peer, if the one before is sent and the limit of a minute allows
    /// another message. So a peer has at most one response in memory, however little it reads.
    fn make_next(&mut self) {
        if self.making.is_some() || self.session.send_room(self.clock.now()) == 0 {
            return;
        }
        let Some(asked) = self.open_requests.asked.pop_front() else { return };
        let Some(answer) = self.host.clone().respond(asked) else { return self.open_requests.asked.clear() };
        self.making = Some(PendingResponse { is_chunk: asked.is_chunk(), answer });
    }

    fn answer(&mut self, answer: Option<PeerResponse>) {
        self.making = None;
        let Some(PeerResponse { payload, reserved, is_long }) = answer else { return };
        // A message that the limit of a minute holds back is dropped, as stock nodes do.
        if self.session.send_message(&payload, self.clock.now()).is_ok() {
            self.open_requests.unsent = Some((reserved, is_long));
        }
    }

    /// Writes what the session has to say. A peer that does not read is left after a while.
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

    pub(super) async fn say_goodbye(&mut self) {
        // Messages that came in last are read no more.
        self.unread = ReceiveQuota::new(self.host.quota());
        self.session.disconnect(DisconnectReason::Requested);
        let _ = self.write().await;
        let _ = self.stream.shutdown().await;
    }
}

impl OpenRequests {
    /// Notes whether the peer is read. The time for which it is not does not count as its silence.
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

    /// The end of a question whose time is over at `until`. A question to a peer that is not read lasts at least as long again
    /// from the moment at which reading stopped.
    fn end(&self, until: Instant) -> Instant {
        self.unread_since.map_or(until, |since| until.max(since + RESPONSE_TIMEOUT))
    }

    /// Waits until the time of the oldest question is over. Numbers grow, and all questions have the same time.
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

    /// Gives up the questions whose time is over.
    fn give_up(&mut self) {
        let now = Instant::now();
        while let Some((id, oldest)) = self.waiting.first_key_value() {
            if self.end(oldest.until) > now {
                return;
            }
            let id = *id;
            let Some(OpenRequest { reply, permit, .. }) = self.waiting.remove(&id) else { return };
            // The response may have come, if the peer were read.
            if self.unread_since.is_some() {
                let _ = reply.send(Err(NoRoom.into()));
                continue;
            }
            permit.iter().for_each(RequestPermit::unanswered);
            let _ = reply.send(Err(PeerError::NoResponse(RESPONSE_TIMEOUT)));
        }
    }
}

/// The most bytes that the response to a request has.
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
mod tests {
    use super::*;

    /// A question that has just been sent.
    fn ask(open_requests: &mut OpenRequests) -> oneshot::Receiver<Result<Option<ReceivedBytes>, PeerError>> {
        let (reply, answer) = oneshot::channel();
        let id = open_requests.next_id.saturating_add(1);
        open_requests.next_id = id;
        let until = Instant::now() + RESPONSE_TIMEOUT;
        open_requests
            .waiting
            .insert(id, OpenRequest { request: Request::SnapStatus, reply, permit: None, until });
        answer
    }

    async fn ended(
        open_requests: &mut OpenRequests,
        mut answer: oneshot::Receiver<Result<Option<ReceivedBytes>, PeerError>>,
    ) -> (u64, PeerError) {
        let begun = Instant::now();
        loop {
            if let Ok(answer) = answer.try_recv() {
                return (begun.elapsed().as_secs(), answer.unwrap_err());
            }
            open_requests.overdue().await;
            open_requests.give_up();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_for_which_a_peer_is_not_read_is_not_its_silence() {
        let silent = PeerError::NoResponse(RESPONSE_TIMEOUT);
        let mut open_requests = OpenRequests::default();
        let answer = ask(&mut open_requests);
        assert_eq!(ended(&mut open_requests, answer).await, (6, silent.clone()));
        // Read again after 3 s.
        let answer = ask(&mut open_requests);
        tokio::time::advance(Duration::from_secs(1)).await;
        open_requests.note_read(false);
        tokio::time::advance(Duration::from_secs(3)).await;
        open_requests.note_read(true);
        assert_eq!(ended(&mut open_requests, answer).await, (5, silent.clone()));
        // Looks at messages that find room take no time.
        let answer = ask(&mut open_requests);
        for _ in 0..100 {
            open_requests.note_read(false);
            open_requests.note_read(true);
        }
        assert_eq!(ended(&mut open_requests, answer).await, (6, silent));
        // Not read any more.
        let answer = ask(&mut open_requests);
        tokio::time::advance(Duration::from_secs(2)).await;
        open_requests.note_read(false);
        let later = ask(&mut open_requests);
        assert_eq!(ended(&mut open_requests, answer).await, (6, PeerError::NoRoom));
        assert_eq!(ended(&mut open_requests, later).await.1, PeerError::NoRoom);
    }

    #[tokio::test(start_paused = true)]
    async fn long_messages_are_read_after_questions_for_them() {
        let mut open_requests = OpenRequests::default();
        assert_eq!(open_requests.longest_message(), LONGEST_UNASKED);
        open_requests.allowed.insert(longest_response(&Request::SnapStatus), Instant::now() + LATE);
        assert_eq!(open_requests.longest_message(), MAX_FRAME_READ);
        tokio::time::advance(LATE).await;
        assert_eq!(open_requests.longest_message(), LONGEST_UNASKED);
    }
}
