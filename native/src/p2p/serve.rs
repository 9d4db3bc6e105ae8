//! A server for peers: answers what they ask for, and tells them of new blocks.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use alloy_primitives::{B256, keccak256};
use quick_cache::sync::Cache;
use rootlight::types::BlockRef;
use rootlight_p2p::message::{Items, Message, Parent, Push, Request, Status, list_payload};
use rootlight_p2p::rlpx::{HandshakeSecrets, MAX_FRAME_SENT, NodeId, RANDOM_BYTES};
use rootlight_p2p::session::{Session, SessionConfig};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use super::chain::{MAX_PENDING, ServedHead, SharedChain};
use super::error::PeerError;
use super::link::{Host, Link};
use super::node::Identity;
use super::respond::respond;
use crate::priority;

/// Most connections at a time.
const MAX_PEERS: usize = 32;

/// Most connections of one address at a time. A house or a cloud of several nodes has one address.
const MAX_OF_ADDRESS: usize = 8;

/// Longest message of a peer that is read, in bytes. Peers send requests, transactions and single blocks.
const READ_LIMIT: usize = 2 * 1024 * 1024;

/// Least time between two connections that are accepted: a handshake takes a part of a millisecond of a processor, and
/// anyone can ask for one.
const ACCEPT_INTERVAL: Duration = Duration::from_millis(10);

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

/// The connections of a server, by address.
#[derive(Default)]
struct Places(Mutex<BTreeMap<IpAddr, usize>>);

/// A place that is free again when the value is dropped.
struct Place {
    places: Arc<Places>,
    address: IpAddr,
}

impl Places {
    fn enter(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = taken.values().sum();
        let own = taken.entry(address).or_default();
        if all >= MAX_PEERS || *own >= MAX_OF_ADDRESS {
            return None;
        }
        *own += 1;
        Some(Place { places: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.entry(self.address).or_default();
        *own = own.saturating_sub(1);
        if *own == 0 {
            taken.remove(&self.address);
        }
    }
}

async fn accept(listener: TcpListener, identity: Arc<Identity>, chain: SharedChain, port: u16) {
    let places = Arc::new(Places::default());
    // One processor at least is left to others, if there are several.
    let turns = Arc::new(Semaphore::new(priority::processors().saturating_sub(1).max(1)));
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
        tokio::time::sleep(ACCEPT_INTERVAL).await;
        let Some(place) = places.enter(from.ip().to_canonical()) else { continue };
        let (identity, peer) = (
            identity.clone(),
            ServedPeer { chain: chain.clone(), turns: turns.clone(), seen: Arc::default() },
        );
        serving.spawn(async move {
            let outcome = serve(stream, &identity, peer, port).await;
            debug!("peer at {from}: {}", outcome.unwrap_or_else(|error| error.to_string()));
            drop(place);
        });
    }
}

/// Serves one connection until it ends; returns why.
async fn serve(
    stream: TcpStream,
    identity: &Identity,
    peer: ServedPeer,
    port: u16,
) -> Result<String, PeerError> {
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
                    link.push(Push::Status(status(&head))).await?;
                }
            }
            Ok(()) = changes.changed() => {
                let pending = chain.pending(&mut next_pending);
                let new: Vec<Vec<u8>> = pending.into_iter().filter(|transaction| seen.is_new(transaction)).collect();
                if !new.is_empty() {
                    let payload = list_payload(new);
                    let items = Items::lists(&payload, MAX_PENDING, "transactions")?;
                    link.push(Push::Transactions(items)).await?;
                }
                let head = chain.head();
                if let (Some(block), true) = (head.map(|head| head.block), head != told) {
                    link.push(Push::NewBlockHashes(vec![block])).await?;
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
    turns: Arc<Semaphore>,
    seen: Arc<Seen>,
}

impl Host for ServedPeer {
    fn pushed(&self, push: Push<'_>) {
        if let Push::Transactions(transactions) = push {
            transactions.iter().take(MAX_SEEN).for_each(|transaction| self.seen.insert(transaction));
            self.chain.submit(transactions.iter().map(<[u8]>::to_vec).collect());
        }
    }

    fn requested(&self, id: u64, request: Request) -> Option<Vec<u8>> {
        respond(&*self.chain, id, request)
    }

    fn block(&self, hash: B256) -> Option<Vec<u8>> {
        let block = self.chain.block(hash)?.encode();
        let payload = Message::Push(Push::Block(&block)).encode();
        // The code takes a byte.
        (payload.len() < MAX_FRAME_SENT).then_some(payload)
    }

    fn turns(&self) -> Option<Arc<Semaphore>> {
        Some(self.turns.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_does_not_take_all_places() {
        let places = Arc::new(Places::default());
        let at = |last: u8| IpAddr::from([192, 0, 2, last]);
        let mut taken: Vec<Option<Place>> = (0..=MAX_OF_ADDRESS).map(|_| places.enter(at(1))).collect();
        assert!(taken.pop().unwrap().is_none());
        let others: Vec<Place> = (2..=255).filter_map(|last| places.enter(at(last))).collect();
        assert_eq!(taken.len() + others.len(), MAX_PEERS);
        drop(taken.pop());
        assert!(places.enter(at(1)).is_some());
    }
}
