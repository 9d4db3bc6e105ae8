//! State of blocks by the chunks of a snapshot server: the nodes on the paths of the keys that are asked for.

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
use crate::asker;

/// Bytes of proven nodes that are kept, for all peers together.
const KEPT_BYTES: u64 = 64 * 1024 * 1024;

/// Number of nodes that the memory is laid out for: a node has some 100 bytes.
const KEPT_NODES: usize = 256 * 1024;

/// Most bytes of nodes of one search. What was searched for is some hundred bytes a key.
const MAX_SEARCH_BYTES: usize = 24 * 1024 * 1024;

/// Copies of a chunk while it is proven: the nodes of the trie that it makes, and those that are kept.
const COPIES: usize = 4;

/// Number of requests without progress after which a search ends. A server whose head moves gives chunks of another
/// state for a moment.
const MAX_FAILURES: usize = 3;

/// Most states whose root and size are remembered of a peer.
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

/// Nodes and long values of states, each under its hash. All peers share them: a hash says whose bytes they are.
pub struct StateNodes {
    cache: Cache<B256, Bytes, NodeWeight>,
}

impl Default for StateNodes {
    fn default() -> Self {
        Self { cache: Cache::with_weighter(KEPT_NODES, KEPT_BYTES, NodeWeight) }
    }
}

impl NodeSource for StateNodes {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.cache.get(hash)
    }
}

/// Roots of the states that were searched at one peer, and the sizes of their tries. Keys of a later state are near the same
/// places. Peers do not share this: the roots come from the peer's own headers, and a wrong size would make requests
/// to others fail.
#[derive(Default)]
pub(super) struct Searched(Mutex<BTreeMap<u64, (B256, u64)>>);

impl Searched {
    /// The last state at or below a block. A state above may be larger, and a peer does not respond to a request for what
    /// lies beyond the end.
    fn before(&self, block: u64) -> Option<(B256, u64)> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.range(..=block).next_back().map(|(_, state)| *state)
    }

    fn add(&self, block: u64, root: B256, size: u64) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.insert(block, (root, size));
        while states.len() > MAX_SEARCHED {
            states.pop_first();
        }
    }
}

/// The nodes that one search has used, so that none of them leaves while it goes on.
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
    seek: Seek,
    found: BTreeMap<B256, Bytes>,
    reserved: Reservation,
    failures: usize,
    bytes: usize,
}

impl StateSearch<'_> {
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
                under_way.push(async move { (from, ask(node, request, root).await) });
            }
            match under_way.next().await {
                Some((from, Ok((chunk, room)))) => self.received(from, chunk, room)?,
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

    /// Returns the offsets of the chunks to ask for next. Nothing of the search stays borrowed while it waits.
    fn wanted(&mut self) -> Vec<u64> {
        let nodes = SearchNodes { shared: self.shared, own: RefCell::new(std::mem::take(&mut self.found)) };
        let wanted = self.seek.next(&nodes);
        self.found = nodes.own.into_inner();
        wanted
    }

    fn received(&mut self, from: u64, (nodes, size): ChunkNodes, room: Reservation) -> Result<(), PeerError> {
        self.node.negative_cache().forget(MissingItem::State(self.root));
        self.reserved.merge(room);
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
        // Without a response to a guess, the state is smaller than an earlier one was.
        if self.failures < MAX_FAILURES && (other_root || no_response && guessed) {
            return Ok(());
        }
        if other_root || no_response && !guessed {
            self.node.negative_cache().note(MissingItem::State(self.root));
        }
        Err(if other_root { PeerError::OtherState(self.block) } else { error })
    }
}

/// The proven nodes of a chunk and the size of the trie, and their room.
async fn ask(
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
        retry_within_share(|| async { link.turn(asker(), &request).await?.ask(request).await }).await?;
    let room = chunk.len().saturating_mul(COPIES);
    let (proven, mut reserved) = chunk.read_into(room, move |payload| take(payload, asked, root)).await?;
    reserved.shrink_to(chunk.len());
    Ok((proven?, reserved))
}

/// Nodes by hash, and the size of their trie.
type ChunkNodes = (Vec<(B256, Bytes)>, u64);

fn take(payload: &[u8], asked: ChunkRequest, root: B256) -> Result<ChunkNodes, PeerError> {
    let Response::Chunk(chunk) = response(payload)? else {
        return Err(PeerError::Wrong("not a state chunk"));
    };
    let ChunkRequest { block, from, .. } = asked;
    let proven = prove(chunk.bytes, &root, from).map_err(|error| PeerError::Chunk { block, from, error })?;
    let size = proven.trie_size();
    Ok((proven.iter().map(|(hash, bytes)| (*hash, Bytes::copy_from_slice(bytes))).collect(), size))
}
