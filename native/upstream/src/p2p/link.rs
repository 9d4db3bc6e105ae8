//! One connection to a peer: a handle that asks and tells. Its task is in `connection`.

use std::sync::Arc;
use std::time::Duration;

use rootlight::types::Asker;
use rootlight_limits::request_permits::{PermitLimits, RequestPermit, RequestPermits};
use rootlight_p2p::message::{Message, Push, Request};
use rootlight_p2p::session::{CloseReason, DisconnectReason, Event, HANDSHAKE_TIMEOUT_MS, Peer, Session};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::connection::{
    Clock, ENDED_FOR_ROOM, OpenRequests, OutgoingKind, OutgoingMessage, PeerConnection, PeerHandler,
    READ_BYTES,
};
use super::error::PeerError;
use super::share::MinuteQuota;
use crate::source_quota::{ReceiveQuota, ReceivedBytes};

/// Places for questions of callers. A peer sends 100 responses a second.
const CALLERS: PermitLimits = PermitLimits { all: 48, each: 24, doubtful: 16 };

/// Places for questions of the program itself, such as those of synchronization.
const OWN: PermitLimits = PermitLimits { all: 16, each: 16, doubtful: 16 };

/// Places for requests for state chunks: a snapshot server drops more than three of a peer.
const CHUNKS: PermitLimits =
    PermitLimits { all: rootlight_p2p::chunk::limits::MAX_IN_FLIGHT, each: 2, doubtful: 1 };

/// Most messages that wait for the connection's task.
const MAX_ORDERS: usize = 64;

/// A connection that is ready.
pub struct PeerLink {
    /// The peer's HELLO and status.
    pub peer: Peer,
    own_messages: mpsc::Sender<OutgoingMessage>,
    caller_messages: mpsc::Sender<OutgoingMessage>,
    ended: watch::Receiver<Option<CloseReason>>,
    permits: [Arc<RequestPermits>; 3],
}

/// The right to ask the peer one question.
pub(super) struct LinkPermit {
    link: Arc<PeerLink>,
    permit: RequestPermit,
}

impl PeerLink {
    /// Speaks the handshake and waits for the peer's status.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn open(
        mut stream: TcpStream,
        mut session: Session,
        host: Arc<dyn PeerHandler>,
    ) -> Result<Arc<Self>, PeerError> {
        // The first packet must arrive in one piece.
        let _ = stream.set_nodelay(true);
        let clock = Clock::start();
        let mut buffer = vec![0; READ_BYTES];
        let shaken = shake_hands(&mut stream, &mut session, &mut buffer, clock);
        // By the clock, however often bytes come and however slowly they are taken.
        let peer = timeout(Duration::from_millis(HANDSHAKE_TIMEOUT_MS), shaken).await;
        let peer = peer.map_err(|_| PeerError::Closed(CloseReason::HandshakeTimeout))??;
        let (own_messages, own_orders) = mpsc::channel(MAX_ORDERS);
        let (caller_messages, callers_orders) = mpsc::channel(MAX_ORDERS);
        let (end, ended) = watch::channel(None);
        let minute = MinuteQuota::new(session.limits().sent);
        let unread = ReceiveQuota::new(host.quota());
        let mut connection = PeerConnection {
            stream,
            session,
            clock,
            host,
            own_messages: own_orders,
            caller_messages: callers_orders,
            minute,
            open_requests: OpenRequests::default(),
            making: None,
            unread,
            slow: 0,
            read_after: None,
        };
        tokio::spawn(async move {
            let reason = connection.run(buffer).await;
            connection.say_goodbye().await;
            let _ = end.send(Some(reason));
        });
        Ok(Arc::new(Self {
            peer,
            own_messages,
            caller_messages,
            ended,
            permits: [OWN, CALLERS, CHUNKS].map(RequestPermits::new),
        }))
    }

    /// Waits for the turn of a caller's question of this kind.
    ///
    /// # Errors
    /// Too many questions of the caller wait.
    pub(super) async fn turn(
        self: &Arc<Self>,
        asker: Option<Asker>,
        request: &Request,
    ) -> Result<LinkPermit, PeerError> {
        let [own_messages, caller_messages, chunks] = &self.permits;
        let permits = match (request, asker) {
            (Request::Chunk(_), _) => chunks,
            (_, Some(_)) => caller_messages,
            (_, None) => own_messages,
        };
        let permit = permits.acquire(asker).await.ok_or(PeerError::Share)?;
        Ok(LinkPermit { link: self.clone(), permit })
    }

    /// Asks the peer for the program itself, and returns the message with the response.
    ///
    /// # Errors
    /// No response came in time, or the connection ended.
    pub(super) async fn ask(self: &Arc<Self>, request: Request) -> Result<ReceivedBytes, PeerError> {
        self.turn(None, &request).await?.ask(request).await
    }

    /// Sends a message without an id.
    pub async fn push(&self, asker: Option<Asker>, push: Push<'_>) -> Result<(), PeerError> {
        let what = OutgoingKind::Push(Message::Push(push).encode());
        let (reply, sent) = oneshot::channel();
        self.order(OutgoingMessage { asker, what, reply, permit: None }).await?;
        sent.await.map_err(|_| self.why_ended())?.map(drop)
    }

    /// Waits until the connection has ended.
    pub async fn ended(&self) -> CloseReason {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or(CloseReason::Silence),
            Err(_) => CloseReason::ByUs(DisconnectReason::Requested),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.own_messages.is_closed()
    }

    async fn order(&self, order: OutgoingMessage) -> Result<(), PeerError> {
        let orders = if order.asker.is_some() { &self.caller_messages } else { &self.own_messages };
        orders.send(order).await.map_err(|_| self.why_ended())
    }

    fn why_ended(&self) -> PeerError {
        match &*self.ended.borrow() {
            Some(CloseReason::ByUs(ENDED_FOR_ROOM)) => PeerError::NoRoom,
            Some(reason) => PeerError::Closed(reason.clone()),
            None => PeerError::NotConnected("the connection has just ended".into()),
        }
    }
}

impl LinkPermit {
    /// Asks the question that the turn is for; returns the message with the response.
    ///
    /// # Errors
    /// No response came in time, or the connection ended.
    pub(super) async fn ask(self, request: Request) -> Result<ReceivedBytes, PeerError> {
        let (reply, response) = oneshot::channel();
        let Self { link, permit } = self;
        let order = OutgoingMessage {
            asker: permit.asker(),
            what: OutgoingKind::Ask(request),
            reply,
            permit: Some(permit),
        };
        link.order(order).await?;
        response.await.ok().transpose()?.flatten().ok_or_else(|| link.why_ended())
    }
}

/// Speaks until the peer has said who it is.
async fn shake_hands(
    stream: &mut TcpStream,
    session: &mut Session,
    buffer: &mut [u8],
    clock: Clock,
) -> Result<Peer, PeerError> {
    let broken = || PeerError::Closed(CloseReason::ByPeer(DisconnectReason::TcpError));
    loop {
        let event = session.next_event(clock.now());
        stream.write_all(&session.take_output()).await.map_err(|_| broken())?;
        match event {
            Some(Event::Ready(peer)) => return Ok(*peer),
            Some(Event::Closed(reason)) => return Err(PeerError::Closed(reason)),
            Some(Event::Message(_)) => continue,
            None => {}
        }
        match stream.read(buffer).await {
            Ok(count) if count > 0 => session.receive(&buffer[..count], clock.now()),
            _ => return Err(broken()),
        }
    }
}
