//! Reads state of blocks by the chunks of a snapshot server. A chunk is a part of the state trie, with the nodes that prove it; a
//! search requests chunks until it has the nodes on the paths of the keys that it looks for.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use alloy_primitives::{B256, Bytes, hex};
use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight::trie::NodeSource;
use rootlight_limits::budget::Reservation;
use rootlight_p2p::chunk::{ChunkError, KeyAnswer, Seek, prove};
use rootlight_p2p::message::{ChunkRequest, Request, Response};

use super::error::PeerError;
use super::message::response;
use super::negative_cache::MissingItem;
use super::node::PeerNode;
use super::share::retry_within_share;
use crate::quota_owner;

/// Bytes of proven nodes in the cache, which all peers share.
const CACHE_BYTES: u64 = 64 * 1024 * 1024;

/// Number of nodes for which the cache is laid out: a node has some 100 bytes, and its entry as many.
const CACHE_ENTRIES: usize = 256 * 1024;

/// Most bytes of nodes of one search. The nodes on the path of a key have some hundred bytes each.
const MAX_SEARCH_BYTES: usize = 24 * 1024 * 1024;

/// The memory that a chunk takes while it is proven, in its length: the nodes of the trie that is built from it, and the nodes that
/// are returned.
const CHUNK_COPIES: usize = 4;

/// Number of requests without progress after which a search ends. A server whose head moves gives chunks of another
/// state for a moment.
const MAX_FAILURES: usize = 3;

/// Most states whose root and size are stored for one peer.
const MAX_SEARCHED: usize = 64;

/// Weighs nodes by their bytes.
#[derive(Clone)]
struct NodeWeight;

impl Weighter<B256, Bytes> for NodeWeight {
    fn weight(&self, _: &B256, node: &Bytes) -> u64 {
        // The entry itself takes about as much as a short node.
        node.len().saturating_add(96) as u64
    }
}

/// A cache of proven trie nodes and long values, each under its hash. All peers share it, because the hash proves the bytes.
pub struct StateNodes {
    cache: Cache<B256, Bytes, NodeWeight>,
}

impl Default for StateNodes {
    fn default() -> Self {
        Self { cache: Cache::with_weighter(CACHE_ENTRIES, CACHE_BYTES, NodeWeight) }
    }
}

impl NodeSource for StateNodes {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.cache.get(hash)
    }
}

/// The states that were searched at one peer: by block number the state root, and the size of the trie in bytes. In a later state
/// the keys are near the same offsets. Peers do not share this record: the roots come from the peer's own headers, and a wrong
/// size would make requests to other peers fail.
#[derive(Default)]
pub(super) struct Searched(Mutex<BTreeMap<u64, (B256, u64)>>);

impl Searched {
    /// The root and size of the last searched state at or below a block. A state above may be larger, and a peer does not respond
    /// to a request for an offset beyond the end.
    fn before(&self, block: u64) -> Option<(B256, u64)> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.range(..=block).next_back().map(|(_, state)| *state)
    }

    /// Notes the state of a block.
    fn add(&self, block: u64, root: B256, size: u64) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(block, (root, size));
        while states.len() > MAX_SEARCHED {
            states.pop_first();
        }
    }
}

/// The nodes of one search: those of the shared cache, with an own copy of those that the search has used, because the cache may
/// drop them while the search goes on.
pub(super) struct SearchNodes<'a> {
    shared: &'a StateNodes,
    own: RefCell<BTreeMap<B256, Bytes>>,
}

impl NodeSource for SearchNodes<'_> {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        if let Some(node) = self.own.borrow().get(hash) {
            return Some(node.clone());
        }
        let node = self.shared.node(hash)?;
        self.own.borrow_mut().insert(*hash, node.clone());
        Some(node)
    }
}

/// The nodes that a search has found, by hash, with their reservation of the budget.
pub(super) struct FoundNodes {
    nodes: BTreeMap<B256, Bytes>,
    _held: Reservation,
}

impl FoundNodes {
    pub(super) const fn nodes(&self) -> &BTreeMap<B256, Bytes> {
        &self.nodes
    }

    pub(super) fn bytes(&self) -> usize {
        self.nodes.values().map(|node| node.len()).fold(0, usize::saturating_add)
    }
}

/// Finds keys in the state of a block with this root, and returns the nodes on their paths and their values.
///
/// # Errors
/// The peer serves no chunks, or its chunks do not lead to the keys.
pub(super) async fn find(
    node: &PeerNode,
    shared: &Arc<StateNodes>,
    searched: &Searched,
    block: u64,
    root: B256,
    keys: Vec<Vec<u8>>,
) -> Result<FoundNodes, PeerError> {
    let item = MissingItem::State(root);
    if node.negative_cache().has(item) {
        return Err(PeerError::Lacking);
    }
    let earlier = searched.before(block);
    let seek = Seek::new(root, earlier.map(|(_, size)| size), keys);
    let mut seek = seek.map_err(|_| PeerError::Params("too many keys of one state"))?;
    if let Some((earlier, _)) = earlier {
        seek = seek.near(earlier);
    }
    StateSearch {
        node,
        shared,
        searched,
        block,
        root,
        seek,
        found: BTreeMap::new(),
        reserved: Reservation::default(),
        failures: 0,
        bytes: 0,
    }
    .run()
    .await
}

