//! The source of blocks for the loader of the index: a light client proves which blocks are on the chain, and its upstreams give
//! the contents of the blocks.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::{BoxFuture, try_join_all};
use rootlight::consensus::Network;
use rootlight::light::UpstreamRequest;
use rootlight::types::json::receipt_from_json;
use rootlight::types::{B256, Bytes, Receipt, SealedHeader, Transaction};
use rootlight_index::{BlockError, BlockSource, MatchedBlock, Proof, SourceBlock, SourceError};
use rootlight_node::follow::{FetchError, WINDOW, fetch_bodies};
use rootlight_node::light::LightService;
use rootlight_upstream::{SharedUpstream, Upstream, UpstreamError, UpstreamResult, call};
use serde_json::json;
use tracing::debug;

use super::uncles_and_traces::{self, TracesFailure, add_traces};

/// Number of times that all upstreams are asked before the loader gets an error.
const MAX_ATTEMPTS: u32 = 3;

/// Pause before all upstreams are asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Blocks of a chain. The light client proves headers from its start on; for older blocks only the upstream states that they are
/// on the chain.
pub struct ChainSource {
    light: LightService,
    upstreams: Vec<SharedUpstream>,
    network: Arc<Network>,
    /// Whether blocks are returned with their traces.
    traces: bool,
}

impl std::fmt::Debug for ChainSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChainSource").field("network", &self.network.name).finish_non_exhaustive()
    }
}

