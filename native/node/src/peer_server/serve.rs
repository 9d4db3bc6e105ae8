//! A server for peers: answers what they ask for, and tells them of new blocks.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use futures::future::BoxFuture;
use quick_cache::sync::Cache;
use rootlight::types::{Asker, BlockRef};
use rootlight_limits::Limits;
use rootlight_limits::caller_id::CallerId;
use rootlight_p2p::message::{Items, Message, Parent, Push, Request, Status, list_payload};
use rootlight_p2p::rlpx::{HandshakeSecrets, MAX_FRAME_SENT, NodeId, RANDOM_BYTES};
use rootlight_p2p::session::{Session, SessionConfig};
use rootlight_upstream::p2p::{
    Identity, LONGEST_UNASKED, PeerError, PeerHandler, PeerLink, PeerRequest, PeerResponse,
};
use rootlight_upstream::source_quota::SourceQuota;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::chain::{MAX_PENDING, PeerHead, SharedChain};
use super::respond::respond;
use super::scheduler::ResponseScheduler;
use super::seats::{HANDSHAKING, READY, Seat, Seats};

/// Bytes that what all peers of one address send can take: the longest message, and its decoded form.
const UNREAD_EACH: usize = 2 * LONGEST_UNASKED;

/// Least time between the beginnings of two handshakes: a handshake takes a part of a millisecond of a processor, and
/// anyone can ask for one.
const HANDSHAKE_INTERVAL: Duration = Duration::from_millis(10);

/// Time between two statuses, as stock nodes send them.
const STATUS_INTERVAL: Duration = Duration::from_secs(11);

/// Most transactions of a peer whose hashes are kept.
const MAX_SEEN: usize = 1024;

/// Pause after the system gave no connection, for instance because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Serves a chain to peers until the value is dropped.
pub struct PeerServer {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl PeerServer {
    /// Listens for peers; must be called inside a runtime.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub async fn bind(
        identity: Arc<Identity>,
        chain: SharedChain,
        address: SocketAddr,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, identity, chain, address.port()));
        Ok(Self { address, accepting })
    }

    /// Where peers find the server.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// State that all connections of a server share.
struct PeerServerState {
    identity: Arc<Identity>,
    chain: SharedChain,
    port: u16,
    pace: HandshakePacer,
    handshaking: Arc<Seats>,
    ready: Arc<Seats>,
    answering: Arc<ResponseScheduler>,
    quotas: AddressQuotas,
}

