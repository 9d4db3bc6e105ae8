//! A server for peers: answers what they ask for, and tells them of new blocks.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use quick_cache::sync::Cache;
use rootlight::types::BlockRef;
use rootlight_p2p::message::{Items, Message, Parent, Push, Request, Status, list_payload};
use rootlight_p2p::rlpx::{HandshakeSecrets, MAX_FRAME_SENT, NodeId, RANDOM_BYTES};
use rootlight_p2p::session::{Session, SessionConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::answering::Answering;
use super::chain::{MAX_PENDING, ServedHead, SharedChain};
use super::connection::Host;
use super::error::PeerError;
use super::link::Link;
use super::node::Identity;
use super::respond::respond;
use super::seats::{Seat, Seats};
use crate::service::Peer;
use crate::upstream::intake::Intake;

/// Longest message of a peer that is read, in bytes. Peers send requests, transactions and single blocks.
const READ_LIMIT: usize = 2 * 1024 * 1024;

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
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, identity: Arc<Identity>, chain: SharedChain, port: u16) {
    let (seats, answering, pace) = (Arc::<Seats>::default(), Arc::<Answering>::default(), Pace::default());
    // All peers together are one source: what they send unasked takes no room from the sources that were chosen.
    let intake = Intake::default();
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
        // A connection without a place costs nothing more.
        let Some(seat) = seats.enter(Peer::new(from.ip())).map(Arc::new) else { continue };
        let (identity, pace) = (identity.clone(), pace.clone());
        let peer = ServedPeer {
            chain: chain.clone(),
            answering: answering.clone(),
            seen: Arc::default(),
            seat: seat.clone(),
            intake: intake.clone(),
        };
        serving.spawn(async move {
            let outcome = tokio::select! {
                outcome = serve(stream, &identity, peer, port, pace) => outcome,
                () = seat.replaced() => Ok("another peer has its place".into()),
            };
            debug!("peer at {from}: {}", outcome.unwrap_or_else(|error| error.to_string()));
        });
    }
}

/// One handshake begins after another.
#[derive(Default, Clone)]
struct Pace(Arc<tokio::sync::Mutex<()>>);

impl Pace {
    async fn wait(&self) {
        let _turn = self.0.lock().await;
        tokio::time::sleep(HANDSHAKE_INTERVAL).await;
    }
}

/// Serves one connection until it ends; returns why.
async fn serve(
    stream: TcpStream,
    identity: &Identity,
    peer: ServedPeer,
    port: u16,
    pace: Pace,
) -> Result<String, PeerError> {
    pace.wait().await;
    let (chain, seen) = (peer.chain.clone(), peer.seen.clone());
    // From here on the peer is told of what is new, so that nothing is lost while the handshake goes on. It is not told of
    // transactions that were in the pool before.
    let mut changes = chain.changes();
    let mut next_pending = u64::MAX;
    chain.pending(&mut next_pending);
    let mut told = chain.head();
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| PeerError::NotConnected(error.to_string()))?;
    let mut config = SessionConfig {
        listen_port: port,
        serves_snap: chain.serves_state(),
        read_limit: READ_LIMIT,
        ..identity.config().clone()
    };
    if let Some(head) = chain.head() {
        (config.best_hash, config.total_difficulty) = (head.block.hash, head.total_difficulty);
    }
    let session = Session::accept(identity.key(), HandshakeSecrets::from_random(&random), config, 0)?;
    let link = Link::open(stream, session, Arc::new(peer)).await?;
    debug!("peer {}: {}", short(&link.peer.id), link.peer.hello.client_id);
    let mut statuses = tokio::time::interval(STATUS_INTERVAL);
    loop {
        tokio::select! {
            reason = link.ended() => return Ok(reason.to_string()),
            _ = statuses.tick() => {
                if let Some(head) = chain.head() {
                    link.push(None, Push::Status(status(&head))).await?;
                }
            }
            Ok(()) = changes.changed() => {
                let pending = chain.pending(&mut next_pending);
                let new: Vec<Vec<u8>> = pending.into_iter().filter(|transaction| seen.is_new(transaction)).collect();
                if !new.is_empty() {
                    let payload = list_payload(new);
                    let items = Items::lists(&payload, MAX_PENDING, "transactions")?;
                    link.push(None, Push::Transactions(items)).await?;
                }
                let head = chain.head();
                if let (Some(block), true) = (head.map(|head| head.block), head != told) {
                    link.push(None, Push::NewBlockHashes(vec![block])).await?;
                }
                told = head;
            }
        }
    }
}

fn status(head: &ServedHead) -> Status {
    let parent = Parent { hash: head.parent, total_difficulty: head.total_difficulty };
    Status { best: BlockRef { ..head.block }, parent: Some(parent) }
}

/// The first digits of an id, for logs.
fn short(id: &NodeId) -> String {
    id.to_string().chars().take(16).collect()
}

/// Transactions that a peer has sent, by hash: it is not told of them.
struct Seen(Cache<B256, ()>);

impl Seen {
    fn is_new(&self, transaction: &[u8]) -> bool {
        self.0.get(&keccak256(transaction)).is_none()
    }

    fn insert(&self, transaction: &[u8]) {
        self.0.insert(keccak256(transaction), ());
    }
}

impl Default for Seen {
    fn default() -> Self {
        Self(Cache::new(MAX_SEEN))
    }
}

/// A peer that is served. Its blocks and its announcements are not used: nobody's chain is taken unasked.
struct ServedPeer {
    chain: SharedChain,
    answering: Arc<Answering>,
    seen: Arc<Seen>,
    /// Held until the last work for the peer has ended.
    seat: Arc<Seat>,
    intake: Intake,
}

impl Host for ServedPeer {
    fn intake(&self) -> Intake {
        self.intake.clone()
    }

    fn pushed(&self, push: Push<'_>) {
        if let Push::Transactions(transactions) = push {
            transactions.iter().take(MAX_SEEN).for_each(|transaction| self.seen.insert(transaction));
            self.seat.useful();
            self.chain.submit(transactions.iter().map(<[u8]>::to_vec).collect());
        }
    }

    fn requested(&self, id: u64, request: Request) -> Option<Vec<u8>> {
        respond(&*self.chain, id, request).inspect(|_| self.seat.useful())
    }

    fn block(&self, hash: B256) -> Option<Vec<u8>> {
        let block = self.chain.block(hash)?.encode();
        let payload = Message::Push(Push::Block(&block)).encode();
        // The code takes a byte.
        (payload.len() < MAX_FRAME_SENT).then_some(payload)
    }

    fn answering(&self) -> Option<(Arc<Answering>, Peer)> {
        Some((self.answering.clone(), self.seat.peer()))
    }
}
