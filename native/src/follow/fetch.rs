//! Fetches whole blocks from an upstream: header, transactions and uncles. Each header must hash to the hash
//! that the upstream states for it. The import checks everything else against the header.

use rootlight::consensus::{MAX_UNCLES, Network};
use rootlight::light::{UpstreamRequest, prove::raw_header};
#[cfg(feature = "cluster")]
use rootlight::types::Transaction;
use rootlight::types::json::{JsonBlock, JsonError, block_from_json, block_with_header, header_from_json};
use rootlight::types::{B256, Block, BlockBody, Header, SealedHeader};
use serde_json::json;
use serde_json::value::RawValue;
use tracing::debug;

use crate::upstream::{Upstream, UpstreamError, UpstreamResult, call, quantity};

/// Most blocks in a window; the upstream's client splits the window into batches that the upstream accepts.
pub(crate) const WINDOW: u64 = 64;

/// A block with the blocks of its uncles, as far as the upstream has them.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The block.
    pub block: Block,
    /// The blocks of its uncles. Each has the hash that the block names; the bodies are not checked yet.
    pub uncles: Vec<Block>,
}

/// Why a block could not be fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The upstream returned no result.
    #[error("block {number}: {error}")]
    Upstream {
        /// Height of the requested block.
        number: u64,
        /// The upstream's error.
        error: UpstreamError,
    },
    /// The response is not a block, or its header does not have the stated hash.
    #[error("block {number}: {error}")]
    Block {
        /// Height of the requested block.
        number: u64,
        /// The field and the rule it breaks.
        error: JsonError,
    },
    /// The response is another block.
    #[error("block {number}: the upstream returned block {found}")]
    OtherBlock {
        /// Height of the requested block.
        number: u64,
        /// Height of the returned block.
        found: u64,
    },
    /// The response is the block of another uncle.
    #[error("the upstream returned block {found} for uncle {hash}")]
    OtherUncle {
        /// The requested hash.
        hash: B256,
        /// Hash of the returned block.
        found: B256,
    },
    /// The block of an uncle names more uncles than a block may.
    #[error("uncle {hash} names {found} uncles, at most {MAX_UNCLES}")]
    TooManyUncles {
        /// Hash of the uncle.
        hash: B256,
        /// Number of uncles that it names.
        found: usize,
    },
    /// The response holds only the hashes of the transactions.
    #[error("block {number}: the upstream returned transaction hashes instead of transactions")]
    NoTransactions {
        /// Height of the block.
        number: u64,
    },
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
    for (number, (header, block)) in (first..).zip(fetch_headers(upstream, network, first, last).await?) {
        blocks.push(whole_block(upstream, network, number, header, block).await?);
    }
    Ok(blocks)
}

/// Fetches headers and transactions of blocks from `first` up to `last`, the end of the upstream's chain or the end of
/// the window, without their uncles. The transactions are not checked yet.
///
/// # Errors
/// The error of the first block that could not be fetched.
#[cfg(feature = "cluster")]
pub(crate) async fn fetch_bodies(
    upstream: &dyn Upstream,
    network: &Network,
    first: u64,
    last: u64,
) -> Result<Vec<(SealedHeader, Vec<Transaction>)>, FetchError> {
    let full = |(number, (header, block)): (u64, (SealedHeader, JsonBlock))| {
        let transactions = block.transactions.into_full().ok_or(FetchError::NoTransactions { number })?;
        Ok((header, transactions))
    };
    (first..).zip(fetch_headers(upstream, network, first, last).await?).map(full).collect()
}

