//! One session with a peer, as a machine without I/O: the handshake of the connection, HELLO and STATUS of both sides, then messages.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::close::{CloseReason, SendError};
use super::config::{RateLimits, SessionConfig};
use super::disconnect::DisconnectReason;
use super::hello::{BASE_VERSION, Hello, RSK_VERSION};
use super::rate::RateWindow;
use super::status::SessionStatus;
use crate::rlpx::{Connection, Frame, HandshakeSecrets, MAX_FRAME_SENT, NodeId, NodeKey, RlpxError};

/// Longest time from the start to the peer's STATUS, in milliseconds.
pub const HANDSHAKE_TIMEOUT_MS: u64 = 10_000;
/// Longest time without a whole message, in milliseconds. The reference pings every 5 seconds.
pub const SILENCE_TIMEOUT_MS: u64 = 120_000;

// Message codes.
const HELLO: u64 = 0x00;
const DISCONNECT: u64 = 0x01;
const PING: u64 = 0x02;
const PONG: u64 = 0x03;
/// The first code above the base protocol.
const BASE_END: u64 = 0x10;
/// STATUS of `rsk`: code 0 of that protocol.
const STATUS: u64 = 0x10;
/// All other messages of `rsk`: code 8 of that protocol.
const RSK_MESSAGE: u64 = 0x18;
/// The payload of a PONG: the empty RLP list.
const EMPTY_LIST: [u8; 1] = [0xc0];
/// Versions of the base protocol that a peer may state. Because we state 4, the peer uses version 4, which has no compression.
const BASE_VERSIONS: [u64; 2] = [BASE_VERSION, 5];

/// The peer's id, HELLO and status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The peer's id, proven by the handshake.
    pub id: NodeId,
    /// The peer's HELLO; the id in it is the proven one.
    pub hello: Hello,
    /// The peer's STATUS; network and genesis block are the same as ours.
    pub status: SessionStatus,
}

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Both sides have sent HELLO and STATUS; messages may be sent now.
    Ready(Box<Peer>),
    /// The payload of an RSK_MESSAGE (0x18).
    Message(Vec<u8>),
    /// The session is over: write the rest of the output, then close the socket. No event follows.
    Closed(CloseReason),
}

/// One session, as a machine over bytes and milliseconds.
///
/// After each [`receive`](Self::receive), take events until there are none, then write the output. HELLO,
/// STATUS, PONG and DISCONNECT are sent by the session itself. All times are milliseconds of one clock that does not go back.
#[derive(Debug)]
pub struct Session {
    connection: Connection,
    own_id: NodeId,
    /// Whether we dialled. The initiator sends HELLO first.
    initiator: bool,
    config: SessionConfig,
    stage: SessionStage,
    /// Why the session ended, until [`Event::Closed`] was taken.
    ended: Option<CloseReason>,
    started_ms: u64,
    last_message_ms: u64,
    /// Messages that we have sent in the last minute.
    sent: RateWindow,
    received: RateWindow,
    received_bytes: RateWindow,
}

/// The stage of a session.
#[derive(Debug)]
enum SessionStage {
    /// The handshake of the connection is not over.
    Start,
    /// The peer's HELLO is to come.
    AwaitHello,
    /// The peer's STATUS is to come after this HELLO.
    AwaitStatus(Hello),
    Ready,
    Closed,
}

impl Session {
    /// A session with the node with this id, whose connection we open. Write the first output to the socket in one piece.
    pub fn dial(
        key: &NodeKey,
        remote: &NodeId,
        secrets: &HandshakeSecrets,
        config: SessionConfig,
        now_ms: u64,
    ) -> Result<Self, RlpxError> {
        let initiator = true;
        Ok(Self::new(Connection::dial(key, remote, secrets)?, key, initiator, config, now_ms))
    }

    /// A session with a node that has opened the connection.
    pub fn accept(
        key: &NodeKey,
        secrets: HandshakeSecrets,
        config: SessionConfig,
        now_ms: u64,
    ) -> Result<Self, RlpxError> {
        let initiator = false;
        Ok(Self::new(Connection::accept(key, secrets)?, key, initiator, config, now_ms))
    }