/// Why an upstream gave no usable block.
#[derive(Debug, thiserror::Error)]
enum BlockFailure {
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error("the upstream has no block {0}")]
    Absent(u64),
    #[error("block {number}: the upstream has {found}, which is not on the proven chain")]
    OtherChain { number: u64, found: B256 },
    #[error("receipts of block {number}: {error}")]
    Receipts { number: u64, error: String },
    #[error(transparent)]
    Block(#[from] BlockError),
    #[error(transparent)]
    Traces(#[from] TracesFailure),
    #[error("a check failed: {0}")]
    Task(String),
}

impl ChainSource {
    /// `upstreams` are those that the light client follows.
    #[must_use]
    pub fn new(light: LightService, upstreams: Vec<SharedUpstream>, network: Arc<Network>) -> Self {
        Self { light, upstreams, network, traces: false }
    }

    /// Adds the traces of each block, which come from the upstream's method `trace_block`. No header commits to traces, so they are
    /// not proven.
    #[must_use]
    pub const fn with_traces(mut self) -> Self {
        self.traces = true;
        self
    }

    /// The blocks from the first upstream that gives them.
    async fn of_any_upstream(&self, first: u64, last: u64) -> Result<Vec<SourceBlock>, SourceError> {
        let mut failure = None;
        for attempt in 0..MAX_ATTEMPTS {
            if attempt > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            for upstream in &self.upstreams {
                match self.of_upstream(upstream, first, last).await {
                    Ok(blocks) => return Ok(blocks),
                    Err(error) => {
                        debug!("{}: {error}", upstream.name());
                        failure = Some(format!("{}: {error}", upstream.name()));
                    }
                }
            }
        }
        Err(SourceError::Transient(failure.unwrap_or_else(|| "no upstream is asked".into())))
    }

    /// The blocks of one upstream, at least one. They are divided into runs of [`WINDOW`] blocks, which are fetched at the same time.
    async fn of_upstream(
        &self,
        upstream: &SharedUpstream,
        first: u64,
        last: u64,
    ) -> Result<Vec<SourceBlock>, BlockFailure> {
        let steps = (first..=last).step_by(usize::try_from(WINDOW).unwrap_or(1));
        let runs =
            steps.map(|from| self.checked_run(upstream, from, last.min(from.saturating_add(WINDOW - 1))));
        let blocks: Vec<SourceBlock> = try_join_all(runs).await?.into_iter().flatten().collect();
        // The first missing block ends the answer.
        let is_next = |(block, number): &(SourceBlock, u64)| block.block.header().number == *number;
        let blocks: Vec<_> =
            blocks.into_iter().zip(first..).take_while(is_next).map(|(block, _)| block).collect();
        if blocks.is_empty() {
            return Err(BlockFailure::Absent(first));
        }
        if self.traces { Ok(add_traces(&**upstream, blocks).await?) } else { Ok(blocks) }
    }

    /// The checked blocks of a run, without traces.
    async fn checked_run(
        &self,
        upstream: &SharedUpstream,
        first: u64,
        last: u64,
    ) -> Result<Vec<SourceBlock>, BlockFailure> {
        let bodies = fetch_bodies(&**upstream, &self.network, first, last).await?;
        let mut proofs = Vec::new();
        let mut uncle_hashes = Vec::new();
        for (header, _, hashes) in &bodies {
            proofs.push(self.proof(header)?);
            uncle_hashes.push((header.hash(), hashes.clone()));
        }
        let uncles = uncles_and_traces::uncles(&**upstream, &self.network, &uncle_hashes).await;
        let bodies: Vec<_> =
            bodies.into_iter().map(|(header, transactions, _)| (header, transactions)).collect();
        let transaction_hashes: Vec<B256> =
            bodies.iter().flat_map(|(_, transactions)| transactions).map(Transaction::hash).collect();
        let responses = ask_for_each(&**upstream, "eth_getTransactionReceipt", &transaction_hashes).await;
        let (network, counts) = (self.network.clone(), bodies.iter().map(|(_, body)| body.len()).collect());
        let by_block: Vec<Vec<UpstreamResult>> = divide(responses, counts);
        let unchecked = bodies.clone().into_iter().zip(by_block).collect();
        // Senders are recovered, and roots computed, on a thread for blocking work.
        let checked = tokio::task::spawn_blocking(move || check(unchecked, &network));
        let checked = checked.await.map_err(|failure| BlockFailure::Task(failure.to_string()))?;
        let mut blocks = Vec::new();
        let parts = checked.into_iter().zip(bodies).zip(proofs).zip(uncles);
        for (((checked, (header, transactions)), proof), uncles) in parts {
            let block = match checked {
                Ok(block) => block,
                Err(error) => {
                    debug!("{}: {error}; asking for raw receipts", upstream.name());
                    // If this fails too, the first error says more.
                    self.with_raw_receipts(&**upstream, header, transactions).await.map_err(|_| error)?
                }
            };
            // A block whose uncles the upstream does not show is stored without them.
            let block = match uncles.filter(|_| block.uncles().is_none()) {
                Some(uncles) => block.clone().with_uncles(uncles).unwrap_or(block),
                None => block,
            };
            blocks.push(SourceBlock { block, proof, traces: None });
        }
        Ok(blocks)
    }

    /// The proof level of a header, by the light client. A header whose height the light client has with another hash is an error.
    fn proof(&self, header: &SealedHeader) -> Result<Proof, BlockFailure> {
        match self.light.canonical(header.number) {
            Ok((_, Some(hash))) if hash == header.hash() => Ok(Proof::Verified),
            Ok((_, Some(_))) => Err(BlockFailure::OtherChain { number: header.number, found: header.hash() }),
            // The light client does not have this height, or has no head yet.
            _ => Ok(Proof::Stated),
        }
    }

    /// Checks a block with raw receipts, in the form of the receipts trie, for upstreams whose JSON lacks parts of a receipt.
    async fn with_raw_receipts(
        &self,
        upstream: &dyn Upstream,
        header: SealedHeader,
        transactions: Vec<Transaction>,
    ) -> Result<MatchedBlock, BlockFailure> {
        let number = header.number;
        let hashes: Vec<B256> = transactions.iter().map(Transaction::hash).collect();
        let responses = ask_for_each(upstream, "rsk_getRawTransactionReceiptByHash", &hashes).await;
        let receipts =
            responses.into_iter().map(|response| raw_receipt(number, response)).collect::<Result<_, _>>()?;
        let network = self.network.clone();
        let check = tokio::task::spawn_blocking(move || {
            MatchedBlock::check(header, transactions, receipts, &network)
        });
        Ok(check.await.map_err(|failure| BlockFailure::Task(failure.to_string()))??)
    }
}

/// Sends one request of this method for each transaction hash, in one batch.
async fn ask_for_each(upstream: &dyn Upstream, method: &'static str, hashes: &[B256]) -> Vec<UpstreamResult> {
    let calls: Vec<UpstreamRequest> =
        hashes.iter().map(|hash| call(method, json!([hash.to_string()]))).collect();
    if calls.is_empty() { Vec::new() } else { upstream.request(calls).await }
}

/// Divides a list into lists of these lengths.
fn divide<T>(all: Vec<T>, counts: Vec<usize>) -> Vec<Vec<T>> {
    let mut all = all.into_iter();
    counts.into_iter().map(|count| all.by_ref().take(count).collect()).collect()
}

/// Header, transactions, and the responses about their receipts.
type Unchecked = ((SealedHeader, Vec<Transaction>), Vec<UpstreamResult>);

/// Checks blocks, and returns a result for each.
fn check(blocks: Vec<Unchecked>, network: &Network) -> Vec<Result<MatchedBlock, BlockFailure>> {
    let checked = |((header, transactions), responses): Unchecked| {
        let number = header.number;
        let read = |response: UpstreamResult| {
            let text = response.map_err(|error| receipts_failure(number, &error))?;
            receipt_from_json(text.get()).map_err(|error| receipts_failure(number, &error))
        };
        let receipts = responses.into_iter().map(read).collect::<Result<Vec<Receipt>, _>>()?;
        Ok(MatchedBlock::check(header, transactions, receipts, network)?)
    };
    blocks.into_iter().map(checked).collect()
}

/// The failure to read a block's receipts.
fn receipts_failure(number: u64, error: &dyn std::fmt::Display) -> BlockFailure {
    BlockFailure::Receipts { number, error: error.to_string() }
}

/// Reads a raw receipt in a response.
fn raw_receipt(
    number: u64,
    response: Result<Box<serde_json::value::RawValue>, UpstreamError>,
) -> Result<Receipt, BlockFailure> {
    let text = response.map_err(|error| receipts_failure(number, &error))?;
    let bytes: Bytes = serde_json::from_str(text.get()).map_err(|error| receipts_failure(number, &error))?;
    Receipt::decode(&bytes).map_err(|error| receipts_failure(number, &error))
}

impl BlockSource for ChainSource {
    fn head(&self) -> BoxFuture<'_, Result<u64, SourceError>> {
        // `canonical` returns the head with the hash at any height; the hash at 0 is not used.
        let head = self.light.canonical(0).map(|(head, _)| head);
        let head =
            head.map_err(|error| SourceError::Transient(format!("the light client has no head: {error}")));
        std::future::ready(head).boxed()
    }

    fn hash(&self, number: u64) -> Option<B256> {
        self.light.canonical(number).ok().and_then(|(_, hash)| hash)
    }

    fn blocks(&self, first: u64, last: u64) -> BoxFuture<'_, Result<Vec<SourceBlock>, SourceError>> {
        self.of_any_upstream(first, last).boxed()
    }
}
