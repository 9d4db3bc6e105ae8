//! Fetches whole blocks from an upstream: header, transactions and uncles. Each header must hash to the hash
//! that the upstream states for it. The import checks everything else against the header.

use rootlight::consensus::{MAX_UNCLES, Network};
use rootlight::types::Transaction;
use rootlight::types::json::JsonBlock;
use rootlight::types::{B256, Block, SealedHeader};
use rootlight_upstream::{Upstream, UpstreamError, UpstreamResult, call, quantity};
use serde_json::json;
use serde_json::value::RawValue;
use tracing::debug;

use super::error::FetchError;
use super::whole::{block_of, text_of, whole_block, whole_header};

/// Most blocks in a window; the upstream's client splits the window into batches that the upstream accepts.
pub const WINDOW: u64 = 64;

/// A block with the blocks of its uncles, as far as the upstream has them.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The block.
    pub block: Block,
    /// The blocks of its uncles. Each has the hash that the block names; the bodies are not checked yet.
    pub uncles: Vec<Block>,
}

/// Fetches blocks from `first` up to `last`, the end of the upstream's chain or the end of the window.
///
/// # Errors
/// The error of the first block that could not be fetched.
pub async fn fetch_blocks(
    upstream: &dyn Upstream,
    network: &Network,
    first: u64,
    last: u64,
) -> Result<Vec<Block>, FetchError> {
    let mut blocks = Vec::new();
    for (number, (header, block)) in (first..).zip(block_objects(upstream, network, first, last).await?) {
        blocks.push(whole_block(upstream, network, number, header, block).await?);
    }
    Ok(blocks)
}

/// A header, its transactions, and the hashes of its uncles.
pub(crate) type FetchedBody = (SealedHeader, Vec<Transaction>, Vec<B256>);

/// Fetches headers and transactions of blocks from `first` up to `last`, the end of the upstream's chain or the end of
/// the window, and the hashes of their uncles. Transactions and uncles are not checked against the header yet.
///
/// # Errors
/// The error of the first block that could not be fetched.
pub async fn fetch_bodies(
    upstream: &dyn Upstream,
    network: &Network,
    first: u64,
    last: u64,
) -> Result<Vec<FetchedBody>, FetchError> {
    let full = |(number, (header, block)): (u64, (SealedHeader, JsonBlock))| {
        let transactions = block.transactions.into_full().ok_or(FetchError::NoTransactions { number })?;
        Ok((header, transactions, block.uncles))
    };
    (first..).zip(block_objects(upstream, network, first, last).await?).map(full).collect()
}

/// Fetches headers with their block objects. Each header has its height and the hash that the upstream states.
async fn block_objects(
    upstream: &dyn Upstream,
    network: &Network,
    first: u64,
    last: u64,
) -> Result<Vec<(SealedHeader, JsonBlock)>, FetchError> {
    let mut headers = Vec::new();
    for (number, answer) in (first..).zip(ask_window(upstream, first, last, true).await) {
        let text = match answer {
            Ok(text) if text.get() == "null" => break,
            // A recording may end below the requested height.
            Err(UpstreamError::NotRecorded(_)) => break,
            answer => text_of(number, answer)?,
        };
        headers.push(header_at(upstream, network, number, &text).await?);
    }
    Ok(headers)
}

/// Requests the blocks of a window by number, with whole transactions or with their hashes.
async fn ask_window(upstream: &dyn Upstream, first: u64, last: u64, full: bool) -> Vec<UpstreamResult> {
    let last = last.min(first.saturating_add(WINDOW - 1));
    let block = |number| call("eth_getBlockByNumber", json!([quantity(number), full]));
    upstream.request((first..=last).map(block).collect()).await
}

/// The header in a response to a request by number, and the block object.
async fn header_at(
    upstream: &dyn Upstream,
    network: &Network,
    number: u64,
    text: &RawValue,
) -> Result<(SealedHeader, JsonBlock), FetchError> {
    let raw = call("rsk_getRawBlockHeaderByNumber", json!([quantity(number)]));
    let (header, block) = whole_header(upstream, network, (number, None), text, raw).await?;
    match header.number {
        found if found == number => Ok((header, block)),
        found => Err(FetchError::OtherBlock { number, found }),
    }
}

/// Fetches headers from `first` up to `last`, or up to the end of the upstream's chain or of the window.
///
/// # Errors
/// The error of the first header that could not be fetched.
pub async fn fetch_headers(
    upstream: &dyn Upstream,
    network: &Network,
    first: u64,
    last: u64,
) -> Result<Vec<SealedHeader>, FetchError> {
    let mut headers = Vec::new();
    for (number, answer) in (first..).zip(ask_window(upstream, first, last, false).await) {
        let text = text_of(number, answer)?;
        if text.get() == "null" {
            break;
        }
        headers.push(header_at(upstream, network, number, &text).await?.0);
    }
    Ok(headers)
}

/// Fetches the blocks of the uncles of those blocks that are `new`. An uncle is left out if the upstream does
/// not have its block or returns a block with another hash.
pub async fn fetch_uncles(
    upstream: &dyn Upstream,
    network: &Network,
    blocks: Vec<Block>,
    new: impl Fn(&B256) -> bool,
) -> Vec<Fetched> {
    let mut fetched = Vec::new();
    let (mut wanted, mut calls) = (Vec::new(), Vec::new());
    for (at, block) in blocks.into_iter().enumerate() {
        if !block.uncles.is_empty() && new(&block.header.hash()) {
            for uncle in block.uncles.iter().take(MAX_UNCLES) {
                let hash = uncle.hash();
                wanted.push((at, hash));
                calls.push(call("eth_getBlockByHash", json!([hash.to_string(), true])));
            }
        }
        fetched.push(Fetched { block, uncles: Vec::new() });
    }
    if calls.is_empty() {
        return fetched;
    }
    for ((at, hash), answer) in wanted.into_iter().zip(upstream.request(calls).await) {
        let Ok(text) = answer else { continue };
        match block_of(upstream, network, hash, &text).await {
            Ok(uncle) => fetched[at].uncles.push(uncle),
            Err(error) => debug!("uncle {hash}: {error}"),
        }
    }
    fetched
}
