//! Headers and bodies of a peer, by number and by hash.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use alloy_primitives::B256;
use futures::future::try_join_all;
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use rootlight::consensus::Network;
use rootlight::types::block::EMPTY_UNCLES_HASH;
use rootlight::types::{Header, HeaderVersion, SealedHeader, Transaction};
use rootlight_p2p::header::RawHeader;
use rootlight_p2p::message::limits::MAX_HEADERS;
use rootlight_p2p::message::{BlockParts, Body, Message, MessageError, Request, Response};
use rootlight_p2p::session::CloseReason;

use super::error::PeerError;
use super::node::PeerNode;
use super::places::in_share;
use super::stretch::{FullHeader, Stretch, Stretches, cover};

/// Bytes of bodies that are kept.
const BODIES_BYTES: u64 = 16 * 1024 * 1024;

/// Number of bodies that the memory is laid out for.
const BODIES: usize = 1_024;

/// Weighs bodies by their bytes.
#[derive(Clone)]
struct ByBytes;

impl Weighter<B256, Arc<Vec<u8>>> for ByBytes {
    fn weight(&self, _: &B256, body: &Arc<Vec<u8>>) -> u64 {
        body.len().max(1) as u64
    }
}

/// Blocks this far below the head are not reorganised, so that runs of them by number fit together.
const SETTLED: u64 = 500;

/// Number of blocks that a snapshot server sends in one message.
const SNAP_BLOCKS: u64 = 400;

/// The blocks of one peer.
pub(super) struct Blocks {
    node: Arc<PeerNode>,
    network: Arc<Network>,
    /// The payloads of messages with bodies, by block hash.
    bodies: Cache<B256, Arc<Vec<u8>>, ByBytes>,
    /// The headers that a snapshot server sent last.
    snapped: Mutex<Stretch>,
    stretches: Mutex<Stretches>,
    /// Whether the peer breaks the connection instead of sending runs of blocks: messages of 16 MiB do.
    breaks_runs: AtomicBool,
}

impl Blocks {
    pub(super) fn new(node: Arc<PeerNode>, network: Arc<Network>) -> Self {
        Self {
            node,
            network,
            bodies: Cache::with_weighter(BODIES, BODIES_BYTES, ByBytes),
            snapped: Mutex::default(),
            stretches: Mutex::default(),
            breaks_runs: AtomicBool::new(false),
        }
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }

    /// The number of the newest block that the peer tells of.
    pub(super) async fn head(&self) -> Result<u64, PeerError> {
        self.node.first_best().await.map(|best| best.number)
    }

    /// The hash that the peer gives for a height; `None` above its head. The protocol has no answer for "there is none",
    /// so heights above the head are not asked for.
    pub(super) async fn hash_at(&self, height: u64) -> Result<Option<B256>, PeerError> {
        if height == 0 {
            return Ok(Some(self.node.genesis()));
        }
        if height > self.head().await? {
            return Ok(None);
        }
        let payload = self.node.ask(Request::BlockHash { height }).await?;
        match response(&payload)? {
            Response::BlockHash(hash) => Ok(Some(hash)),
            _ => Err(PeerError::Wrong("not a block hash")),
        }
    }

    /// The header with this hash.
    pub(super) async fn header(&self, hash: B256) -> Result<SealedHeader, PeerError> {
        let headers = self.run(hash, 1).await?;
        self.decoded(headers.first().ok_or(PeerError::Wrong("no header"))?)
    }

    fn decoded(&self, header: &FullHeader) -> Result<SealedHeader, PeerError> {
        let shape = |number| self.network.header_shape(number);
        let decoded = Header::decode_sealed(&header.rlp, &shape);
        decoded.map(|(header, _)| header).map_err(|_| PeerError::Wrong("a header does not decode"))
    }

    /// Checks that a header has the hash that it was asked for by, if its rules are known here.
    fn check_hash(&self, header: &FullHeader, asked: B256) -> Result<(), PeerError> {
        let header = self.decoded(header)?;
        match header.hash() {
            found if found == asked => Ok(()),
            _ if self.network.needs_update_for(header.number) => {
                Err(PeerError::Wrong("a header has another hash than the one asked for"))
            }
            found => Err(PeerError::OtherHash { what: "a header", asked, found }),
        }
    }

