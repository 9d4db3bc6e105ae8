//! Finds block 0 of a development chain. Each development chain has a block 0 of its own, so the client trusts the one that its
//! upstreams show.

use std::time::Duration;

use futures::stream::{FuturesUnordered, StreamExt};
use rootlight::consensus::{Checkpoint, Network};
use rootlight::light::{RequestFailure, UpstreamRequest, prove};
use rootlight::types::SealedHeader;
use rootlight_upstream::{SharedUpstream, UpstreamError};
use tokio::time::{sleep, timeout};

/// Longest wait for each further response, once one upstream has shown its block.
const GRACE: Duration = Duration::from_secs(2);

/// Why there is no block to start at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FirstBlockError {
    /// No upstream shows a block 0; the text names each with its reason.
    #[error("no upstream shows block 0 of a development chain: {0}")]
    None(String),
    /// Two upstreams show different blocks.
    #[error(
        "the upstreams are of different chains: {}, {}; give those of one chain, or its block 0 with --checkpoint",
        shows(.0), shows(.1)
    )]
    Different(Box<(String, Checkpoint)>, Box<(String, Checkpoint)>),
}

/// The part of an error text about one upstream.
fn shows((name, block): &(String, Checkpoint)) -> String {
    format!("{name} shows block 0 {}", block.hash)
}

/// The checkpoint of a client whose upstreams are a development chain: the block 0 that they show. An upstream that does not
/// answer is ignored if another one answers.
///
/// # Errors
/// No upstream shows a block 0, or two show different ones.
pub async fn first_block(
    network: &Network,
    upstreams: &[SharedUpstream],
) -> Result<Checkpoint, FirstBlockError> {
    let mut asked: FuturesUnordered<_> = upstreams
        .iter()
        .map(|upstream| async { (upstream.name(), shown_by(network, upstream).await) })
        .collect();
    let (mut blocks, mut failures) = (Vec::new(), Vec::new());
    loop {
        let next = match blocks.is_empty() {
            true => asked.next().await,
            false => timeout(GRACE, asked.next()).await.unwrap_or_default(),
        };
        match next {
            Some((name, Ok(block))) => blocks.push((name.to_owned(), block)),
            Some((name, Err(reason))) => failures.push(format!("{name}: {reason}")),
            None => break,
        }
    }
    let Some(first) = blocks.first() else { return Err(FirstBlockError::None(failures.join("; "))) };
    match blocks.iter().find(|(_, block)| block.hash != first.1.hash) {
        Some(other) => Err(FirstBlockError::Different(first.clone().into(), other.clone().into())),
        None => Ok(first.1),
    }
}

/// As [`first_block`], for a program that waits: while no upstream shows a block, it asks again after `pause`. `report` gets the first
/// error.
///
/// # Errors
/// Two upstreams show different blocks.
pub async fn awaited_first_block(
    network: &Network,
    upstreams: &[SharedUpstream],
    pause: Duration,
    report: impl FnOnce(&FirstBlockError),
) -> Result<Checkpoint, FirstBlockError> {
    let mut report = Some(report);
    loop {
        match first_block(network, upstreams).await {
            Err(error @ FirstBlockError::None(_)) => {
                if let Some(report) = report.take() {
                    report(&error);
                }
            }
            settled => return settled,
        }
        sleep(pause).await;
    }
}

/// Asks one upstream for a block; `None` if the upstream says that there is none. The error is a text.
pub(super) async fn block_of(
    network: &Network,
    upstream: &SharedUpstream,
    number: u64,
) -> Result<Option<SealedHeader>, String> {
    let request = UpstreamRequest::new("eth_getBlockByNumber", format!(r#"["{number:#x}",false]"#));
    // The reservation lasts until the header is read.
    let (results, _reserved) = upstream.request_reserved(vec![request]).await;
    let result = results.into_iter().next().ok_or("no response")?;
    let block = result.map_err(|error| RequestFailure::from(error).to_string())?;
    if block.get() == "null" {
        return Ok(None);
    }
    let header = prove::header(block.get(), None, network).map_err(|error| error.to_string())?;
    if header.number != number {
        return Err(format!("asked for block {number}, got block {}", header.number));
    }
    Ok(Some(header))
}

/// Refuses an upstream of another network. The chain id is requested anew, because another program may run at the upstream's URL by
/// now ([`of_network`](rootlight_upstream::of_network)).
async fn of_network(network: &Network, upstream: &SharedUpstream) -> Result<(), String> {
    let upstream = rootlight_upstream::of_network(upstream.clone(), network.chain_id);
    let request = UpstreamRequest::new("eth_chainId", "[]".to_owned());
    match upstream.request(vec![request]).await.into_iter().next() {
        // An upstream that states no chain id is judged by its headers.
        None | Some(Ok(_) | Err(UpstreamError::Rpc { .. } | UpstreamError::NotRecorded(_))) => Ok(()),
        Some(Err(error)) => Err(RequestFailure::from(error).to_string()),
    }
}

/// The block that one upstream shows, whose hash is that of its header. The error is a text.
async fn shown_by(network: &Network, upstream: &SharedUpstream) -> Result<Checkpoint, String> {
    of_network(network, upstream).await?;
    let header = block_of(network, upstream, 0).await?;
    let header = header.ok_or("it has no block 0: check that it is a development chain")?;
    // No block is below block 0, so its difficulty is the total difficulty.
    Ok(Checkpoint { number: 0, hash: header.hash(), total_difficulty: Some(header.difficulty.value()) })
}
