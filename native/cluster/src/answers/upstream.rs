//! A backend with the index before it.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use rootlight::light::{NO_RESPONSE, UpstreamRequest};
use rootlight::types::B256;
use rootlight_limits::budget::Reservation;
use rootlight_node::light::index::TransactionPart;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream};
use serde_json::value::RawValue;

use super::source::IndexSource;

/// Questions of one batch that the index gets at a time.
const PARALLEL: usize = 4;

/// Blocks on top of a block that the index gives. A message whose head was pinned before the block joined the chain would
/// ask for its header and uncles, which a backend gives; so many blocks do not come while a message is answered.
const DEPTH: u64 = 8;

/// A backend with the index before it: the index gives bodies, receipts and places of transactions that it has, and the
/// backend everything else. The client never learns which of them answered, so only what the index has checked is passed
/// on: the backend is never blamed for the index.
#[derive(Debug)]
pub struct IndexedBackend {
    backend: SharedUpstream,
    index: Arc<IndexSource>,
}

/// Puts an index before each of these backends. The light client that gets them needs [`LightOptions::index`], and its
/// [`proven_chain`] goes to [`IndexSource::follow`].
///
/// [`LightOptions::index`]: rootlight_node::light::LightOptions::index
/// [`proven_chain`]: rootlight_node::light::LightService::proven_chain
#[must_use]
pub fn with_index(backends: Vec<SharedUpstream>, index: &Arc<IndexSource>) -> Vec<SharedUpstream> {
    let one = |backend| Arc::new(IndexedBackend { backend, index: index.clone() }) as SharedUpstream;
    backends.into_iter().map(one).collect()
}

/// A request that the index may answer in the place of a backend.
enum IndexQuery {
    /// The block object of a block with this hash.
    Block(B256),
    /// Something about a transaction.
    Part(TransactionPart, B256),
}

impl IndexQuery {
    /// The question to the index in a request; `None` if it is for the backend alone.
    fn of(request: &UpstreamRequest) -> Option<Self> {
        let hash = || serde_json::from_str(&request.params).ok().map(|[hash]: [B256; 1]| hash);
        match request.method {
            "eth_getBlockByHash" => {
                let (hash, full): (B256, bool) = serde_json::from_str(&request.params).ok()?;
                full.then_some(Self::Block(hash))
            }
            "eth_getTransactionByHash" => hash().map(|hash| Self::Part(TransactionPart::Transaction, hash)),
            "eth_getTransactionReceipt" => hash().map(|hash| Self::Part(TransactionPart::Receipt, hash)),
            _ => None,
        }
    }
}

impl IndexedBackend {
    /// The index's answer; `None` if the backend is to be asked.
    async fn of_index(&self, query: Option<IndexQuery>) -> Option<Box<RawValue>> {
        match query? {
            IndexQuery::Block(hash) => self.index.block(&hash, DEPTH).await,
            IndexQuery::Part(about, hash) => self.index.part(about, &hash).await,
        }
    }

    async fn answers(&self, requests: Vec<UpstreamRequest>) -> ReservedResults {
        let queries: Vec<_> = requests.iter().map(IndexQuery::of).collect();
        if queries.iter().all(Option::is_none) {
            return self.backend.request_reserved(requests).await;
        }
        let asked: Vec<_> = queries.into_iter().map(|query| self.of_index(query)).collect();
        let found: Vec<_> = stream::iter(asked).buffered(PARALLEL).collect().await;
        let open = requests.into_iter().zip(&found).filter(|(_, found)| found.is_none());
        let open: Vec<UpstreamRequest> = open.map(|(request, _)| request).collect();
        let (rest, reserved) = match open.is_empty() {
            true => (Vec::new(), Reservation::default()),
            false => self.backend.request_reserved(open).await,
        };
        let mut rest = rest.into_iter();
        let mut next = || rest.next().unwrap_or_else(|| Err(NO_RESPONSE.into()));
        (found.into_iter().map(|found| found.map_or_else(&mut next, Ok)).collect(), reserved)
    }
}

impl Upstream for IndexedBackend {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(self.answers(requests))
    }

    fn name(&self) -> &str {
        self.backend.name()
    }

    fn inner(&self) -> Option<&dyn Upstream> {
        Some(&*self.backend)
    }
}