    /// Consecutive headers in full form, ascending, up to the peer's head, with the uncles of those whose body was needed.
    pub(super) async fn headers(&self, first: u64, count: u64) -> Result<Vec<FullHeader>, PeerError> {
        let head = self.head().await?;
        if first > head || count == 0 {
            return Ok(Vec::new());
        }
        let last = first.saturating_add(count - 1).min(head);
        // Headers without a bloom take a body each, and a peer reads a thousand messages a minute. Runs of whole blocks
        // have both.
        let is_compressed = self.network.header_shape(first).version != HeaderVersion::V0;
        if is_compressed && last.saturating_add(SETTLED) < head && self.sends_runs().await? {
            return self.snapped(first, last).await;
        }
        if !is_compressed
            && first > 0
            && cover(first, last).all(|(_, top)| top.saturating_add(SETTLED) < head)
        {
            let found = self.stretched(first, last).await;
            return found.inspect_err(|_| lock(&self.stretches).forget());
        }
        let mut all = Vec::new();
        let mut top = self.hash_at(last).await?;
        let mut left = last - first + 1;
        while let (Some(hash), 1..) = (top, left) {
            let some = self.run(hash, left.min(MAX_HEADERS as u64)).await?;
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

    /// Consecutive headers by stretches that end at the hashes of a skeleton.
    async fn stretched(&self, first: u64, last: u64) -> Result<Vec<FullHeader>, PeerError> {
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
        let payload = self.node.ask(Request::Skeleton { start: top }).await?;
        let Response::Skeleton(skeleton) = response(&payload)? else {
            return Err(PeerError::Wrong("not a skeleton"));
        };
        let mut stretches = lock(&self.stretches);
        stretches.learn(skeleton);
        stretches.hash_at(top).ok_or(PeerError::Wrong("a skeleton without the height that was asked for"))
    }

    /// The stretch from a height up to the block with this number and hash.
    async fn stretch(&self, first: u64, top: u64, hash: B256) -> Result<Stretch, PeerError> {
        if let Some(kept) = lock(&self.stretches).kept(first, top) {
            return Ok(kept);
        }
        let headers = self.run(hash, top.saturating_sub(first).saturating_add(1)).await?;
        let stretch = Stretch::of(first, top, headers)
            .ok_or(PeerError::Wrong("headers of other heights than those of the skeleton"))?;
        lock(&self.stretches).keep(&stretch);
        Ok(stretch)
    }

    async fn sends_runs(&self) -> Result<bool, PeerError> {
        Ok(self.node.link().await?.peer.hello.serves_snap() && !self.breaks_runs.load(Ordering::Relaxed))
    }

    /// Consecutive headers by runs of blocks of a snapshot server.
    async fn snapped(&self, first: u64, last: u64) -> Result<Vec<FullHeader>, PeerError> {
        let mut all: Vec<FullHeader> = Vec::new();
        loop {
            let next = first.saturating_add(all.len() as u64);
            if next > last {
                return Ok(all);
            }
            let kept = lock(&self.snapped).from(next, last);
            if !kept.is_empty() {
                all.extend(kept);
                continue;
            }
            let run = self.snap_run(next).await?;
            if run.from(next, next).is_empty() {
                return Err(PeerError::Wrong("a run of blocks without the first one that was asked for"));
            }
            *lock(&self.snapped) = run;
        }
    }

    /// The run of blocks that begins with this one.
    async fn snap_run(&self, first: u64) -> Result<Stretch, PeerError> {
        let request = Request::SnapBlocks { before: first.saturating_add(SNAP_BLOCKS) };
        let payload = match self.node.ask(request).await {
            Err(error @ PeerError::Closed(CloseReason::Transport(_))) => {
                self.breaks_runs.store(true, Ordering::Relaxed);
                return Err(error);
            }
            answer => answer?,
        };
        let Response::SnapBlocks(run) = response(&payload)? else {
            return Err(PeerError::Wrong("not a run of blocks"));
        };
        let mut headers = Vec::with_capacity(run.blocks.len());
        for block in run.blocks.iter() {
            let parts = BlockParts::split(block)?;
            let uncles = Some(parts.uncles.payload().to_vec());
            headers.push(FullHeader { rlp: parts.header.to_vec(), uncles });
        }
        let number = |header: &FullHeader| RawHeader::split(&header.rlp).map(|header| header.number());
        let first = headers.first().map(number).transpose().map_err(MessageError::from)?;
        Ok(Stretch { first: first.unwrap_or_default(), headers })
    }

    /// A header and its ancestors in full form, descending.
    async fn run(&self, hash: B256, count: u64) -> Result<Vec<FullHeader>, PeerError> {
        let payload = self.node.ask(Request::Headers { hash, count }).await?;
        let Response::Headers(headers) = response(&payload)? else {
            return Err(PeerError::Wrong("not headers"));
        };
        if headers.len() as u64 > count {
            return Err(PeerError::Wrong("more headers than asked for"));
        }
        let split = |rlp| RawHeader::split(rlp).map_err(|error| PeerError::Message(error.into()));
        let headers: Vec<RawHeader<'_>> = headers.iter().map(split).collect::<Result<_, _>>()?;
        let hashes = std::iter::once(hash).chain(headers.iter().map(RawHeader::parent_hash));
        // Near the head the uncles are wanted too, and one body has both.
        let alone = headers.len() < 8;
        let full = headers.iter().zip(hashes).map(|(header, hash)| async move {
            let wants_uncles = alone && header.uncles_hash() != EMPTY_UNCLES_HASH;
            if !header.needs_extension() && !wants_uncles {
                let uncles = (header.uncles_hash() == EMPTY_UNCLES_HASH).then(Vec::new);
                return Ok(FullHeader { rlp: header.full(None)?, uncles });
            }
            let payload = self.body_payload(hash).await?;
            let body = body(&payload)?;
            Ok::<_, PeerError>(FullHeader {
                rlp: header.full(body.extension.as_ref())?,
                uncles: Some(body.uncles.payload().to_vec()),
            })
        });
        let full = try_join_all(full).await?;
        // The links of the others are looked at where all headers are verified.
        full.first().map_or(Ok(()), |first| self.check_hash(first, hash))?;
        Ok(full)
    }

    /// The transactions of a block.
    pub(super) async fn transactions(&self, hash: B256) -> Result<Vec<Transaction>, PeerError> {
        let payload = self.body_payload(hash).await?;
        let decoded = body(&payload)?.transactions.iter().map(Transaction::decode).collect::<Result<_, _>>();
        decoded.map_err(|error| PeerError::Message(error.into()))
    }

    /// The uncles of a block.
    pub(super) async fn uncles(&self, hash: B256) -> Result<Vec<SealedHeader>, PeerError> {
        let payload = self.body_payload(hash).await?;
        let shape = |number| self.network.header_shape(number);
        let decoded =
            body(&payload)?.uncles.iter().map(|rlp| Header::decode(rlp, &shape).map(Header::seal)).collect();
        let decoded: Result<_, _> = decoded;
        decoded.map_err(|_| PeerError::Wrong("an uncle does not decode"))
    }

    /// The payload of the message with a body. Requests for the same body wait for one response.
    async fn body_payload(&self, hash: B256) -> Result<Arc<Vec<u8>>, PeerError> {
        if let Some(kept) = self.bodies.get(&hash) {
            return Ok(kept);
        }
        // The turn comes first: one caller's questions that wait for their turns keep no other caller waiting.
        let request = Request::Body(hash);
        in_share(|| async {
            let turn = self.node.turn(&request).await?;
            let ask = async { turn.ask(request).await.map(Arc::new) };
            self.bodies.get_or_insert_async(&hash, ask).await
        })
        .await
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn response(payload: &[u8]) -> Result<Response<'_>, PeerError> {
    match Message::decode(payload)? {
        Message::Response { response, .. } => Ok(response),
        _ => Err(PeerError::Wrong("not a response")),
    }
}

fn body(payload: &[u8]) -> Result<Body<'_>, PeerError> {
    match response(payload)? {
        Response::Body(body) => Ok(body),
        _ => Err(PeerError::Wrong("not a body")),
    }
}
