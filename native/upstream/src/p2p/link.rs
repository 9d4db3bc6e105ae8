//! One connection to a peer: the handle by which other tasks send requests and messages. The task that owns the socket is in
//! `connection.rs`.

use std::sync::Arc;
use std::time::Duration;

use rootlight_limits::quota_owner::QuotaOwner;
use rootlight_limits::request_permits::{PermitLimits, RequestPermit, RequestPermits};
use rootlight_p2p::message::{Message, Push, Request};
use rootlight_p2p::session::{CloseReason, DisconnectReason, Event, HANDSHAKE_TIMEOUT_MS, Peer, Session};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::connection::{
    Clock, ENDED_FOR_BUDGET, OpenRequests, OutgoingKind, OutgoingMessage, PeerConnection, PeerHandler,
    READ_BYTES,
};
use super::error::PeerError;
use super::share::MinuteQuota;
use crate::source_quota::{ReceiveQuota, ReceivedBytes};

/// Permits for requests of callers. A peer sends about 100 responses in a second.
const CALLER_PERMITS: PermitLimits = PermitLimits { all: 48, each: 24, doubtful: 16 };

/// Permits for requests of the program itself, such as those of synchronization. One quota owner has them all.
const OWN_PERMITS: PermitLimits = PermitLimits { all: 16, each: 16, doubtful: 16 };

/// Permits for requests for state chunks, of callers and of the program: a snapshot server drops more than three of one peer.
const CHUNK_PERMITS: PermitLimits =
    PermitLimits { all: rootlight_p2p::chunk::limits::MAX_IN_FLIGHT, each: 2, doubtful: 1 };

/// Most messages that wait for the connection's task. Further senders wait.
const MAX_QUEUED: usize = 64;

/// A connection whose handshake is done.
pub struct PeerLink {
    /// The peer's HELLO and status.
    pub peer: Peer,
    own_messages: mpsc::Sender<OutgoingMessage>,
    caller_messages: mpsc::Sender<OutgoingMessage>,
    /// Why the connection has ended; `None` while it is open.
    ended: watch::Receiver<Option<CloseReason>>,
    /// The permits of the program itself, of callers, and for state chunks.
    permits: [Arc<RequestPermits>; 3],
}

/// The right to send the peer one request.
pub(super) struct LinkPermit {
    link: Arc<PeerLink>,
    permit: RequestPermit,
}

impl PeerLink {
    /// Does the handshake, waits for the peer's status, and starts the task of the connection.
    ///
    /// # Errors
    /// The connection ended before the status came.
    pub async fn open(
        mut stream: TcpStream,
        mut session: Session,
        host: Arc<dyn PeerHandler>,
    ) -> Result<Arc<Self>, PeerError> {
        // Without Nagle's algorithm, because the first packet must arrive in one piece.
        let _ = stream.set_nodelay(true);
        let clock = Clock::start();
        let mut buffer = vec![0; READ_BYTES];
        let shaken = shake_hands(&mut stream, &mut session, &mut buffer, clock);
        // The session has the same time limit, but looks at the clock only when bytes come or are taken.
        let peer = timeout(Duration::from_millis(HANDSHAKE_TIMEOUT_MS), shaken).await;
        let peer = peer.map_err(|_| PeerError::Closed(CloseReason::HandshakeTimeout))??;
        let (own_messages, own_queue) = mpsc::channel(MAX_QUEUED);
        let (caller_messages, caller_queue) = mpsc::channel(MAX_QUEUED);
        let (end, ended) = watch::channel(None);
        let minute = MinuteQuota::new(session.limits().sent);
        let unread = ReceiveQuota::new(host.quota());
        let mut connection = PeerConnection {
            stream,
            session,
            clock,
            host,
            own_messages: own_queue,
            caller_messages: caller_queue,
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
            permits: [OWN_PERMITS, CALLER_PERMITS, CHUNK_PERMITS].map(RequestPermits::new),
        }))
    }

    /// Waits for a permit for a request of this kind, of a caller or of the program itself (`None`).
    ///
    /// # Errors
    /// Too many requests of the caller wait.
    pub(super) async fn permit(
        self: &Arc<Self>,
        quota_owner: Option<QuotaOwner>,
        request: &Request,
    ) -> Result<LinkPermit, PeerError> {
        let [own, callers, chunks] = &self.permits;
        let permits = match (request, quota_owner) {
            (Request::Chunk(_), _) => chunks,
            (_, Some(_)) => callers,
            (_, None) => own,
        };
        let permit = permits.acquire(quota_owner).await.ok_or(PeerError::Share)?;
        Ok(LinkPermit { link: self.clone(), permit })
    }

    /// Asks the peer for the program itself, and returns the message with the response.
    ///
    /// # Errors
    /// No response came in time, or the connection ended.
    pub(super) async fn ask(self: &Arc<Self>, request: Request) -> Result<ReceivedBytes, PeerError> {
        self.permit(None, &request).await?.ask(request).await
    }

    /// Sends a message that has no id and no response, for a caller or for the program itself (`None`).
    pub async fn push(&self, quota_owner: Option<QuotaOwner>, push: Push<'_>) -> Result<(), PeerError> {
        let what = OutgoingKind::Push(Message::Push(push).encode());
        let (reply, sent) = oneshot::channel();
        self.queue(OutgoingMessage { quota_owner, what, reply, permit: None }).await?;
        sent.await.map_err(|_| self.why_ended())?.map(drop)
    }

    /// Waits until the connection has ended.
    pub async fn ended(&self) -> CloseReason {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            // `wait_for` returns a reason.
            Ok(reason) => reason.clone().unwrap_or(CloseReason::Silence),
            // The task ended without a reason: the runtime stops, or the task panicked.
            Err(_) => CloseReason::ByUs(DisconnectReason::Requested),
        }
    }

    /// Whether the task of the connection still takes messages.
    pub(super) fn is_open(&self) -> bool {
        !self.own_messages.is_closed()
    }

    /// Hands a message to the task of the connection.
    async fn queue(&self, message: OutgoingMessage) -> Result<(), PeerError> {
        let queue = if message.quota_owner.is_some() { &self.caller_messages } else { &self.own_messages };
        queue.send(message).await.map_err(|_| self.why_ended())
    }

    /// The error of a message that the task of the connection did not answer.
    fn why_ended(&self) -> PeerError {
        match &*self.ended.borrow() {
            Some(CloseReason::ByUs(ENDED_FOR_BUDGET)) => PeerError::BudgetUsedUp,
            Some(reason) => PeerError::Closed(reason.clone()),
            None => PeerError::NotConnected("the connection has just ended".into()),
        }
    }
}

impl LinkPermit {
    /// Sends the request that the permit is for. Returns the message with the response.
    ///
    /// # Errors
    /// No response came in time, or the connection ended.
    pub(super) async fn ask(self, request: Request) -> Result<ReceivedBytes, PeerError> {
        let (reply, response) = oneshot::channel();
        let Self { link, permit } = self;
        let message = OutgoingMessage {
            quota_owner: permit.quota_owner(),
            what: OutgoingKind::Ask(request),
            reply,
            permit: Some(permit),
        };
        link.queue(message).await?;
        response.await.ok().transpose()?.flatten().ok_or_else(|| link.why_ended())
    }
}

/// Does the handshake until the peer's HELLO and status have come.
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
