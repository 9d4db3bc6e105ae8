//! Builds whole blocks from an upstream's JSON: header, transactions and uncles, with further requests for parts that the JSON
//! omits. Only hashes of headers are checked here. Whether the transactions and uncles are those that the header commits to is left to
//! the caller.

use rootlight::consensus::{MAX_UNCLES, Network};
use rootlight::light::UpstreamRequest;
use rootlight::light::prove::{quantity as parse_quantity, raw_header};
use rootlight::types::json::{JsonBlock, block_from_json, block_with_header, header_from_json};
use rootlight::types::{B256, Block, BlockBody, Header, SealedHeader, U256};
use rootlight_upstream::{Upstream, UpstreamError, UpstreamResult, call, quantity};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::error::FetchError;

/// Fetches the header of a block by its hash, with the total difficulty up to it as the upstream states it. `None` if the
/// upstream has no such block.
///
/// # Errors
/// The upstream returned no result, or something else than this block.
pub async fn fetch_header(
    upstream: &dyn Upstream,
    network: &Network,
    hash: B256,
) -> Result<Option<(SealedHeader, Option<U256>)>, FetchError> {
    let Some(text) = block_text(upstream, hash, false).await? else { return Ok(None) };
    let (header, block) = header_of(upstream, network, hash, &text).await?;
    Ok(Some((header, block.total_difficulty)))
}

/// Fetches a block by its hash; `None` if the upstream has no such block. The header has this hash; transactions and uncles are not
/// checked against the header yet.
///
/// # Errors
/// The upstream returned no result, or something else than this block.
pub async fn fetch_block(
    upstream: &dyn Upstream,
    network: &Network,
    hash: B256,
) -> Result<Option<Block>, FetchError> {
    match block_text(upstream, hash, true).await? {
        Some(text) => block_of(upstream, network, hash, &text).await.map(Some),
        None => Ok(None),
    }
}

/// The block that the upstream sent for this hash; checked as in [`fetch_block`].
pub(super) async fn block_of(
    upstream: &dyn Upstream,
    network: &Network,
    hash: B256,
    text: &RawValue,
) -> Result<Block, FetchError> {
    let (header, block) = header_of(upstream, network, hash, text).await?;
    if block.uncles.len() > MAX_UNCLES {
        return Err(FetchError::TooManyUncles { hash, found: block.uncles.len() });
    }
    whole_block(upstream, network, header.number, header, block).await
}

/// A block by its hash, as the upstream sends it; `None` if it has no such block.
async fn block_text(
    upstream: &dyn Upstream,
    hash: B256,
    full: bool,
) -> Result<Option<Box<RawValue>>, FetchError> {
    let request = call("eth_getBlockByHash", json!([hash.to_string(), full]));
    match upstream.request(vec![request]).await.into_iter().next() {
        Some(Ok(text)) => Ok(Some(text).filter(|text| text.get() != "null")),
        // A recording has only the blocks that were requested while it was made. `None` is not reached: an upstream returns a result
        // for each request.
        Some(Err(UpstreamError::NotRecorded(_))) | None => Ok(None),
        Some(Err(error)) => Err(FetchError::UpstreamByHash { hash, error }),
    }
}

/// The header of a block that was requested by this hash.
async fn header_of(
    upstream: &dyn Upstream,
    network: &Network,
    hash: B256,
    text: &RawValue,
) -> Result<(SealedHeader, JsonBlock), FetchError> {
    let raw = call("rsk_getRawBlockHeaderByHash", json!([hash.to_string()]));
    let (header, block) = whole_header(upstream, network, (number_in(text), Some(hash)), text, raw).await?;
    match header.hash() == hash {
        true => Ok((header, block)),
        false => Err(FetchError::OtherHash { hash, found: header.hash() }),
    }
}

/// Completes a block with its uncles' headers. Each uncle has the hash that the block's JSON states; the list is not checked against the
/// header yet.
pub(super) async fn whole_block(
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

/// Builds the header from the block's JSON, with the hash it must have if that is known. If the JSON omits header fields, the raw header
/// is fetched with `raw`; its hash is not compared with `hash`, which is left to the caller.
pub(super) async fn whole_header(
    upstream: &dyn Upstream,
    network: &Network,
    (number, hash): (u64, Option<B256>),
    text: &RawValue,
    raw: UpstreamRequest,
) -> Result<(SealedHeader, JsonBlock), FetchError> {
    let shape_of = |number| network.header_shape(number);
    // The raw header replaces a header that the JSON does not state completely.
    let incomplete = match block_from_json(text.get(), hash, &shape_of, network.chain_id) {
        Ok(block) => return Ok((block.header.clone(), block)),
        Err(error) => error,
    };
    let raw = match upstream.request(vec![raw]).await.into_iter().next() {
        Some(Ok(raw)) => raw,
        _ => return Err(FetchError::Block { number, error: incomplete }),
    };
    let failed = |error| FetchError::Block { number, error };
    let header = raw_header(raw.get(), text.get(), network).map_err(|_| failed(incomplete))?;
    let body = block_with_header(text.get(), header.clone(), network.chain_id);
    Ok((header, body.map_err(failed)?))
}

/// Fetches the headers of a block's uncles, whose hashes the block states.
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
    // An upstream returns a result for each request, so there are as many results as hashes.
    for (result, hash) in upstream.request(calls).await.into_iter().zip(hashes) {
        let text = text_of(number, result)?;
        let uncle = header_from_json(text.get(), Some(*hash), &|number| network.header_shape(number));
        uncles.push(uncle.map_err(|error| FetchError::Block { number, error })?.into_header());
    }
    Ok(uncles)
}

/// The JSON of a response to a request for the block of this number.
pub(super) fn text_of(number: u64, result: UpstreamResult) -> Result<Box<RawValue>, FetchError> {
    result.map_err(|error| FetchError::Upstream { number, error })
}

/// The number that a block states, for error messages; 0 if it states none.
fn number_in(text: &RawValue) -> u64 {
    #[derive(Deserialize)]
    struct Numbered {
        number: Box<RawValue>,
    }
    let stated = serde_json::from_str::<Numbered>(text.get()).ok();
    stated.and_then(|block| parse_quantity(&block.number)).unwrap_or_default()
}