async fn accept(listener: TcpListener, identity: Arc<Identity>, chain: SharedChain, port: u16) {
    let answering = ResponseScheduler::new(identity.limits().work().clone());
    let server = Arc::new(PeerServerState {
        identity,
        chain,
        port,
        pace: HandshakePacer::default(),
        handshaking: Seats::new(HANDSHAKING),
        ready: Seats::new(READY),
        answering: Arc::new(answering),
        quotas: AddressQuotas::default(),
    });
    // Connections end with the server.
    let mut serving = tokio::task::JoinSet::new();
    loop {
        while serving.try_join_next().is_some() {}
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!("no connection of a peer: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // A connection without a seat costs nothing more.
        let Some(seat) = server.handshaking.enter(CallerId::new(from.ip())) else { continue };
        let server = server.clone();
        serving.spawn(async move {
            let outcome = server.serve(stream, seat).await;
            debug!("peer at {from}: {}", outcome.unwrap_or_else(|error| error.to_string()));
        });
    }
}

/// The quotas of the addresses that are served.
#[derive(Default)]
struct AddressQuotas(Mutex<BTreeMap<Asker, SourceQuota>>);

impl AddressQuotas {
    fn of(&self, asker: Asker, limits: &Limits) -> SourceQuota {
        let mut each = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        each.retain(|_, quota| quota.is_used());
        each.entry(asker).or_insert_with(|| SourceQuota::of_served_address(limits, UNREAD_EACH)).clone()
    }
}

/// One handshake begins after another.
#[derive(Default)]
struct HandshakePacer(tokio::sync::Mutex<()>);

impl HandshakePacer {
    async fn wait(&self) {
        let _turn = self.0.lock().await;
        tokio::time::sleep(HANDSHAKE_INTERVAL).await;
    }
}

impl PeerServerState {
    /// Serves one connection until it ends; returns why.
    async fn serve(&self, stream: TcpStream, handshaking: Seat) -> Result<String, PeerError> {
        let peer = handshaking.peer();
        let (host, news) = (Arc::new(self.host(peer)), AnnouncedState::since_now(&self.chain));
        let link = tokio::select! {
            link = self.shake_hands(stream, host.clone()) => link?,
            () = handshaking.replaced() => return Ok("another peer has its seat".into()),
        };
        let Some(seat) = self.ready.enter(peer).map(Arc::new) else {
            return Ok("there is no seat for another peer".into());
        };
        host.seat.set(seat.clone()).ok();
        drop(handshaking);
        debug!("peer {}: {}", short(&link.peer.id), link.peer.hello.client_id);
        tokio::select! {
            outcome = tell(&link, news, &host.seen) => outcome,
            () = seat.replaced() => Ok("another peer has its seat".into()),
        }
    }

    fn host(&self, peer: CallerId) -> ServedPeer {
        ServedPeer {
            chain: self.chain.clone(),
            answering: self.answering.clone(),
            seen: SeenTransactions::default(),
            quota: self.quotas.of(peer.asker(), self.identity.limits()),
            peer,
            seat: OnceLock::new(),
        }
    }

    async fn shake_hands(
        &self,
        stream: TcpStream,
        host: Arc<ServedPeer>,
    ) -> Result<Arc<PeerLink>, PeerError> {
        self.pace.wait().await;
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| PeerError::NotConnected(error.to_string()))?;
        let mut config = SessionConfig {
            listen_port: self.port,
            serves_snap: self.chain.serves_state(),
            read_limit: LONGEST_UNASKED,
            ..self.identity.config().clone()
        };
        if let Some(head) = self.chain.head() {
            (config.best_hash, config.total_difficulty) = (head.block.hash, head.total_difficulty);
        }
        let secrets = HandshakeSecrets::from_random(&random);
        let session = Session::accept(self.identity.key(), secrets, config, 0)?;
        PeerLink::open(stream, session, host).await
    }
}

/// The block that a peer was told of last. It counts from before the handshake, so that nothing is lost while that goes on.
struct AnnouncedState {
    chain: SharedChain,
    changes: watch::Receiver<u64>,
    next_pending: u64,
    head: Option<PeerHead>,
}

impl AnnouncedState {
    fn since_now(chain: &SharedChain) -> Self {
        let (changes, mut next_pending) = (chain.changes(), u64::MAX);
        // A peer is not told of transactions that were in the pool before.
        chain.pending(&mut next_pending);
        Self { changes, next_pending, head: chain.head(), chain: chain.clone() }
    }
}

/// Tells a peer of what is new until the connection ends; returns why.
async fn tell(
    link: &PeerLink,
    mut news: AnnouncedState,
    seen: &SeenTransactions,
) -> Result<String, PeerError> {
    let mut statuses = tokio::time::interval(STATUS_INTERVAL);
    loop {
        tokio::select! {
            reason = link.ended() => return Ok(reason.to_string()),
            _ = statuses.tick() => {
                if let Some(head) = news.chain.head() {
                    send_push(link, Push::Status(status(&head))).await?;
                }
            }
            Ok(()) = news.changes.changed() => {
                let pending = news.chain.pending(&mut news.next_pending);
                let new: Vec<Vec<u8>> = pending.into_iter().filter(|transaction| seen.is_new(transaction)).collect();
                if !new.is_empty() {
                    let payload = list_payload(new);
                    let items = Items::lists(&payload, MAX_PENDING, "transactions")?;
                    send_push(link, Push::Transactions(items)).await?;
                }
                let head = news.chain.head();
                if let (Some(block), true) = (head.map(|head| head.block), head != news.head) {
                    send_push(link, Push::NewBlockHashes(vec![block])).await?;
                }
                news.head = head;
            }
        }
    }
}

