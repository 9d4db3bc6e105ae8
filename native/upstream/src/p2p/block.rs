//! Headers of a peer, by number and by hash. The protocol has several messages for them; this file chooses those that take the
//! fewest messages, because a peer reads a thousand messages a minute.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::{B256, Bytes};
use futures::future::try_join_all;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight::consensus::Network;
use rootlight::light::MAX_BATCH_BYTES;
use rootlight::types::{EMPTY_UNCLES_HASH, Header, HeaderVersion, SealedHeader};
use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::limits::MAX_HEADERS;
use rootlight_p2p::message::{BlockParts, MessageError, Request, Response};
use rootlight_p2p::session::CloseReason;

use super::body::{PeerBodies, UnclesCommitment};
use super::error::PeerError;
use super::message::response;
use super::negative_cache::MissingItem;
use super::node::PeerNode;
use super::stretch::{FullHeader, Stretch, Stretches, cover};

/// Blocks this far below the head count as settled: no reorganisation reaches them, so that headers that were requested by number
/// in several messages fit together.
const SETTLED_DEPTH: u64 = 500;

/// Number of blocks that a snapshot server sends in one message.
const SNAPSHOT_RUN: u64 = 400;

/// Bytes of recent headers in the cache, and the number of headers for which the cache is laid out. Requests for headers are
/// followed by requests about their blocks, and a peer reads few messages in a minute.
const RECENT_BYTES: u64 = 2 * 1024 * 1024;
const RECENT_HEADERS: usize = 2_048;

/// Weighs headers by their bytes.
#[derive(Clone)]
struct HeaderWeight;

impl Weighter<B256, Bytes> for HeaderWeight {
    fn weight(&self, _: &B256, header: &Bytes) -> u64 {
        header.len().max(1) as u64
    }
}

/// The headers of one peer, with caches.
pub(super) struct PeerHeaders {
    node: Arc<PeerNode>,
    network: Arc<Network>,
    bodies: PeerBodies,
    /// The headers that came last, in full form, by the hash that their child names. The hash is not checked.
    recent: Cache<B256, Bytes, HeaderWeight>,
    /// The headers of the run of blocks that a snapshot server sent last.
    snapshot_headers: Mutex<Stretch>,
    /// The peer's skeleton, and the stretches of headers that came last by it.
    stretches: Mutex<Stretches>,
    /// Whether a request for a run of blocks ended the connection: a run can be longer than a message may be (16 MiB).
    breaks_runs: AtomicBool,
}

impl PeerHeaders {
    pub(super) fn new(node: Arc<PeerNode>, network: Arc<Network>) -> Self {
        Self {
            bodies: PeerBodies::new(node.clone(), network.clone()),
            node,
            network,
            recent: Cache::with_weighter(RECENT_HEADERS, RECENT_BYTES, HeaderWeight),
            snapshot_headers: Mutex::default(),
            stretches: Mutex::default(),
            breaks_runs: AtomicBool::new(false),
        }
    }

    pub(super) const fn bodies(&self) -> &PeerBodies {
        &self.bodies
    }

    /// The number of the newest block that the peer has announced.
    pub(super) async fn head(&self) -> Result<u64, PeerError> {
        self.node.first_best().await.map(|best| best.number)
    }

    /// The hash that the peer gives for a height; `None` above its head. The protocol has no response that says "there is none",
    /// so that heights above the head are not requested.
    pub(super) async fn hash_at(&self, height: u64) -> Result<Option<B256>, PeerError> {
        if height == 0 {
            return Ok(Some(self.node.genesis()));
        }
        if height > self.head().await? {
            return Ok(None);
        }
        let message = self.node.ask(Request::BlockHash { height }).await?;
        let read = |payload: &[u8]| match response(payload)? {
            Response::BlockHash(hash) => Ok(Some(hash)),
            _ => Err(PeerError::Wrong("not a block hash")),
        };
        message.read(read).await?
    }

    /// The header with this hash, from the cache or from the peer.
    pub(super) async fn header(&self, hash: B256) -> Result<SealedHeader, PeerError> {
        let cached = self.recent.get(&hash).and_then(|rlp| self.decoded(&rlp).ok());
        if let Some(cached) = cached.filter(|header| header.hash() == hash) {
            return Ok(cached);
        }
        let headers = self.with_ancestors(hash, 1).await?;
        self.decoded(&headers.first().ok_or(PeerError::Wrong("no header"))?.rlp)
    }

    /// The uncles that the cached header of a block states; `None` if the header is not in the cache. Whether it is the block's
    /// header is not checked.
    pub(super) fn recent_commitment(&self, block: B256) -> Option<UnclesCommitment> {
        let header = self.recent.get(&block)?;
        let header = RawHeader::split(&header).ok()?;
        Some(UnclesCommitment { number: header.number(), hash: header.uncles_hash() })
    }

