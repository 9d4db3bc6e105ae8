//! The options of `createProvider`, as JSON.

use std::sync::Arc;

use alloy_primitives::{B256, U256};
use rootlight::consensus::{Checkpoint, Network, checkpoint};
use rootlight::light::{MAX_AGE, SyncOptions, Unproven};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::host::moment;

/// Milliseconds between two checks for new blocks; a block comes every 25 to 30 seconds.
const POLL: u64 = 10_000;

/// Least pause between two checks, in milliseconds.
const LEAST_POLL: u64 = 100;

/// Most requests in one exchange: the batch limit of the reference node.
const BATCH: usize = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Options<'a> {
    #[serde(borrow)]
    network: &'a RawValue,
    #[serde(borrow)]
    checkpoint: Option<&'a RawValue>,
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
        // The parser takes no digits as 0 and skips underscores.
        let number = |text: &str| {
            let digits = text.strip_prefix("0x").unwrap_or(text);
            let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            text.parse::<U256>().ok().filter(|_| valid)
        };
        let total_difficulty = match self.total_difficulty {
            Some(text) => Some(number(text).ok_or("checkpoint.totalDifficulty: not a number")?),
            None => None,
        };
        Ok(Checkpoint { number: self.number, hash, total_difficulty })
    }
}

/// The block at which a client starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Start {
    /// A trusted block.
    At(Checkpoint),
    /// A block that is accepted for the work above it. No block is trusted.
    #[cfg(feature = "work-start")]
    Work(rootlight::consensus::WorkStart),
}

/// The settings of a client.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) network: Arc<Network>,
    pub(crate) start: Start,
    pub(crate) poll_millis: u64,
    pub(crate) batch: usize,
    pub(crate) min_depth: u64,
    pub(crate) max_age: u64,
    pub(crate) min_work: u64,
    pub(crate) unproven: Unproven,
    names: Vec<String>,
}

impl Config {
    /// Reads the options. The error names the wrong option and the reason.
    pub(crate) fn read(json: &str) -> Result<Self, String> {
        let options: Options<'_> = serde_json::from_str(json).map_err(|e| format!("options: {e}"))?;
        let network = network(options.network.get())?;
        let min_work = options.min_work.unwrap_or(SyncOptions::default().work_floor);
        if min_work > 100 {
            return Err("minWork: a percentage, at most 100".into());
        }
        let start = start(options.checkpoint.map(RawValue::get), &network, min_work)?;
        let unproven = options.unproven.map_or(Ok(Unproven::default()), str::parse);
        Ok(Self {
            network: Arc::new(network),
            start,
            poll_millis: options.poll_millis.map_or(POLL, |pause| pause.max(LEAST_POLL)),
            batch: options.batch.unwrap_or(BATCH).max(1),
            min_depth: options.min_depth.unwrap_or(0),
            max_age: options.max_age.unwrap_or(MAX_AGE),
            min_work,
            unproven: unproven.map_err(|e| format!("unproven: {e}"))?,
            names: options.names,
        })
    }

    /// Checks that there are enough upstreams for the options. The error is the reason, in words.
    pub(crate) fn check(&self, upstreams: usize) -> Result<(), String> {
        match self.unproven {
            _ if upstreams == 0 => Err("upstream: at least one is needed".into()),
            Unproven::Quorum(count) if upstreams < count => {
                Err(format!("unproven: quorum:{count} needs {count} upstreams, {upstreams} given"))
            }
            _ => Ok(()),
        }
    }

    /// A name for each upstream: the host's name, by which a quorum distinguishes owners, or a number.
    pub(crate) fn names(&self, count: usize) -> Vec<String> {
        let name = |index| self.names.get(index).cloned().unwrap_or_else(|| format!("upstream {index}"));
        (0..count).map(name).collect()
    }
}

/// The network with this name, or the one that a JSON object describes in the format of network files.
fn network(option: &str) -> Result<Network, String> {
    match option.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(name) => Network::by_name(name).ok_or_else(|| format!("network: '{name}' is not known")),
        None if cfg!(feature = "networks") => Network::from_json(option).map_err(|e| format!("network: {e}")),
        None => Err("network: give a name".into()),
    }
}

/// The start: the chain that upstreams prove for `"work"`, the given block, or the newest built-in checkpoint.
fn start(option: Option<&str>, network: &Network, min_work: u64) -> Result<Start, String> {
    Ok(match option {
        None => Start::At(newest(network)?),
        Some(r#""work""#) if !cfg!(feature = "work-start") => {
            return Err(
                "checkpoint: 'work' is not in this module: use createProvider of rootlight/index.js".into()
            );
        }
        Some(r#""work""#) if min_work == 0 => {
            return Err("checkpoint: 'work' needs a floor of work: minWork above 0".into());
        }
        #[cfg(feature = "work-start")]
        Some(r#""work""#) => Start::Work(network.start_by_work().map_err(|e| format!("checkpoint: {e}"))?),
        Some(block) => {
            let block: CheckpointOption<'_> = serde_json::from_str(block)
                .map_err(|e| format!("checkpoint: {e}: give {{number, hash}} or 'work'"))?;
            Start::At(block.read()?)
        }
    })
}

/// The newest built-in checkpoint, or genesis if there is none. An error if the checkpoint is too old.
fn newest(network: &Network) -> Result<Checkpoint, String> {
    let newest = checkpoint::newest(network, moment().unix).map_err(|e| format!("checkpoint: {e}"))?;
    let genesis = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    Ok(newest.unwrap_or(genesis))
}
