//! One connection to a peer: a task that owns the socket, answers and tells, and a handle that asks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use rootlight_p2p::message::{ChunkRequest, Message, Push, Request};
use rootlight_p2p::session::{CloseReason, DisconnectReason, Event, Peer, SendError, Session};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::time::{Instant, timeout};

use super::error::PeerError;

/// Longest wait for a response. A peer that lacks something does not respond.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(6);

/// Longest wait for the socket to take what is written.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Most requests that wait for their responses. A peer sends 100 a second.
const MAX_WAITING: usize = 64;

/// Most requests for state chunks that wait for their responses: a snapshot server drops more than three of a peer.
const MAX_CHUNKS: usize = rootlight_p2p::chunk::limits::MAX_IN_FLIGHT;

/// Bytes that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// Pause before a message that the limit of a minute holds back is tried again.
const LIMIT_PAUSE: Duration = Duration::from_millis(200);

/// A request that the limit of a minute holds back for longer fails at once.
const LONGEST_HOLD: Duration = Duration::from_secs(2);

/// Most requests of a peer that wait for their responses. Further ones are dropped, as stock nodes do.
const MAX_ASKED: usize = 256;

/// What a connection's owner does with what the peer sends by itself.
pub(super) trait Host: Send + Sync + 'static {
    /// A message without an id came.
    fn pushed(&self, push: Push<'_>);

    /// Answers a request with the payload of a message, on a thread where it may take long. `None` is no answer.
    fn requested(&self, _id: u64, _request: Request) -> Option<Vec<u8>> {
        None
    }

    /// The message with the block of this hash, which a peer that was told of it asks for without an id. `None` is no
    /// answer.
    fn block(&self, _hash: B256) -> Option<Vec<u8>> {
        None
    }

    /// Places for the answers to all peers; `None` if nothing is answered.
    fn turns(&self) -> Option<Arc<Semaphore>> {
        None
    }
}

/// A question, and where its response goes.
struct Ask {
    request: Request,
    reply: oneshot::Sender<Result<Vec<u8>, PeerError>>,
}

enum Command {
    Ask(Ask),
    Push(Vec<u8>),
}

/// A connection that is ready.
pub(super) struct Link {
    /// What the peer said of itself.
    pub(super) peer: Peer,
    commands: mpsc::Sender<Command>,
    ended: watch::Receiver<Option<CloseReason>>,
    requests: Semaphore,
    chunks: Semaphore,
}

impl Link {
    /// Speaks the handshake and waits for the peer's status.
    ///
    /// # Errors
    /// The connection ended before.
    pub(super) async fn open(
        mut stream: TcpStream,
        mut session: Session,
        host: Arc<dyn Host>,
    ) -> Result<Arc<Self>, PeerError> {
        // The first packet must arrive in one piece.
        let _ = stream.set_nodelay(true);
        let clock = Clock::start();
        let mut buffer = vec![0; READ_BYTES];
        let peer = loop {
            match step(&mut stream, &mut session, &mut buffer, clock).await {
                Ok(Some(Event::Ready(peer))) => break peer,
                Ok(Some(Event::Closed(reason))) | Err(reason) => return Err(PeerError::Closed(reason)),
                Ok(_) => {}
            }
        };
        let (commands, taken) = mpsc::channel(MAX_WAITING);
        let (end, ended) = watch::channel(None);
        let (asked, questions) = mpsc::channel(MAX_ASKED);
        let (answered, answers) = mpsc::channel(1);
        let chunks_asked = Arc::new(Semaphore::new(MAX_CHUNKS));
        tokio::spawn(answer_in_turn(host.clone(), questions, answered));
        let waiting = BTreeMap::new();
        let mut task =
            Task { stream, session, clock, taken, waiting, next_id: 1, host, asked, chunks_asked, answers };
        tokio::spawn(async move {
            let reason = task.run(buffer).await;
            task.say_goodbye().await;
            let _ = end.send(Some(reason));
        });
        Ok(Arc::new(Self {
            peer: *peer,
            commands,
            ended,
            requests: Semaphore::new(MAX_WAITING),
            chunks: Semaphore::new(MAX_CHUNKS),
        }))
    }

