//! Fetches uncles and traces of blocks from an upstream, for the index.

use rootlight::consensus::{MAX_UNCLES, Network};
use rootlight::light::UpstreamRequest;
use rootlight::light::prove::raw_header;
use rootlight::types::json::header_from_json;
use rootlight::types::{B256, Header, SealedHeader};
use rootlight_index::{BlockTraces, SourceBlock, TraceError};
use rootlight_upstream::{Upstream, UpstreamError, call, quantity};
use serde_json::json;
use tracing::debug;

use super::trace_json::TraceObject;

/// Blocks whose traces are requested in one batch.
const BATCH_BLOCKS: usize = 8;

/// Once traces of more bytes are read, no further batch is requested in this call; the number bounds memory.
const MAX_TRACE_BYTES: usize = 32 * 1024 * 1024;

/// JSON-RPC code of an exceeded limit (EIP-1474).
const LIMIT_EXCEEDED: i64 = -32005;

/// Why an upstream gave no usable traces.
#[derive(Debug, thiserror::Error)]
pub(super) enum TracesFailure {
    #[error("traces of block {number}: {error}")]
    Upstream { number: u64, error: UpstreamError },
    #[error("traces of block {0} cannot be read")]
    Malformed(u64),
    #[error(transparent)]
    Trace(#[from] TraceError),
}

/// The headers of the uncles of each block, which is given by its hash and the hashes of its uncles. `None` if the upstream does not
/// return all of them, or if there are more than a block may have.
pub(super) async fn uncles(
    upstream: &dyn Upstream,
    network: &Network,
    blocks: &[(B256, Vec<B256>)],
) -> Vec<Option<Vec<Header>>> {
    let requested = |hashes: &[B256]| if hashes.len() > MAX_UNCLES { 0 } else { hashes.len() };
    let ask = |block: &B256, index: usize| {
        call("eth_getUncleByBlockHashAndIndex", json!([block.to_string(), quantity(index as u64)]))
    };
    let requests: Vec<UpstreamRequest> = blocks
        .iter()
        .flat_map(|(block, hashes)| (0..requested(hashes)).map(move |index| ask(block, index)))
        .collect();
    let responses = if requests.is_empty() { Vec::new() } else { upstream.request(requests).await };
    let mut responses = responses.into_iter();
    let mut all = Vec::new();
    for (_, hashes) in blocks {
        let mut uncles = (hashes.len() <= MAX_UNCLES).then(Vec::new);
        // A response without a usable header makes the list of its block `None`.
        for (response, hash) in responses.by_ref().take(requested(hashes)).zip(hashes) {
            let uncle = match response {
                Ok(text) => uncle(upstream, network, text.get(), hash).await,
                Err(error) => {
                    debug!("uncle {hash}: {error}");
                    None
                }
            };
            match (&mut uncles, uncle) {
                (Some(all), Some(uncle)) => all.push(uncle),
                _ => uncles = None,
            }
        }
        all.push(uncles);
    }
    all
}

/// The header of an uncle, from its JSON if that gives the hash. The JSON of some upstreams lacks fields that the hash covers;
/// then the raw header is requested.
async fn uncle(upstream: &dyn Upstream, network: &Network, text: &str, hash: &B256) -> Option<Header> {
    if let Ok(header) = header_from_json(text, Some(*hash), &|number| network.header_shape(number)) {
        return Some(header.into_header());
    }
    let raw = call("rsk_getRawBlockHeaderByHash", json!([hash.to_string()]));
    let raw = upstream.request(vec![raw]).await.into_iter().next()?.ok()?;
    raw_header(raw.get(), text, network).ok().map(SealedHeader::into_header)
}

/// Adds traces to blocks. If the traces exceed [`MAX_TRACE_BYTES`], only the first blocks are returned.
pub(super) async fn add_traces(
    upstream: &dyn Upstream,
    mut blocks: Vec<SourceBlock>,
) -> Result<Vec<SourceBlock>, TracesFailure> {
    let (mut bytes, mut done) = (0_usize, 0_usize);
    for batch in blocks.chunks_mut(BATCH_BLOCKS) {
        if bytes > MAX_TRACE_BYTES {
            break;
        }
        for block in batch.iter_mut() {
            // Blocks without transactions have no traces.
            block.traces = block.block.transactions().is_empty().then(BlockTraces::empty);
        }
        let count = batch.len();
        let with_transactions: Vec<&mut SourceBlock> =
            batch.iter_mut().filter(|block| block.traces.is_none()).collect();
        let ask =
            |block: &&mut SourceBlock| call("trace_block", json!([block.block.header().hash().to_string()]));
        let requests: Vec<UpstreamRequest> = with_transactions.iter().map(ask).collect();
        let responses = if requests.is_empty() { Vec::new() } else { upstream.request(requests).await };
        for (block, response) in with_transactions.into_iter().zip(responses) {
            let traces = match response {
                // The traces exceed a limit of the upstream or of this client, and would on every attempt.
                Err(UpstreamError::Rpc { code: LIMIT_EXCEEDED, .. } | UpstreamError::TooLarge(_)) => {
                    BlockTraces::too_long()
                }
                Err(error) => {
                    let number = block.block.header().number;
                    return Err(TracesFailure::Upstream { number, error });
                }
                Ok(text) => read(block, text.get())?,
            };
            bytes = bytes.saturating_add(traces.bytes());
            block.traces = Some(traces);
        }
        done = done.saturating_add(count);
    }
    blocks.truncate(done);
    Ok(blocks)
}

/// Reads the traces of a block, and checks that each names the block and one of its transactions.
fn read(block: &SourceBlock, text: &str) -> Result<BlockTraces, TracesFailure> {
    let (number, hash) = (block.block.header().number, block.block.header().hash());
    let malformed = || TracesFailure::Malformed(number);
    let objects: Vec<TraceObject> = serde_json::from_str(text).map_err(|_| malformed())?;
    let mut traces = Vec::new();
    for object in objects {
        let stated = (object.block(), object.transaction());
        let trace = object.into_trace().ok_or_else(malformed)?;
        let index = usize::try_from(trace.transaction).map_err(|_| malformed())?;
        if block.block.hashes().get(index).map(|transaction| (hash, *transaction)) != Some(stated) {
            return Err(malformed());
        }
        traces.push(trace);
    }
    Ok(BlockTraces::check(&block.block, traces)?)
}
