//! A server for peers: accepts connections, answers requests, and announces new blocks and transactions.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use futures::future::BoxFuture;
use quick_cache::sync::Cache;
use rootlight::types::BlockRef;
use rootlight_limits::Limits;
use rootlight_limits::caller_id::CallerId;
use rootlight_limits::quota_owner::QuotaOwner;
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

/// Bytes that messages of all peers of one address may take in memory: the longest message, and its decoded form.
const UNREAD_OF_ADDRESS: usize = 2 * LONGEST_UNASKED;

/// Least time between the beginnings of two handshakes: a handshake takes a part of a millisecond of a processor, and
/// anyone can begin one.
const HANDSHAKE_INTERVAL: Duration = Duration::from_millis(10);

/// Time between two statuses, as stock nodes send them.
const STATUS_INTERVAL: Duration = Duration::from_secs(11);

/// Most transactions of a peer whose hashes are stored, so that they are not announced to it again.
const MAX_SEEN: usize = 1024;

/// Pause after accepting a connection failed, for instance because too many files are open.
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

    /// The address at which the server listens.
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
    pacer: HandshakePacer,
    /// Seats of connections that have not shaken hands.
    handshaking: Arc<Seats>,
    /// Seats of peers that have shaken hands.
    ready: Arc<Seats>,
    scheduler: Arc<ResponseScheduler>,
    quotas: AddressQuotas,
}

