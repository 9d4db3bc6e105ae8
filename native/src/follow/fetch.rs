//! Whole blocks from an upstream: header, transactions, uncles. Each header is rebuilt to the hash the upstream
//! claims for it; the rest is for the import to check against the header.

use rootlight::consensus::Network;
use rootlight::light::prove::raw_header;
use rootlight::types::json::{block_from_json, block_with_header, header_from_json, JsonBlock, JsonError};
use rootlight::types::{Block, BlockBody, Header, SealedHeader, B256};
use serde_json::value::RawValue;
use serde_json::Value;

use crate::upstream::{Call, CallResult, Upstream, UpstreamError};

/// Blocks of the longest window; the upstream driver splits it into batches the upstream takes.
pub(super) const WINDOW: u64 = 64;

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
    let calls = (first..=last)
        .map(|number| Call::new("eth_getBlockByNumber", vec![quantity(number), Value::Bool(true)]))
        .collect();
    let mut blocks = Vec::new();
    for (number, answer) in (first..).zip(upstream.request(calls).await) {
        let text = match answer {
            Ok(text) if text.get() == "null" => break,
            // A recording ends where it ends.
            Err(UpstreamError::NotRecorded(_)) if number > first => break,
            Err(UpstreamError::NotRecorded(_)) => return Ok(blocks),
            answer => text_of(number, answer)?,
        };
        let (header, block) = whole_header(upstream, network, number, &text).await?;
        if header.number != number {
            return Err(FetchError::OtherBlock { number, found: header.number });
        }
        let uncles = uncles(upstream, network, number, header.hash(), &block.uncles).await?;
        let transactions = block.transactions.into_full().ok_or(FetchError::NoTransactions { number })?;
        blocks.push(Block { header: header.into_header(), body: BlockBody { transactions }, uncles });
    }
    Ok(blocks)
}

/// The header from the block's JSON; where that hides too much, from the raw header beside it.
async fn whole_header(
    upstream: &dyn Upstream,
    network: &Network,
    number: u64,
    text: &RawValue,
) -> Result<(SealedHeader, JsonBlock), FetchError> {
    let shape_of = |number| network.header_shape(number);
    let hidden = match block_from_json(text.get(), None, &shape_of, network.chain_id) {
        Ok(block) => return Ok((block.header.clone(), block)),
        Err(error) => error,
    };
    let call = Call::new("rsk_getRawBlockHeaderByNumber", vec![quantity(number)]);
    let raw = match upstream.request(vec![call]).await.into_iter().next() {
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
        .map(|index| {
            let params = vec![Value::from(block.to_string()), quantity(index)];
            Call::new("eth_getUncleByBlockHashAndIndex", params)
        })
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

fn quantity(number: u64) -> Value {
    Value::from(format!("{number:#x}"))
}
