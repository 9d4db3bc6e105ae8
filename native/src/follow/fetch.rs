//! Whole blocks from an upstream: header, transactions, uncles. Each header is rebuilt to the hash the upstream
//! claims for it; the rest is for the import to check against the header.

use rootlight::consensus::{MAX_UNCLES, Network};
use rootlight::light::{UpstreamCall, prove::raw_header};
use rootlight::types::json::{JsonBlock, JsonError, block_from_json, block_with_header, header_from_json};
use rootlight::types::{B256, Block, BlockBody, Header, SealedHeader};
use serde_json::json;
use serde_json::value::RawValue;
use tracing::debug;

use crate::upstream::{CallResult, Upstream, UpstreamError, call, quantity};

/// Blocks of the longest window; the upstream driver splits it into batches the upstream takes.
pub(super) const WINDOW: u64 = 64;

/// A block with those blocks of its uncles that the upstream has.
#[derive(Debug, Clone)]
pub struct Fetched {
    /// The block.
    pub block: Block,
    /// Blocks of its uncles, each with the hash that the block names; their bodies are not checked.
    pub uncles: Vec<Block>,
}

/// A block could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The upstream did not answer.
    #[error("block {number}: {error}")]
    Upstream {
        /// Block asked for.
        number: u64,
        /// What came instead.
        error: UpstreamError,
    },
    /// The answer is no block, or not one that hashes to what it claims.
    #[error("block {number}: {error}")]
    Block {
        /// Block asked for.
        number: u64,
        /// Field and rule.
        error: JsonError,
    },
    /// The answer is another block.
    #[error("block {number}: the upstream gave block {found}")]
    OtherBlock {
        /// Block asked for.
        number: u64,
        /// Block that came.
        found: u64,
    },
    /// The answer is the block of another uncle.
    #[error("the upstream gave block {found} for uncle {hash}")]
    OtherUncle {
        /// Hash asked for.
        hash: B256,
        /// Hash of the block that came.
        found: B256,
    },
    /// An uncle that no chain can take.
    #[error("uncle {hash} names {found} uncles, at most {MAX_UNCLES}")]
    TooManyUncles {
        /// Its hash.
        hash: B256,
        /// How many it names.
        found: usize,
    },
    /// Only hashes of its transactions came.
    #[error("block {number}: the upstream gives no whole transactions")]
    NoTransactions {
        /// The block.
        number: u64,
    },
}

/// Blocks from a height on, up to the end of the upstream's chain or of the window.
///
/// # Errors
/// The first block that could not be had.
pub async fn fetch_blocks(
    upstream: &dyn Upstream,
    network: &Network,
    first: u64,
    last: u64,
) -> Result<Vec<Block>, FetchError> {
    let last = last.min(first.saturating_add(WINDOW - 1));
    let calls =
        (first..=last).map(|number| call("eth_getBlockByNumber", json!([quantity(number), true]))).collect();
    let mut blocks = Vec::new();
    for (number, answer) in (first..).zip(upstream.request(calls).await) {
        let text = match answer {
            Ok(text) if text.get() == "null" => break,
            // A recording ends where it ends.
            Err(UpstreamError::NotRecorded(_)) if number > first => break,
            Err(UpstreamError::NotRecorded(_)) => return Ok(blocks),
            answer => text_of(number, answer)?,
        };
        let raw = call("rsk_getRawBlockHeaderByNumber", json!([quantity(number)]));
        let (header, block) = whole_header(upstream, network, (number, None), &text, raw).await?;
        if header.number != number {
            return Err(FetchError::OtherBlock { number, found: header.number });
        }
        blocks.push(whole_block(upstream, network, number, header, block).await?);
    }
    Ok(blocks)
}

/// Puts the blocks of their uncles beside those blocks that are `new`. An uncle whose block the upstream does not have,
/// or not as its hash says, is left out.
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

/// The whole block of an uncle.
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

/// A block with its uncles' headers.
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

/// The header from the block's JSON, with the hash it must have where that is known; where the JSON hides too much, from
/// the raw header that `raw` asks for.
async fn whole_header(
    upstream: &dyn Upstream,
    network: &Network,
    (number, hash): (u64, Option<B256>),
    text: &RawValue,
    raw: UpstreamCall,
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

fn text_of(number: u64, answer: CallResult) -> Result<Box<RawValue>, FetchError> {
    answer.map_err(|error| FetchError::Upstream { number, error })
}
