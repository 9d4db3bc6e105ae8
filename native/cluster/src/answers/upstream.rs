//! A backend that asks the index first, and sends on only the requests that the index does not answer.

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

/// Most questions of one batch that the index gets at a time.
const PARALLEL: usize = 4;

/// Least number of blocks on top of a block that the index gives. The index gives a block without its uncles. A message whose
/// head was pinned before the block joined the chain would request the uncles and header too; so many blocks do not come
/// while a message is answered.
const MIN_DEPTH: u64 = 8;

/// A backend with the index before it: the index gives the bodies, transactions and receipts that it has, and the backend
/// everything else. The light client does not see which of the two answered, and would blame the backend for a wrong
/// answer. So the index gives only what [`IndexSource`] has checked.
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
    let indexed = |backend| Arc::new(IndexedBackend { backend, index: index.clone() }) as SharedUpstream;
    backends.into_iter().map(indexed).collect()
}

/// A request that the index may answer instead of a backend.
enum IndexQuery {
    /// The block object of a block with this hash.
    Block(B256),
    /// A transaction or receipt, by the transaction's hash.
    Part(TransactionPart, B256),
}

impl IndexQuery {
    /// The question to the index that a request is; `None` if only the backend can answer the request.
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
    async fn ask_index(&self, query: Option<IndexQuery>) -> Option<Box<RawValue>> {
        match query? {
            IndexQuery::Block(hash) => self.index.block(&hash, MIN_DEPTH).await,
            IndexQuery::Part(part, hash) => self.index.part(part, &hash).await,
        }
    }

    /// The responses in the order of the requests, each from the index or the backend.
    async fn respond(&self, requests: Vec<UpstreamRequest>) -> ReservedResults {
        let queries: Vec<_> = requests.iter().map(IndexQuery::of).collect();
        if queries.iter().all(Option::is_none) {
            return self.backend.request_reserved(requests).await;
        }
        let asked: Vec<_> = queries.into_iter().map(|query| self.ask_index(query)).collect();
        let found: Vec<_> = stream::iter(asked).buffered(PARALLEL).collect().await;
        let unanswered = requests.into_iter().zip(&found).filter(|(_, found)| found.is_none());
        let unanswered: Vec<UpstreamRequest> = unanswered.map(|(request, _)| request).collect();
        let (rest, reserved) = match unanswered.is_empty() {
            true => (Vec::new(), Reservation::default()),
            false => self.backend.request_reserved(unanswered).await,
        };
        let mut rest = rest.into_iter();
        let mut next_of_backend = || rest.next().unwrap_or_else(|| Err(NO_RESPONSE.into()));
        (found.into_iter().map(|found| found.map_or_else(&mut next_of_backend, Ok)).collect(), reserved)
    }
}

impl Upstream for IndexedBackend {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(self.respond(requests))
    }

    fn name(&self) -> &str {
        self.backend.name()
    }

    fn inner(&self) -> Option<&dyn Upstream> {
        Some(&*self.backend)
    }
}