    /// Asks the peer, and returns the payload of the message with the response.
    ///
    /// # Errors
    /// No response came in time, or the connection ended.
    pub(super) async fn ask(&self, request: Request) -> Result<Vec<u8>, PeerError> {
        let places = match request {
            Request::Chunk(ChunkRequest { .. }) => &self.chunks,
            _ => &self.requests,
        };
        let _place = places.acquire().await.map_err(|_| self.why_ended())?;
        let (reply, response) = oneshot::channel();
        self.send(Command::Ask(Ask { request, reply })).await?;
        match timeout(RESPONSE_TIMEOUT, response).await {
            Ok(Ok(response)) => response,
            Ok(Err(_)) => Err(self.why_ended()),
            Err(_) => Err(PeerError::NoResponse(RESPONSE_TIMEOUT)),
        }
    }

    /// Sends a message without an id.
    pub(super) async fn push(&self, push: Push<'_>) -> Result<(), PeerError> {
        self.send(Command::Push(Message::Push(push).encode())).await
    }

    /// Waits until the connection has ended.
    pub(super) async fn ended(&self) -> CloseReason {
        let mut ended = self.ended.clone();
        match ended.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or(CloseReason::Silence),
            Err(_) => CloseReason::ByUs(DisconnectReason::Requested),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        !self.commands.is_closed()
    }

    async fn send(&self, command: Command) -> Result<(), PeerError> {
        self.commands.send(command).await.map_err(|_| self.why_ended())
    }

    fn why_ended(&self) -> PeerError {
        match &*self.ended.borrow() {
            Some(reason) => PeerError::Closed(reason.clone()),
            None => PeerError::NotConnected("the connection has just ended".into()),
        }
    }
}

