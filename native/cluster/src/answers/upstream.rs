//! A backend with the index before it.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream;
use rootlight::light::{NO_RESPONSE, UpstreamRequest};
use rootlight::types::B256;
use rootlight_limits::budget::Reservation;
use rootlight_node::light::index::IndexQuestion;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, UpstreamResult};
use serde_json::value::{RawValue, to_raw_value};

use super::block::TransactionPart;
use super::failure::NoAnswer;
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

enum IndexQuery {
    /// The block object of a block with this hash.
    Block(B256),
    /// Something about a transaction, which a backend can give too.
    Part(TransactionPart, B256),
    /// Answers that only the index may give.
    Alone(IndexQuestion),
    /// A question that cannot be read.
    Malformed,
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
            _ => IndexQuestion::of(request).map(|question| question.map_or(Self::Malformed, Self::Alone)),
        }
    }
}

impl IndexedBackend {
    /// The index's answer; `None` if the backend is to be asked.
    async fn of_index(&self, request: &UpstreamRequest) -> Option<(UpstreamResult, Reservation)> {
        let answer = match IndexQuery::of(request)? {
            IndexQuery::Block(hash) => Ok((self.index.block(&hash, DEPTH).await?, Reservation::default())),
            IndexQuery::Part(about, hash) => {
                Ok((self.index.part(about, &hash).await?, Reservation::default()))
            }
            IndexQuery::Alone(question) => self.alone(question).await,
            IndexQuery::Malformed => Err(NoAnswer::Malformed),
        };
        Some(answer.map_or_else(
            |failure| (Err(failure.into()), Reservation::default()),
            |(text, reserved)| (Ok(text), reserved),
        ))
    }

    /// The answer that only the index may give; `null` if it has none.
    async fn alone(&self, question: IndexQuestion) -> Result<(Box<RawValue>, Reservation), NoAnswer> {
        let found = match question {
            IndexQuestion::Logs(question) => return self.index.logs(question).await,
            IndexQuestion::Traces(question) => return self.index.traces(question).await,
            IndexQuestion::Block(question) => match self.index.block_part(question).await? {
                Some((text, reserved)) => Some((to_raw_value(&[text])?, reserved)),
                None => None,
            },
            IndexQuestion::Transaction(hash) => self.found(TransactionPart::Transaction, &hash).await?,
            IndexQuestion::Receipt(hash) => self.found(TransactionPart::Receipt, &hash).await?,
        };
        Ok(found.unwrap_or_else(|| (RawValue::NULL.to_owned(), Reservation::default())))
    }

    async fn found(
        &self,
        about: TransactionPart,
        hash: &B256,
    ) -> Result<Option<(Box<RawValue>, Reservation)>, NoAnswer> {
        Ok(self.index.found(about, hash).await?.map(|text| (text, Reservation::default())))
    }

    async fn answers(&self, requests: Vec<UpstreamRequest>) -> (Vec<UpstreamResult>, Reservation) {
        if requests.iter().all(|request| IndexQuery::of(request).is_none()) {
            return self.backend.request_reserved(requests).await;
        }
        let asked: Vec<_> = requests.iter().map(|request| self.of_index(request)).collect();
        let found: Vec<_> = stream::iter(asked).buffered(PARALLEL).collect().await;
        let open = requests.into_iter().zip(&found).filter(|(_, found)| found.is_none());
        let open: Vec<UpstreamRequest> = open.map(|(request, _)| request).collect();
        let (rest, mut reserved) = match open.is_empty() {
            true => (Vec::new(), Reservation::default()),
            false => self.backend.request_reserved(open).await,
        };
        let mut rest = rest.into_iter();
        let mut results = Vec::with_capacity(found.len());
        for found in found {
            match found {
                Some((result, bytes)) => {
                    reserved.merge(bytes);
                    results.push(result);
                }
                None => results.push(rest.next().unwrap_or_else(|| Err(NO_RESPONSE.into()))),
            }
        }
        (results, reserved)
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