    fn new(
        connection: Connection,
        key: &NodeKey,
        initiator: bool,
        config: SessionConfig,
        now_ms: u64,
    ) -> Self {
        let limits = config.limits;
        Self {
            connection,
            own_id: *key.id(),
            initiator,
            config,
            stage: SessionStage::Start,
            ended: None,
            started_ms: now_ms,
            last_message_ms: now_ms,
            sent: RateWindow::new(limits.sent),
            received: RateWindow::new(limits.received),
            received_bytes: RateWindow::new(limits.received_bytes),
        }
    }

    /// Takes bytes of the peer, at most [`MAX_UNREAD`](crate::rlpx::MAX_UNREAD) at a time. If they break a rule, the next event is
    /// [`Event::Closed`].
    pub fn receive(&mut self, bytes: &[u8], now_ms: u64) {
        // Received bytes do not extend the time for the handshake.
        if !self.is_ready() {
            self.tick(now_ms);
        }
        if self.is_closed() {
            return;
        }
        let amount = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if self.received_bytes.take(now_ms, amount).is_err() {
            return self.close(CloseReason::Flood);
        }
        if let Err(error) = self.connection.feed(bytes) {
            return self.close(error.into());
        }
        if matches!(self.stage, SessionStage::Start) && self.connection.is_open() {
            self.stage = SessionStage::AwaitHello;
            if self.initiator {
                self.send_hello();
            }
        }
    }

    /// The next event, or `None` until more bytes are received or time passes. Messages are decrypted one by one, here.
    pub fn next_event(&mut self, now_ms: u64) -> Option<Event> {
        while !self.is_closed() {
            match self.connection.next_frame() {
                Ok(None) => break,
                Err(error) => self.close(error.into()),
                Ok(Some(_)) if self.received.take(now_ms, 1).is_err() => self.close(CloseReason::Flood),
                Ok(Some(frame)) => {
                    self.last_message_ms = now_ms;
                    match self.handle(frame) {
                        Ok(None) => {}
                        Ok(event) => return event,
                        Err(reason) => self.close(reason),
                    }
                }
            }
        }
        self.ended.take().map(Event::Closed)
    }

    /// Ends the session if the peer is too slow. To be called at least once a second; then take events.
    pub fn tick(&mut self, now_ms: u64) {
        let since = |start: u64| now_ms.saturating_sub(start);
        match self.stage {
            SessionStage::Closed => {}
            SessionStage::Ready if since(self.last_message_ms) >= SILENCE_TIMEOUT_MS => {
                self.close(CloseReason::Silence)
            }
            SessionStage::Ready => {}
            _ if since(self.started_ms) >= HANDSHAKE_TIMEOUT_MS => self.close(CloseReason::HandshakeTimeout),
            _ => {}
        }
    }

    /// Sends the payload of an RSK_MESSAGE, within the limit of a minute.
    pub fn send_message(&mut self, payload: &[u8], now_ms: u64) -> Result<(), SendError> {
        match self.stage {
            SessionStage::Ready => {}
            SessionStage::Closed => return Err(SendError::Closed),
            _ => return Err(SendError::NotReady),
        }
        // The code takes a byte.
        let size = payload.len().saturating_add(1);
        if size > MAX_FRAME_SENT {
            return Err(SendError::Transport(RlpxError::FrameSize { size, limit: MAX_FRAME_SENT }));
        }
        self.sent.take(now_ms, 1).map_err(|wait_ms| SendError::Rate { wait_ms })?;
        self.connection.send(RSK_MESSAGE, payload).map_err(SendError::Transport)
    }

    /// How many messages may be sent at this time.
    pub fn sends_left(&mut self, now_ms: u64) -> u64 {
        if self.is_ready() { self.sent.left(now_ms) } else { 0 }
    }

    /// Ends the session with this reason.
    pub fn disconnect(&mut self, reason: DisconnectReason) {
        if !self.is_closed() {
            self.close(CloseReason::ByUs(reason));
        }
    }