/// A search for keys in the state of one block.
struct StateSearch<'a> {
    node: &'a PeerNode,
    shared: &'a Arc<StateNodes>,
    searched: &'a Searched,
    block: u64,
    root: B256,
    /// Decides which chunk is needed next.
    seek: Seek,
    /// The nodes so far, by hash.
    found: BTreeMap<B256, Bytes>,
    reserved: Reservation,
    /// Requests that failed.
    failures: usize,
    /// Bytes of all received nodes.
    bytes: usize,
}

impl StateSearch<'_> {
    /// Requests chunks until each key is found or proven absent.
    async fn run(mut self) -> Result<FoundNodes, PeerError> {
        let mut under_way = FuturesUnordered::new();
        loop {
            let wanted = self.wanted();
            if self.seek.is_finished() {
                break;
            }
            for from in wanted {
                let (node, root) = (self.node, self.root);
                let request = ChunkRequest::new(self.block, from);
                under_way.push(async move { (from, fetch_chunk(node, request, root).await) });
            }
            match under_way.next().await {
                Some((from, Ok((chunk, reserved)))) => self.received(from, chunk, reserved)?,
                Some((from, Err(error))) => self.failed(from, error)?,
                None => return Err(PeerError::Wrong("no chunk leads further")),
            }
        }
        let lost =
            self.seek.answers().find(|(_, answer)| matches!(answer, None | Some(KeyAnswer::Unreachable)));
        match lost {
            Some((key, _)) => Err(PeerError::NotFound(hex::encode_prefixed(key))),
            None => Ok(FoundNodes { nodes: self.found, _held: self.reserved }),
        }
    }

    /// Returns the offsets of the chunks to request next.
    fn wanted(&mut self) -> Vec<u64> {
        let nodes = SearchNodes { shared: self.shared, own: RefCell::new(std::mem::take(&mut self.found)) };
        let wanted = self.seek.next(&nodes);
        self.found = nodes.own.into_inner();
        wanted
    }

    /// Adds the nodes of a chunk.
    fn received(
        &mut self,
        from: u64,
        (nodes, size): ChunkNodes,
        reserved: Reservation,
    ) -> Result<(), PeerError> {
        self.node.negative_cache().forget(MissingItem::State(self.root));
        self.reserved.merge(reserved);
        self.seek.received(from);
        self.searched.add(self.block, self.root, size);
        for (hash, node) in nodes {
            self.bytes = self.bytes.saturating_add(node.len());
            self.shared.cache.insert(hash, node.clone());
            self.found.insert(hash, node);
        }
        match self.bytes > MAX_SEARCH_BYTES {
            true => Err(PeerError::Wrong("the chunks of a search are too long")),
            false => Ok(()),
        }
    }

    /// Counts a failure; returns the error with which the search ends.
    fn failed(&mut self, from: u64, error: PeerError) -> Result<(), PeerError> {
        let guessed = self.seek.is_guess();
        self.seek.failed(from);
        self.failures += 1;
        let other_root = matches!(error, PeerError::Chunk { error: ChunkError::Root { .. }, .. });
        let no_response = matches!(error, PeerError::NoResponse(_));
        // A guess is an offset by the size of an earlier state. If it gets no response, this state may be smaller, and the search
        // goes on without guesses.
        if self.failures < MAX_FAILURES && (other_root || no_response && guessed) {
            return Ok(());
        }
        if other_root || no_response && !guessed {
            self.node.negative_cache().note(MissingItem::State(self.root));
        }
        Err(if other_root { PeerError::OtherState(self.block) } else { error })
    }
}

/// Fetches a chunk. Returns its proven nodes with the size of the trie, and their reservation.
async fn fetch_chunk(
    node: &PeerNode,
    asked: ChunkRequest,
    root: B256,
) -> Result<(ChunkNodes, Reservation), PeerError> {
    let link = node.link().await?;
    if !link.peer.hello.serves_snap() {
        return Err(PeerError::NoState);
    }
    let request = Request::Chunk(asked);
    let chunk =
        retry_within_share(|| async { link.permit(quota_owner(), &request).await?.ask(request).await })
            .await?;
    let needed = chunk.len().saturating_mul(CHUNK_COPIES);
    let (proven, mut reserved) =
        chunk.read_into(needed, move |payload| read_chunk(payload, asked, root)).await?;
    reserved.shrink_to(chunk.len());
    Ok((proven?, reserved))
}

/// Nodes by hash, and the size of their trie in bytes.
type ChunkNodes = (Vec<(B256, Bytes)>, u64);

/// Reads the message with a chunk, and proves its nodes by the state root.
fn read_chunk(payload: &[u8], asked: ChunkRequest, root: B256) -> Result<ChunkNodes, PeerError> {
    let Response::Chunk(chunk) = response(payload)? else {
        return Err(PeerError::Wrong("not a state chunk"));
    };
    let ChunkRequest { block, from, .. } = asked;
    let proven = prove(chunk.bytes, &root, from).map_err(|error| PeerError::Chunk { block, from, error })?;
    let size = proven.trie_size();
    Ok((proven.iter().map(|(hash, bytes)| (*hash, Bytes::copy_from_slice(bytes))).collect(), size))
}
