//! The options of `connect`, as JSON.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::consensus::{checkpoint, Checkpoint, Network};
use serde::Deserialize;

/// Seconds between two looks for new blocks: a block comes every 25 to 30 seconds.
const POLL_SECONDS: f64 = 10.0;

/// Questions in one exchange: the reference node's own limit.
const BATCH: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options<'a> {
    network: &'a str,
    #[serde(borrow)]
    checkpoint: Option<CheckpointOption<'a>>,
    poll_seconds: Option<f64>,
    batch: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct CheckpointOption<'a> {
    number: u64,
    hash: &'a str,
    total_difficulty: Option<&'a str>,
}

impl CheckpointOption<'_> {
    fn read(&self) -> Result<Checkpoint, String> {
        let hash: B256 = self.hash.parse().map_err(|e| format!("checkpoint.hash: {e}"))?;
        let total_difficulty: Option<U256> = self
            .total_difficulty
            .map(str::parse)
            .transpose()
            .map_err(|e| format!("checkpoint.totalDifficulty: {e}"))?;
        Ok(Checkpoint { number: self.number, hash, total_difficulty })
    }
}

/// What a client needs to know.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) network: Arc<Network>,
    pub(crate) checkpoint: Checkpoint,
    pub(crate) poll_seconds: f64,
    pub(crate) batch: usize,
}

impl Config {
    /// Reads the options; the reason in words where they are wrong.
    pub(crate) fn read(json: &str) -> Result<Self, String> {
        let options: Options<'_> = serde_json::from_str(json).map_err(|e| format!("options: {e}"))?;
        let network = Network::by_name(options.network)
            .ok_or_else(|| format!("network: '{}' is not known", options.network))?;
        let checkpoint = match options.checkpoint {
            Some(checkpoint) => checkpoint.read()?,
            None => newest(&network),
        };
        Ok(Self {
            network: Arc::new(network),
            checkpoint,
            poll_seconds: options.poll_seconds.filter(|s| *s >= 0.1).unwrap_or(POLL_SECONDS),
            batch: options.batch.unwrap_or(BATCH).max(1),
        })
    }
}

/// The newest built-in checkpoint, or genesis.
fn newest(network: &Network) -> Checkpoint {
    let genesis = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    checkpoint::built_in(&network.name).last().copied().unwrap_or(genesis)
}
