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

/// Blocks whose traces are asked for at a time.
const TRACED_AT_ONCE: usize = 8;

/// Once so many bytes of traces are read, later blocks are left for the next call.
const MAX_TRACE_BYTES: usize = 32 * 1024 * 1024;

/// Code of an error that says that a limit is exceeded (EIP-1474).
const LIMIT: i64 = -32005;

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

/// For each block (its hash and the hashes of its uncles): the uncles' headers, or `None` if the upstream does not show all.
pub(super) async fn uncles(
    upstream: &dyn Upstream,
    network: &Network,
    blocks: &[(B256, Vec<B256>)],
) -> Vec<Option<Vec<Header>>> {
    let shown = |hashes: &[B256]| if hashes.len() > MAX_UNCLES { 0 } else { hashes.len() };
    let ask = |block: &B256, index: usize| {
        call("eth_getUncleByBlockHashAndIndex", json!([block.to_string(), quantity(index as u64)]))
    };
    let asked: Vec<UpstreamRequest> = blocks
        .iter()
        .flat_map(|(block, hashes)| (0..shown(hashes)).map(move |index| ask(block, index)))
        .collect();
    let answers = if asked.is_empty() { Vec::new() } else { upstream.request(asked).await };
    let mut answers = answers.into_iter();
    let mut all = Vec::new();
    for (_, hashes) in blocks {
        let mut uncles = (hashes.len() <= MAX_UNCLES).then(Vec::new);
        for (answer, hash) in answers.by_ref().take(shown(hashes)).zip(hashes) {
            let uncle = match answer {
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

/// The header of an uncle. JSON does not show everything that its hash covers, so it may be fetched raw.
async fn uncle(upstream: &dyn Upstream, network: &Network, text: &str, hash: &B256) -> Option<Header> {
    if let Ok(header) = header_from_json(text, Some(*hash), &|number| network.header_shape(number)) {
        return Some(header.into_header());
    }
    let raw = call("rsk_getRawBlockHeaderByHash", json!([hash.to_string()]));
    let raw = upstream.request(vec![raw]).await.into_iter().next()?.ok()?;
    raw_header(raw.get(), text, network).ok().map(SealedHeader::into_header)
}

/// Adds traces to blocks. If the traces are long, only the first blocks are returned.
pub(super) async fn add_traces(
    upstream: &dyn Upstream,
    mut blocks: Vec<SourceBlock>,
) -> Result<Vec<SourceBlock>, TracesFailure> {
    let (mut bytes, mut done) = (0_usize, 0_usize);
    for part in blocks.chunks_mut(TRACED_AT_ONCE) {
        if bytes > MAX_TRACE_BYTES {
            break;
        }
        for block in part.iter_mut() {
            // Blocks without transactions have no traces.
            block.traces = block.block.transactions().is_empty().then(BlockTraces::empty);
        }
        let count = part.len();
        let with_transactions: Vec<&mut SourceBlock> =
            part.iter_mut().filter(|block| block.traces.is_none()).collect();
        let ask =
            |block: &&mut SourceBlock| call("trace_block", json!([block.block.header().hash().to_string()]));
        let asked: Vec<UpstreamRequest> = with_transactions.iter().map(ask).collect();
        let answers = if asked.is_empty() { Vec::new() } else { upstream.request(asked).await };
        for (block, answer) in with_transactions.into_iter().zip(answers) {
            let traces = match answer {
                Err(UpstreamError::Rpc { code: LIMIT, .. } | UpstreamError::TooLarge(_)) => {
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