    /// The bytes to send to the peer that were added since the last call.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.connection.take_output()
    }

    /// Number of bytes that were received and that are no part of a message that was taken.
    pub fn unread(&self) -> usize {
        self.connection.unread()
    }

    /// Sets the most bytes of a message that are read from now on, at most those of the configuration. A longer message ends the session;
    /// a message that has begun is read whole.
    pub fn set_read_limit(&mut self, bytes: usize) {
        if self.is_ready() {
            self.connection.set_read_limit(bytes.min(self.config.read_limit));
        }
    }

    /// The size of the incomplete message whose first bytes have come, in bytes; `None` if there is none.
    pub fn begun_message(&self) -> Option<usize> {
        self.connection.begun_frame()
    }

    /// The size of [`begun_message`](Self::begun_message) if all its bytes have come, so that the next call of
    /// [`next_event`](Self::next_event) decrypts it first.
    pub fn whole_message(&self) -> Option<usize> {
        self.connection.whole_frame()
    }

    /// The peer's id: the one that was dialled, or the one that the handshake has proven.
    pub const fn remote_id(&self) -> Option<&NodeId> {
        self.connection.remote_id()
    }

    /// Whether messages may be sent.
    pub const fn is_ready(&self) -> bool {
        matches!(self.stage, SessionStage::Ready)
    }

    /// The limits of the session.
    pub const fn limits(&self) -> RateLimits {
        self.config.limits
    }

    /// Whether the session is over.
    pub const fn is_closed(&self) -> bool {
        matches!(self.stage, SessionStage::Closed)
    }

    /// Handles a frame.
    fn handle(&mut self, frame: Frame) -> Result<Option<Event>, CloseReason> {
        match frame.code {
            HELLO => self.hello(&frame.payload).map(|()| None),
            DISCONNECT => Err(CloseReason::ByPeer(DisconnectReason::decode(&frame.payload))),
            PING => {
                self.connection.send(PONG, &EMPTY_LIST)?;
                Ok(None)
            }
            // PONG, and further messages of the base protocol, need no answer.
            PONG..BASE_END => Ok(None),
            STATUS => self.status(&frame.payload).map(Some),
            RSK_MESSAGE if self.is_ready() => Ok(Some(Event::Message(frame.payload))),
            RSK_MESSAGE => Err(CloseReason::OutOfOrder(RSK_MESSAGE)),
            code => Err(CloseReason::UnknownCode(code)),
        }
    }

    /// Handles the peer's HELLO: checks it and sends our STATUS, and our HELLO before if the peer has dialled.
    fn hello(&mut self, payload: &[u8]) -> Result<(), CloseReason> {
        if !matches!(self.stage, SessionStage::AwaitHello) {
            return Err(CloseReason::OutOfOrder(HELLO));
        }
        let hello = Hello::decode(payload)?;
        if !BASE_VERSIONS.contains(&hello.version) {
            return Err(CloseReason::BaseVersion(hello.version));
        }
        if !hello.speaks_rsk() {
            return Err(CloseReason::NoRsk);
        }
        if self.remote_id() != Some(&hello.node_id) {
            return Err(CloseReason::Identity);
        }
        if !self.initiator {
            self.send_hello();
        }
        self.connection.send(STATUS, &self.config.status().encode())?;
        self.stage = SessionStage::AwaitStatus(hello);
        Ok(())
    }

    /// Handles the peer's STATUS, after which the session is ready.
    fn status(&mut self, payload: &[u8]) -> Result<Event, CloseReason> {
        let SessionStage::AwaitStatus(hello) = &self.stage else {
            return Err(CloseReason::OutOfOrder(STATUS));
        };
        let status = SessionStatus::decode(payload)?;
        if status.version != RSK_VERSION {
            return Err(CloseReason::RskVersion(status.version));
        }
        let (expected, found) = (self.config.network_id, status.network_id);
        if expected != found {
            return Err(CloseReason::Network { expected, found });
        }
        let (expected, found) = (self.config.genesis_hash, status.genesis_hash);
        if expected != found {
            return Err(CloseReason::Genesis { expected, found });
        }
        let peer = Peer { id: hello.node_id, hello: hello.clone(), status };
        self.stage = SessionStage::Ready;
        self.connection.set_read_limit(self.config.read_limit);
        Ok(Event::Ready(Box::new(peer)))
    }

    /// Sends our HELLO.
    fn send_hello(&mut self) {
        let config = &self.config;
        let hello = Hello::ours(&config.client_id, config.serves_snap, config.listen_port, self.own_id);
        if let Err(error) = self.connection.send(HELLO, &hello.encode()) {
            self.close(error.into());
        }
    }

    /// Ends the session, and sends DISCONNECT with the reason.
    fn close(&mut self, reason: CloseReason) {
        if let Some(disconnect) = reason.disconnect_reason() {
            // Sending fails only if the handshake of the connection is not over, or if the connection has failed.
            let _ = self.connection.send(DISCONNECT, &disconnect.encode());
        }
        self.stage = SessionStage::Closed;
        self.ended = Some(reason);
    }
}
