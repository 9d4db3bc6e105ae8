//! The requests to the node at the start of a sidecar: its network, a block to start from, and whether the store belongs to the node.

use std::time::Duration;

use rootlight::consensus::{Checkpoint, Network};
use rootlight::types::{B256, U256};
use rootlight_upstream::{SharedUpstream, UpstreamError, call, quantity};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tracing::{info, warn};

use super::{NodeStore, SidecarError};

/// Pause after the first request that the node does not answer; the pause doubles up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// Longest pause between two requests to a node that does not answer.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// The fields of a block's JSON that the start needs.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StartBlock {
    hash: B256,
    state_root: B256,
    total_difficulty: Option<U256>,
}

/// The block to start from, `depth` blocks below the node's head.
///
/// # Errors
/// The node is on another network, or the store is not the node's.
pub(super) async fn checkpoint(
    network: &Network,
    node: &SharedUpstream,
    store: &dyn NodeStore,
    depth: u64,
) -> Result<Checkpoint, SidecarError> {
    let found: Option<U256> = ask(node, "eth_chainId", json!([])).await?;
    // An id of more than 64 bits is that of no network.
    let found = found.map(|id| u64::try_from(id).unwrap_or(u64::MAX)).filter(|id| *id != network.chain_id);
    if let Some(found) = found {
        let (network, expected) = (network.name.clone(), network.chain_id);
        return Err(SidecarError::ChainId { network, expected, found });
    }
    if let Some(genesis) = block(node, 0).await?.filter(|genesis| genesis.hash != network.genesis_hash) {
        let (network, expected) = (network.name.clone(), network.genesis_hash);
        return Err(SidecarError::Genesis { network, expected, found: genesis.hash });
    }
    let head: Option<U256> = ask(node, "eth_blockNumber", json!([])).await?;
    let head = head.and_then(|head| u64::try_from(head).ok()).ok_or_else(|| unusable("eth_blockNumber"))?;
    check_store(node, store, head).await?;
    let number = head.saturating_sub(depth);
    let start = block(node, number).await?.ok_or_else(|| unusable("eth_getBlockByNumber"))?;
    Ok(Checkpoint { number, hash: start.hash, total_difficulty: start.total_difficulty })
}

/// Checks that the store has the state of one of several blocks of the node's chain. The states of the newest blocks may not be on disk
/// yet, and those of old blocks may have been deleted.
async fn check_store(node: &SharedUpstream, store: &dyn NodeStore, head: u64) -> Result<(), SidecarError> {
    let mut asked: Vec<u64> =
        [0, 250, 1_000, 2_000, 5_000, 20_000, 100_000].map(|below| head.saturating_sub(below)).into();
    asked.extend([head / 2, 1]);
    asked.dedup();
    for number in &asked {
        if block(node, *number).await?.is_some_and(|block| store.node(&block.state_root).is_some()) {
            info!("the node's store has the state of block {number}");
            return Ok(());
        }
    }
    let asked: Vec<String> = asked.iter().map(u64::to_string).collect();
    Err(SidecarError::ForeignStore(asked.join(", ")))
}

/// The error of a block that the node does not have.
fn unusable(method: &'static str) -> SidecarError {
    SidecarError::Node { method, reason: "there is no such block".into() }
}

/// A block of the node's chain; `None` if it has none at this height.
async fn block(node: &SharedUpstream, number: u64) -> Result<Option<StartBlock>, SidecarError> {
    ask(node, "eth_getBlockByNumber", json!([quantity(number), false])).await
}

/// Asks the node until it answers. `None` if the result is `null`, or if a recording does not have it.
async fn ask<T: DeserializeOwned>(
    node: &SharedUpstream,
    method: &'static str,
    params: Value,
) -> Result<Option<T>, SidecarError> {
    let mut pause = FIRST_PAUSE;
    loop {
        let error = match node.request(vec![call(method, params.clone())]).await.pop() {
            Some(Ok(raw)) => {
                let read = serde_json::from_str(raw.get());
                return read.map_err(|error| SidecarError::Node { method, reason: error.to_string() });
            }
            Some(Err(UpstreamError::NotRecorded(_))) => return Ok(None),
            Some(Err(error @ UpstreamError::Rpc { .. })) => {
                return Err(SidecarError::Node { method, reason: error.to_string() });
            }
            Some(Err(error)) => error.to_string(),
            None => "no response".into(),
        };
        warn!("{}: {error}; asking again in {:.1} s", node.name(), pause.as_secs_f64());
        tokio::time::sleep(pause).await;
        pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
    }
}