/// Fetches headers with their block objects. Each header has its height and the hash that the upstream states.
async fn fetch_headers(
    upstream: &dyn Upstream,
    network: &Network,
    first: u64,
    last: u64,
) -> Result<Vec<(SealedHeader, JsonBlock)>, FetchError> {
    let last = last.min(first.saturating_add(WINDOW - 1));
    let calls =
        (first..=last).map(|number| call("eth_getBlockByNumber", json!([quantity(number), true]))).collect();
    let mut headers = Vec::new();
    for (number, answer) in (first..).zip(upstream.request(calls).await) {
        let text = match answer {
            Ok(text) if text.get() == "null" => break,
            // A recording ends before the height that was asked for.
            Err(UpstreamError::NotRecorded(_)) => break,
            answer => text_of(number, answer)?,
        };
        let raw = call("rsk_getRawBlockHeaderByNumber", json!([quantity(number)]));
        let (header, block) = whole_header(upstream, network, (number, None), &text, raw).await?;
        if header.number != number {
            return Err(FetchError::OtherBlock { number, found: header.number });
        }
        headers.push((header, block));
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
                wanted.push((at, uncle.number, hash));
                calls.push(call("eth_getBlockByHash", json!([hash.to_string(), true])));
            }
        }
        fetched.push(Fetched { block, uncles: Vec::new() });
    }
    if calls.is_empty() {
        return fetched;
    }
    for ((at, number, hash), answer) in wanted.into_iter().zip(upstream.request(calls).await) {
        let Ok(text) = answer else { continue };
        match uncle_block(upstream, network, (number, hash), &text).await {
            Ok(uncle) => fetched[at].uncles.push(uncle),
            Err(error) => debug!("uncle {hash}: {error}"),
        }
    }
    fetched
}

/// Fetches the whole block of an uncle.
async fn uncle_block(
    upstream: &dyn Upstream,
    network: &Network,
    (number, hash): (u64, B256),
    text: &RawValue,
) -> Result<Block, FetchError> {
    let raw = call("rsk_getRawBlockHeaderByHash", json!([hash.to_string()]));
    let (header, block) = whole_header(upstream, network, (number, Some(hash)), text, raw).await?;
    if header.hash() != hash {
        return Err(FetchError::OtherUncle { hash, found: header.hash() });
    }
    if block.uncles.len() > MAX_UNCLES {
        return Err(FetchError::TooManyUncles { hash, found: block.uncles.len() });
    }
    whole_block(upstream, network, number, header, block).await
}

/// Completes a block with its uncles' headers.
async fn whole_block(
    upstream: &dyn Upstream,
    network: &Network,
    number: u64,
    header: SealedHeader,
    block: JsonBlock,
) -> Result<Block, FetchError> {
    let uncles = uncles(upstream, network, number, header.hash(), &block.uncles).await?;
    let transactions = block.transactions.into_full().ok_or(FetchError::NoTransactions { number })?;
    Ok(Block { header: header.into_header(), body: BlockBody { transactions }, uncles })
}

/// Builds the header from the block's JSON, with the hash it must have if that is known. If the JSON omits
/// header fields, the raw header is fetched with `raw`.
async fn whole_header(
    upstream: &dyn Upstream,
    network: &Network,
    (number, hash): (u64, Option<B256>),
    text: &RawValue,
    raw: UpstreamRequest,
) -> Result<(SealedHeader, JsonBlock), FetchError> {
    let shape_of = |number| network.header_shape(number);
    let hidden = match block_from_json(text.get(), hash, &shape_of, network.chain_id) {
        Ok(block) => return Ok((block.header.clone(), block)),
        Err(error) => error,
    };
    let raw = match upstream.request(vec![raw]).await.into_iter().next() {
        Some(Ok(raw)) => raw,
        _ => return Err(FetchError::Block { number, error: hidden }),
    };
    let failed = |error| FetchError::Block { number, error };
    let header = raw_header(raw.get(), text.get(), network).map_err(|_| failed(hidden))?;
    let body = block_with_header(text.get(), header.clone(), network.chain_id);
    Ok((header, body.map_err(failed)?))
}

async fn uncles(
    upstream: &dyn Upstream,
    network: &Network,
    number: u64,
    block: B256,
    hashes: &[B256],
) -> Result<Vec<Header>, FetchError> {
    let calls = (0..hashes.len() as u64)
        .map(|index| call("eth_getUncleByBlockHashAndIndex", json!([block.to_string(), quantity(index)])))
        .collect::<Vec<_>>();
    if calls.is_empty() {
        return Ok(Vec::new());
    }
    let mut uncles = Vec::new();
    for (answer, hash) in upstream.request(calls).await.into_iter().zip(hashes) {
        let text = text_of(number, answer)?;
        let uncle = header_from_json(text.get(), Some(*hash), &|number| network.header_shape(number));
        uncles.push(uncle.map_err(|error| FetchError::Block { number, error })?.into_header());
    }
    Ok(uncles)
}

fn text_of(number: u64, answer: UpstreamResult) -> Result<Box<RawValue>, FetchError> {
    answer.map_err(|error| FetchError::Upstream { number, error })
}