/// Accepts connections until the server is dropped.
async fn accept(listener: TcpListener, identity: Arc<Identity>, chain: SharedChain, port: u16) {
    let scheduler = ResponseScheduler::new(identity.limits().work().clone());
    let server = Arc::new(PeerServerState {
        identity,
        chain,
        port,
        pacer: HandshakePacer::default(),
        handshaking: Seats::new(HANDSHAKING),
        ready: Seats::new(READY),
        scheduler: Arc::new(scheduler),
        quotas: AddressQuotas::default(),
    });
    // Dropping the set ends the connections with the server.
    let mut serving = tokio::task::JoinSet::new();
    loop {
        // Removes ended connections from the set.
        while serving.try_join_next().is_some() {}
        let (stream, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                warn!("no connection of a peer: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        // A connection without a seat is closed at once.
        let Some(seat) = server.handshaking.enter(CallerId::new(from.ip())) else { continue };
        let server = server.clone();
        serving.spawn(async move {
            let outcome = server.serve(stream, seat).await;
            debug!("peer at {from}: {}", outcome.unwrap_or_else(|error| error.to_string()));
        });
    }
}

/// The quotas of bytes of the addresses that are served.
#[derive(Default)]
struct AddressQuotas(Mutex<BTreeMap<QuotaOwner, SourceQuota>>);

impl AddressQuotas {
    fn of(&self, owner: QuotaOwner, limits: &Limits) -> SourceQuota {
        let mut each = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        each.retain(|_, quota| quota.is_used());
        each.entry(owner).or_insert_with(|| SourceQuota::of_served_address(limits, UNREAD_OF_ADDRESS)).clone()
    }
}

/// Makes handshakes begin one after another, [`HANDSHAKE_INTERVAL`] apart.
#[derive(Default)]
struct HandshakePacer(tokio::sync::Mutex<()>);

impl HandshakePacer {
    async fn wait(&self) {
        let _locked = self.0.lock().await;
        tokio::time::sleep(HANDSHAKE_INTERVAL).await;
    }
}

impl PeerServerState {
    /// Serves one connection until it ends; returns why.
    async fn serve(&self, stream: TcpStream, handshaking: Seat) -> Result<String, PeerError> {
        let peer = handshaking.peer();
        let (handler, announced) = (Arc::new(self.handler(peer)), AnnouncedState::since_now(&self.chain));
        let link = tokio::select! {
            link = self.shake_hands(stream, handler.clone()) => link?,
            () = handshaking.replaced() => return Ok("another peer has its seat".into()),
        };
        let Some(seat) = self.ready.enter(peer).map(Arc::new) else {
            return Ok("there is no seat for another peer".into());
        };
        handler.seat.set(seat.clone()).ok();
        drop(handshaking);
        debug!("peer {}: {}", short(&link.peer.id), link.peer.hello.client_id);
        tokio::select! {
            outcome = announce(&link, announced, &handler.seen) => outcome,
            () = seat.replaced() => Ok("another peer has its seat".into()),
        }
    }

    /// The handler of a new connection's messages.
    fn handler(&self, peer: CallerId) -> ServedPeer {
        ServedPeer {
            chain: self.chain.clone(),
            scheduler: self.scheduler.clone(),
            seen: SeenTransactions::default(),
            quota: self.quotas.of(peer.quota_owner(), self.identity.limits()),
            peer,
            seat: OnceLock::new(),
        }
    }

    /// Shakes hands, with the chain's present head in our status.
    async fn shake_hands(
        &self,
        stream: TcpStream,
        handler: Arc<ServedPeer>,
    ) -> Result<Arc<PeerLink>, PeerError> {
        self.pacer.wait().await;
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
        // 0: the session's clock, in milliseconds, begins now.
        let session = Session::accept(self.identity.key(), secrets, config, 0)?;
        PeerLink::open(stream, session, handler).await
    }
}

/// What was announced to a peer: the newest block, and the position in the pool's events. It is taken before the handshake, so that no
/// change during the handshake is lost.
struct AnnouncedState {
    chain: SharedChain,
    changes: watch::Receiver<u64>,
    next_pending: u64,
    head: Option<PeerHead>,
}

impl AnnouncedState {
    /// Everything up to now counts as announced.
    fn since_now(chain: &SharedChain) -> Self {
        let (changes, mut next_pending) = (chain.changes(), u64::MAX);
        // Transactions that are in the pool already are not announced.
        chain.pending(&mut next_pending);
        Self { changes, next_pending, head: chain.head(), chain: chain.clone() }
    }
}

/// Announces new blocks and transactions to a peer until the connection ends; returns why it has ended.
async fn announce(
    link: &PeerLink,
    mut announced: AnnouncedState,
    seen: &SeenTransactions,
) -> Result<String, PeerError> {
    let mut statuses = tokio::time::interval(STATUS_INTERVAL);
    loop {
        tokio::select! {
            reason = link.ended() => return Ok(reason.to_string()),
            _ = statuses.tick() => {
                if let Some(head) = announced.chain.head() {
                    send_push(link, Push::Status(status(&head))).await?;
                }
            }
            Ok(()) = announced.changes.changed() => {
                let pending = announced.chain.pending(&mut announced.next_pending);
                let new: Vec<Vec<u8>> = pending.into_iter().filter(|transaction| seen.is_new(transaction)).collect();
                if !new.is_empty() {
                    let payload = list_payload(new);
                    let items = Items::lists(&payload, MAX_PENDING, "transactions")?;
                    send_push(link, Push::Transactions(items)).await?;
                }
                let head = announced.chain.head();
                if let (Some(block), true) = (head.map(|head| head.block), head != announced.head) {
                    send_push(link, Push::NewBlockHashes(vec![block])).await?;
                }
                announced.head = head;
            }
        }
    }
}

/// Sends an announcement, or drops it if the peer has been sent as many messages as it reads in a minute.
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

/// Hashes of the transactions that a peer has sent, which are not announced to it.
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

/// The handler of the messages of a served peer. Blocks and announcements of blocks that the peer sends are ignored.
struct ServedPeer {
    chain: SharedChain,
    scheduler: Arc<ResponseScheduler>,
    seen: SeenTransactions,
    quota: SourceQuota,
    peer: CallerId,
    /// The seat, which is taken until the last work for the peer has ended; not set before the peer has shaken hands.
    seat: OnceLock<Arc<Seat>>,
}

impl ServedPeer {
    fn note_useful(&self) {
        self.seat.get().iter().for_each(|seat| seat.note_useful());
    }

    /// Answers a request with the payload of a message. `None` is no answer.
    fn requested(&self, id: u64, request: Request) -> Option<Vec<u8>> {
        respond(&*self.chain, id, request).inspect(|_| self.note_useful())
    }

    /// The message with a block. `None` is no answer.
    fn block(&self, hash: B256) -> Option<Vec<u8>> {
        let block = self.chain.block(hash)?.encode();
        let payload = Message::Push(Push::Block(&block)).encode();
        // The frame also has the message's code of one byte.
        (payload.len() < MAX_FRAME_SENT).then_some(payload)
    }
}

impl PeerHandler for ServedPeer {
    fn quota(&self) -> SourceQuota {
        self.quota.clone()
    }

    fn handle_push(&self, push: Push<'_>) {
        if let Push::Transactions(transactions) = push {
            transactions.iter().take(MAX_SEEN).for_each(|transaction| self.seen.insert(transaction));
            self.note_useful();
            self.chain.submit(self.peer, transactions.iter().map(<[u8]>::to_vec).collect());
        }
    }

    fn respond(self: Arc<Self>, request: PeerRequest) -> Option<BoxFuture<'static, Option<PeerResponse>>> {
        let handler = self.clone();
        let make = move || match request {
            PeerRequest::Request { id, request } => handler.requested(id, request),
            PeerRequest::Block(hash) => handler.block(hash),
        };
        Some(Box::pin(async move { self.scheduler.answer(self.peer, bytes_for(&request), make).await }))
    }

    fn is_contended(&self, is_long: bool) -> bool {
        self.scheduler.is_contended(self.peer, is_long)
    }
}

/// The bytes that are reserved while the response is made. A block is rarely longer; for a longer one, more bytes are taken.
const fn bytes_for(request: &PeerRequest) -> usize {
    match request {
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
