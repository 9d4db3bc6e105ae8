//! The options of `connect`, as JSON.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::consensus::{checkpoint, Checkpoint, Network};
use rootlight::light::{SyncOptions, Unproven, MAX_AGE};
use serde::Deserialize;

use crate::host::moment;

/// Milliseconds between two looks for new blocks: a block comes every 25 to 30 seconds.
const POLL: u64 = 10_000;

/// Least pause between two looks, in milliseconds.
const LEAST_POLL: u64 = 100;

/// Questions in one exchange: the reference node's own limit.
const BATCH: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options<'a> {
    network: &'a str,
    #[serde(borrow)]
    checkpoint: Option<CheckpointOption<'a>>,
    poll_millis: Option<u64>,
    batch: Option<usize>,
    min_depth: Option<u64>,
    max_age: Option<u64>,
    min_work: Option<u64>,
    unproven: Option<&'a str>,
    #[serde(default)]
    names: Vec<String>,
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
    pub(crate) poll_millis: u64,
    pub(crate) batch: usize,
    pub(crate) min_depth: u64,
    pub(crate) max_age: u64,
    pub(crate) min_work: u64,
    pub(crate) unproven: Unproven,
    names: Vec<String>,
}

impl Config {
    /// Reads the options; the reason in words where they are wrong.
    pub(crate) fn read(json: &str) -> Result<Self, String> {
        let options: Options<'_> = serde_json::from_str(json).map_err(|e| format!("options: {e}"))?;
        let network = Network::by_name(options.network)
            .ok_or_else(|| format!("network: '{}' is not known", options.network))?;
        let checkpoint = match options.checkpoint {
            Some(checkpoint) => checkpoint.read()?,
            None => newest(&network)?,
        };
        let unproven = options.unproven.map_or(Ok(Unproven::default()), str::parse);
        Ok(Self {
            network: Arc::new(network),
            checkpoint,
            poll_millis: options.poll_millis.map_or(POLL, |pause| pause.max(LEAST_POLL)),
            batch: options.batch.unwrap_or(BATCH).max(1),
            min_depth: options.min_depth.unwrap_or(0),
            max_age: options.max_age.unwrap_or(MAX_AGE),
            min_work: options.min_work.unwrap_or(SyncOptions::default().work_floor),
            unproven: unproven.map_err(|e| format!("unproven: {e}"))?,
            names: options.names,
        })
    }

    /// Whether so many upstreams are enough for what is asked of them; the reason in words where they are not.
    pub(crate) fn check(&self, upstreams: usize) -> Result<(), String> {
        match self.unproven {
            _ if upstreams == 0 => Err("upstream: at least one is needed".into()),
            Unproven::Quorum(count) if upstreams < count => {
                Err(format!("unproven: quorum:{count} takes {count} upstreams, {upstreams} given"))
            }
            _ => Ok(()),
        }
    }

    /// A name for each upstream: the host's, by which a quorum tells owners apart, else a number.
    pub(crate) fn names(&self, count: usize) -> Vec<String> {
        let name = |index| self.names.get(index).cloned().unwrap_or_else(|| format!("upstream {index}"));
        (0..count).map(name).collect()
    }
}

/// The newest built-in checkpoint, or genesis; the reason in words where it is too old.
fn newest(network: &Network) -> Result<Checkpoint, String> {
    let newest = checkpoint::newest(&network.name, moment().unix).map_err(|e| format!("checkpoint: {e}"))?;
    let genesis = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    Ok(newest.unwrap_or(genesis))
}