    /// Decodes a header by the rules of its block, and computes its hash.
    fn decoded(&self, rlp: &[u8]) -> Result<SealedHeader, PeerError> {
        let shape = |number| self.network.header_shape(number);
        let decoded = Header::decode_sealed(rlp, &shape);
        decoded.map(|(header, _)| header).map_err(|_| PeerError::Wrong("a header does not decode"))
    }

    /// Checks that a header has the hash by which it was requested, if this program knows the rules of its block.
    fn check_hash(&self, header: &FullHeader, asked: B256) -> Result<(), PeerError> {
        let header = self.decoded(&header.rlp)?;
        match header.hash() {
            found if found == asked => Ok(()),
            found => Err(PeerError::other_hash(&self.network, header.number, "a header", asked, found)),
        }
    }

    /// Consecutive headers in full form, ascending, up to the peer's head. Headers whose body was fetched have their uncles.
    pub(super) async fn headers(&self, first: u64, count: u64) -> Result<Vec<FullHeader>, PeerError> {
        let head = self.head().await?;
        if first > head || count == 0 {
            return Ok(Vec::new());
        }
        let last = first.saturating_add(count - 1).min(head);
        // Compressed headers (RSKIP-351) have their log bloom in the body, so that each of them takes a message for its body. Runs of whole
        // blocks have headers and bodies in one message.
        let is_compressed = self.network.header_shape(first).version != HeaderVersion::V0;
        if is_compressed && last.saturating_add(SETTLED_DEPTH) < head && self.sends_runs().await? {
            match self.snapshot_headers(first, last).await {
                // The peer lacks a block of the run, or the total difficulty there. It may still have the bodies.
                Err(PeerError::NoResponse(_)) => {}
                found => return found,
            }
        }
        if !is_compressed
            && first > 0
            && cover(first, last).all(|(_, top)| top.saturating_add(SETTLED_DEPTH) < head)
        {
            let found = self.headers_by_skeleton(first, last).await;
            return found.inspect_err(|_| lock(&self.stretches).forget());
        }
        let mut all = Vec::new();
        let mut top = self.hash_at(last).await?;
        let mut left = last - first + 1;
        while let (Some(hash), 1..) = (top, left) {
            let some = self.with_ancestors(hash, left.min(MAX_HEADERS as u64)).await?;
            left = left.saturating_sub(some.len() as u64);
            top = some
                .last()
                .and_then(|header| RawHeader::split(&header.rlp).ok())
                .map(|last| last.parent_hash());
            all.extend(some);
        }
        all.reverse();
        Ok(all)
    }

    /// Consecutive headers by stretches that end at the hashes of a skeleton (`stretch.rs`).
    async fn headers_by_skeleton(&self, first: u64, last: u64) -> Result<Vec<FullHeader>, PeerError> {
        let mut tops = Vec::new();
        // One after another, because one skeleton has the hashes of all.
        for (from, top) in cover(first, last) {
            tops.push((from, top, self.skeleton_hash(top).await?));
        }
        let stretches = tops.into_iter().map(|(from, top, hash)| self.stretch(from, top, hash));
        let stretches: Vec<Stretch> = try_join_all(stretches).await?;
        Ok(stretches.iter().flat_map(|stretch| stretch.from(first.max(stretch.first), last)).collect())
    }

    /// The hash that the peer's skeleton has at this height.
    async fn skeleton_hash(&self, top: u64) -> Result<B256, PeerError> {
        if let Some(hash) = lock(&self.stretches).hash_at(top) {
            return Ok(hash);
        }
        let message = self.node.ask(Request::Skeleton { start: top }).await?;
        let read = |payload: &[u8]| match response(payload)? {
            Response::Skeleton(skeleton) => Ok(skeleton),
            _ => Err(PeerError::Wrong("not a skeleton")),
        };
        let skeleton = message.read(read).await??;
        let mut stretches = lock(&self.stretches);
        stretches.set_skeleton(skeleton);
        stretches.hash_at(top).ok_or(PeerError::Wrong("a skeleton without the height that was asked for"))
    }

    /// The stretch from a height up to the block with this number and hash.
    async fn stretch(&self, first: u64, top: u64, hash: B256) -> Result<Stretch, PeerError> {
        if let Some(cached) = lock(&self.stretches).cached(first, top) {
            return Ok(cached);
        }
        let headers = self.with_ancestors(hash, top.saturating_sub(first).saturating_add(1)).await?;
        let stretch = Stretch::of(first, top, headers)
            .ok_or(PeerError::Wrong("headers of other heights than those of the skeleton"))?;
        lock(&self.stretches).cache(&stretch);
        Ok(stretch)
    }

    /// Whether the peer is a snapshot server that answers requests for runs of blocks.
    async fn sends_runs(&self) -> Result<bool, PeerError> {
        let is_silent = self.node.negative_cache().has(MissingItem::Runs);
        let may = !is_silent && !self.breaks_runs.load(Ordering::Relaxed);
        Ok(may && self.node.link().await?.peer.hello.serves_snap())
    }