/// Sends an announcement. A peer that has been sent as many messages as it reads in a minute misses it.
async fn send_push(link: &PeerLink, push: Push<'_>) -> Result<(), PeerError> {
    match link.push(None, push).await {
        Err(PeerError::Limit(_)) => Ok(()),
        other => other,
    }
}

fn status(head: &PeerHead) -> Status {
    let parent = Parent { hash: head.parent, total_difficulty: head.total_difficulty };
    Status { best: BlockRef { ..head.block }, parent: Some(parent) }
}

/// The first digits of an id, for logs.
fn short(id: &NodeId) -> String {
    id.to_string().chars().take(16).collect()
}

/// Transactions that a peer has sent, by hash: it is not told of them.
struct SeenTransactions(Cache<B256, ()>);

impl SeenTransactions {
    fn is_new(&self, transaction: &[u8]) -> bool {
        self.0.get(&keccak256(transaction)).is_none()
    }

    fn insert(&self, transaction: &[u8]) {
        self.0.insert(keccak256(transaction), ());
    }
}

impl Default for SeenTransactions {
    fn default() -> Self {
        Self(Cache::new(MAX_SEEN))
    }
}

/// A peer that is served. Its blocks and its announcements are not used: no peer's chain is taken unasked.
struct ServedPeer {
    chain: SharedChain,
    answering: Arc<ResponseScheduler>,
    seen: SeenTransactions,
    quota: SourceQuota,
    peer: CallerId,
    /// Held until the last work for the peer has ended; nothing before the peer has said who it is.
    seat: OnceLock<Arc<Seat>>,
}

impl ServedPeer {
    fn useful(&self) {
        self.seat.get().iter().for_each(|seat| seat.useful());
    }

    /// Answers a request with the payload of a message. `None` is no answer.
    fn requested(&self, id: u64, request: Request) -> Option<Vec<u8>> {
        respond(&*self.chain, id, request).inspect(|_| self.useful())
    }

    /// The message with a block. `None` is no answer.
    fn block(&self, hash: B256) -> Option<Vec<u8>> {
        let block = self.chain.block(hash)?.encode();
        let payload = Message::Push(Push::Block(&block)).encode();
        // The code takes a byte.
        (payload.len() < MAX_FRAME_SENT).then_some(payload)
    }
}

impl PeerHandler for ServedPeer {
    fn quota(&self) -> SourceQuota {
        self.quota.clone()
    }

    fn pushed(&self, push: Push<'_>) {
        if let Push::Transactions(transactions) = push {
            transactions.iter().take(MAX_SEEN).for_each(|transaction| self.seen.insert(transaction));
            self.useful();
            self.chain.submit(self.peer, transactions.iter().map(<[u8]>::to_vec).collect());
        }
    }

    fn respond(self: Arc<Self>, asked: PeerRequest) -> Option<BoxFuture<'static, Option<PeerResponse>>> {
        let host = self.clone();
        let make = move || match asked {
            PeerRequest::Request { id, request } => host.requested(id, request),
            PeerRequest::Block(hash) => host.block(hash),
        };
        Some(Box::pin(async move { self.answering.answer(self.peer, room_of(&asked), make).await }))
    }

    fn is_contended(&self, is_long: bool) -> bool {
        self.answering.is_contended(self.peer, is_long)
    }
}

/// The bytes that are held while the response is made. A block is rarely longer than this; if one is, more are taken.
const fn room_of(asked: &PeerRequest) -> usize {
    match asked {
        // The blocks, and the message with them.
        PeerRequest::Request { request: Request::SnapBlocks { .. } | Request::SnapStatus, .. } => {
            2 * MAX_FRAME_SENT
        }
        PeerRequest::Request {
            request: Request::Chunk(_) | Request::Block(_) | Request::Body(_), ..
        }
        | PeerRequest::Block(_) => 1024 * 1024,
        PeerRequest::Request { .. } => 512 * 1024,
    }
}