/// Milliseconds since a connection began.
#[derive(Clone, Copy)]
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn now(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// The socket of a connection, and the questions that wait.
struct Task {
    stream: TcpStream,
    session: Session,
    clock: Clock,
    taken: mpsc::Receiver<Command>,
    waiting: BTreeMap<u64, Ask>,
    next_id: u64,
    host: Arc<dyn Host>,
    asked: mpsc::Sender<Question>,
    /// A place for each request for a chunk.
    chunks_asked: Arc<Semaphore>,
    answers: mpsc::Receiver<Vec<u8>>,
}

/// A request of the peer.
struct Question {
    asked: Asked,
    /// Held until the response is made, for a chunk.
    _place: Option<OwnedSemaphorePermit>,
}

/// What a peer asks for.
enum Asked {
    Request { id: u64, request: Request },
    Block(B256),
}

/// Answers the requests of a peer one after the other, on threads where that may take long.
async fn answer_in_turn(
    host: Arc<dyn Host>,
    mut questions: mpsc::Receiver<Question>,
    answered: mpsc::Sender<Vec<u8>>,
) {
    let turns = host.turns();
    while let Some(question) = questions.recv().await {
        let host = host.clone();
        let _turn = match turns.clone() {
            Some(turns) => turns.acquire_owned().await.ok(),
            None => None,
        };
        let run = move || match question.asked {
            Asked::Request { id, request } => host.requested(id, request),
            Asked::Block(hash) => host.block(hash),
        };
        if let Ok(Some(payload)) = crate::priority::spawn_lowered(None, run).await
            && answered.send(payload).await.is_err()
        {
            return;
        }
    }
}

impl Task {
    /// Serves the connection until it ends.
    async fn run(&mut self, mut buffer: Vec<u8>) -> CloseReason {
        let mut ticks = tokio::time::interval(Duration::from_secs(1));
        let mut held: Option<Command> = None;
        loop {
            while let Some(event) = self.session.next_event(self.clock.now()) {
                match event {
                    Event::Message(payload) => self.take(payload),
                    Event::Closed(reason) => return reason,
                    Event::Ready(_) => {}
                }
            }
            if let Err(reason) = flush(&mut self.stream, &mut self.session).await {
                return reason;
            }
            let can_take = held.is_none();
            tokio::select! {
                read = self.stream.read(&mut buffer) => match read {
                    Ok(count) if count > 0 => self.session.receive(&buffer[..count], self.clock.now()),
                    _ => return CloseReason::ByPeer(DisconnectReason::TcpError),
                },
                command = self.taken.recv(), if can_take => match command {
                    Some(command) => held = self.command(command),
                    None => return CloseReason::ByUs(DisconnectReason::Requested),
                },
                Some(payload) = self.answers.recv(), if can_take => held = self.command(Command::Push(payload)),
                () = tokio::time::sleep(LIMIT_PAUSE), if !can_take => {
                    held = held.take().and_then(|command| self.command(command));
                }
                _ = ticks.tick() => {
                    self.session.tick(self.clock.now());
                    self.waiting.retain(|_, ask| !ask.reply.is_closed());
                }
            }
        }
    }

    /// Sends a command's message. Gives the command back if the limit of a minute holds it back.
    fn command(&mut self, command: Command) -> Option<Command> {
        let id = self.next_id;
        let payload = match &command {
            // Nobody waits any more.
            Command::Ask(ask) if ask.reply.is_closed() => return None,
            Command::Ask(ask) => Message::Request { id, request: ask.request }.encode(),
            Command::Push(payload) => payload.clone(),
        };
        match self.session.send_message(&payload, self.clock.now()) {
            Err(SendError::Rate { wait_ms }) => return self.hold(command, wait_ms),
            // The end of the session shows as an event; then all that wait learn of it.
            Err(_) => return None,
            Ok(()) => {}
        }
        if let Command::Ask(ask) = command {
            self.next_id += 1;
            self.waiting.insert(id, ask);
        }
        None
    }

    /// Keeps a message that the limit of a minute holds back for a moment, or says how long a request would wait.
    fn hold(&self, command: Command, wait_ms: u64) -> Option<Command> {
        match command {
            Command::Ask(ask) if Duration::from_millis(wait_ms) > LONGEST_HOLD => {
                let _ = ask.reply.send(Err(PeerError::Limit(wait_ms)));
                None
            }
            held => Some(held),
        }
    }

    /// Hands a message to whom it is for. What nobody asked for is dropped.
    fn take(&mut self, payload: Vec<u8>) {
        let answered = match Message::decode(&payload) {
            Ok(Message::Push(Push::GetBlock(hash))) => return self.answer(Asked::Block(hash)),
            Ok(Message::Push(push)) => return self.host.pushed(push),
            Ok(Message::Response { id, response }) => {
                let matches = |ask: &Ask| response.answers(&ask.request);
                Some(id).filter(|id| self.waiting.get(id).is_some_and(matches))
            }
            Ok(Message::Request { id, request }) => return self.answer(Asked::Request { id, request }),
            // What does not decode does not say which request it is for.
            Err(_) => None,
        };
        if let Some(ask) = answered.and_then(|id| self.waiting.remove(&id)) {
            let _ = ask.reply.send(Ok(payload));
        }
    }

    /// Queues a request of the peer, unless too many wait.
    fn answer(&self, asked: Asked) {
        let place = match asked {
            Asked::Request { request: Request::Chunk(_), .. } => {
                match self.chunks_asked.clone().try_acquire_owned() {
                    Ok(place) => Some(place),
                    Err(_) => return,
                }
            }
            _ => None,
        };
        // A full queue drops the request.
        let _ = self.asked.try_send(Question { asked, _place: place });
    }

    async fn say_goodbye(&mut self) {
        self.session.disconnect(DisconnectReason::Requested);
        let _ = flush(&mut self.stream, &mut self.session).await;
        let _ = self.stream.shutdown().await;
    }
}

/// Writes what the session has to say.
async fn flush(stream: &mut TcpStream, session: &mut Session) -> Result<(), CloseReason> {
    let output = session.take_output();
    if output.is_empty() {
        return Ok(());
    }
    match timeout(WRITE_TIMEOUT, stream.write_all(&output)).await {
        Ok(Ok(())) => Ok(()),
        _ => Err(CloseReason::ByPeer(DisconnectReason::TcpError)),
    }
}

/// Reads and writes once, and returns what the session made of it.
async fn step(
    stream: &mut TcpStream,
    session: &mut Session,
    buffer: &mut [u8],
    clock: Clock,
) -> Result<Option<Event>, CloseReason> {
    if let Some(event) = session.next_event(clock.now()) {
        flush(stream, session).await?;
        return Ok(Some(event));
    }
    flush(stream, session).await?;
    match timeout(Duration::from_secs(1), stream.read(buffer)).await {
        Ok(Ok(count)) if count > 0 => session.receive(&buffer[..count], clock.now()),
        Ok(_) => return Err(CloseReason::ByPeer(DisconnectReason::TcpError)),
        Err(_) => session.tick(clock.now()),
    }
    Ok(None)
}