    /// Consecutive headers by runs of blocks of a snapshot server.
    async fn snapshot_headers(&self, first: u64, last: u64) -> Result<Vec<FullHeader>, PeerError> {
        let mut all: Vec<FullHeader> = Vec::new();
        loop {
            let next = first.saturating_add(all.len() as u64);
            if next > last {
                return Ok(all);
            }
            let cached = lock(&self.snapshot_headers).from(next, last);
            if !cached.is_empty() {
                all.extend(cached);
                continue;
            }
            let run = self.snapshot_run(next).await?;
            let wanted = run.from(next, last);
            if wanted.is_empty() {
                return Err(PeerError::Wrong("a run of blocks without the first one that was asked for"));
            }
            all.extend(wanted);
            *lock(&self.snapshot_headers) = if run.is_short() { run } else { Stretch::default() };
        }
    }

    /// The headers of the run of blocks that begins at a height.
    async fn snapshot_run(&self, first: u64) -> Result<Stretch, PeerError> {
        let request = Request::SnapBlocks { before: first.saturating_add(SNAPSHOT_RUN) };
        let message = match self.node.ask(request).await {
            Err(error @ PeerError::Closed(CloseReason::Transport(_))) => {
                self.breaks_runs.store(true, Ordering::Relaxed);
                return Err(error);
            }
            answer => answer?,
        };
        message.read(read_run).await?
    }

    /// The header with this hash and its ancestors in full form, descending, at most `count`.
    async fn with_ancestors(&self, hash: B256, count: u64) -> Result<Vec<FullHeader>, PeerError> {
        let message = self.node.ask(Request::Headers { hash, count }).await?;
        let sent = message.read(move |payload| read_headers(payload, hash, count)).await??;
        // Gives its bytes of the budget back before bodies are fetched.
        drop(message);
        let bytes = &AtomicUsize::new(0);
        let full = sent.into_iter().map(|header| async move {
            let header = match header {
                SentHeader::Full(header) => header,
                SentHeader::Short { hash, rlp } => self.bodies.complete(hash, rlp).await?,
            };
            let before = bytes.fetch_add(header.bytes(), Ordering::Relaxed);
            if before.saturating_add(header.bytes()) > MAX_BATCH_BYTES {
                return Err(PeerError::Wrong("headers are longer than the rules allow"));
            }
            Ok(header)
        });
        let full = try_join_all(full).await?;
        // The core checks the links of the other headers when it verifies all of them.
        full.first().map_or(Ok(()), |first| self.check_hash(first, hash))?;
        let mut named = hash;
        for header in &full {
            self.recent.insert(named, Bytes::copy_from_slice(&header.rlp));
            named = RawHeader::split(&header.rlp).map_err(MessageError::from)?.parent_hash();
        }
        Ok(full)
    }
}

/// A header as a message has it.
enum SentHeader {
    /// A header in full form, without a body.
    Full(FullHeader),
    /// A header that needs the body of the block with this hash, for its extension or its uncles.
    Short { hash: B256, rlp: Vec<u8> },
}

/// Reads headers, of which the first one has this hash.
fn read_headers(payload: &[u8], hash: B256, count: u64) -> Result<Vec<SentHeader>, PeerError> {
    let Response::Headers(headers) = response(payload)? else {
        return Err(PeerError::Wrong("not headers"));
    };
    if headers.len() as u64 > count {
        return Err(PeerError::Wrong("more headers than asked for"));
    }
    // A response of fewer than eight headers counts as one near the head, where fork choice needs the uncles too; a body has both.
    // For many headers, a message for each body would take too long.
    let (near_head, mut hash) = (headers.len() < 8, hash);
    let mut sent = Vec::with_capacity(headers.len());
    for rlp in headers.iter() {
        let header = RawHeader::split(rlp).map_err(MessageError::from)?;
        let has_uncles = header.uncles_hash() != EMPTY_UNCLES_HASH;
        sent.push(match header.needs_extension() || (near_head && has_uncles) {
            true => SentHeader::Short { hash, rlp: FullHeader::new(rlp.to_vec(), None)?.rlp },
            false => SentHeader::Full(FullHeader::new(header.full(None)?, (!has_uncles).then(Vec::new))?),
        });
        hash = header.parent_hash();
    }
    Ok(sent)
}

/// Reads the headers and uncles of a run of blocks.
fn read_run(payload: &[u8]) -> Result<Stretch, PeerError> {
    let Response::SnapBlocks(run) = response(payload)? else {
        return Err(PeerError::Wrong("not a run of blocks"));
    };
    let mut headers = Vec::with_capacity(run.blocks.len());
    for block in run.blocks.iter() {
        let parts = BlockParts::split(block)?;
        headers.push(FullHeader::new(parts.header.to_vec(), Some(parts.uncles.payload().to_vec()))?);
    }
    let number = |header: &FullHeader| RawHeader::split(&header.rlp).map(|header| header.number());
    let first = headers.first().map(number).transpose().map_err(MessageError::from)?;
    // A run without blocks has no first height; `snapshot_headers` refuses it.
    Ok(Stretch { first: first.unwrap_or_default(), headers })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
