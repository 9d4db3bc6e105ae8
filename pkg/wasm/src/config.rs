//! The options of `createProvider`, as `settings` in `pkg/connect.js` passes them to the module.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::U256;
use js_sys::Reflect;
use rootlight::consensus::{Checkpoint, Network, WorkStart, checkpoint};
use rootlight::light::{MAX_AGE, SyncOptions, UnprovenPolicy};
use wasm_bindgen::JsValue;

use crate::host::clock;
use crate::options::OptionMembers;

/// Milliseconds between two checks for new blocks; a block comes every 25 to 30 seconds.
const POLL: u64 = 10_000;

/// Least pause between two checks, in milliseconds: bounds each upstream to ten checks a second.
const LEAST_POLL: u64 = 100;

/// Most requests in one exchange: the batch limit of the reference node.
const BATCH: usize = 50;

/// The names of the options.
const OPTIONS: [&str; 10] = [
    "network",
    "checkpoint",
    "pollMillis",
    "batch",
    "batchLimit",
    "minDepth",
    "maxAge",
    "minWork",
    "unproven",
    "names",
];

/// The name of the start by window.
const WINDOW: &str = "window";

/// The name of the start at the newest built-in checkpoint.
const BUILT_IN: &str = "built-in";

/// The names of a checkpoint's members. `shown` is set by `pkg/first-block.js` for the block 0 that the upstreams show.
const BLOCK: [&str; 4] = ["number", "hash", "totalDifficulty", "shown"];

/// The block at which a client starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClientStart {
    /// A trusted block.
    At(Checkpoint),
    /// A block that is accepted for the work above it. No block is trusted.
    Work(WorkStart),
    /// As [`Self::Work`], but its headers are stored.
    Window(WorkStart),
}

/// The settings of a client.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) network: Arc<Network>,
    pub(crate) start: ClientStart,
    /// Whether the upstreams have shown the block at which the client starts.
    pub(crate) shown_start: bool,
    /// Milliseconds between two checks for new blocks.
    pub(crate) poll_millis: u64,
    /// Most requests in one exchange with an upstream.
    pub(crate) batch: usize,
    /// Most calls in one batch of a caller.
    pub(crate) batch_limit: usize,
    /// Least number of blocks on top of a block about which the client answers.
    pub(crate) min_depth: u64,
    /// Greatest age of the newest verified block, in seconds, at which the client answers; 0 accepts any.
    pub(crate) max_age: u64,
    /// Least share of the promised work, in percent, that a stretch of the chain must show.
    pub(crate) min_work: u64,
    /// What to answer where no upstream gives a proof.
    pub(crate) unproven: UnprovenPolicy,
    /// The names of the upstreams, in their order.
    names: Vec<String>,
}

impl Config {
    /// The settings of synchronization.
    pub(crate) fn sync_options(&self) -> SyncOptions {
        SyncOptions {
            poll: self.poll_millis,
            // One round of synchronization fills all exchanges that run at the same time (`PARALLEL` in `queue.rs`).
            batch: self.batch.saturating_mul(4),
            work_floor: self.min_work,
            shown_start: self.shown_start,
            ..SyncOptions::default()
        }
    }

    /// Reads the options. The error names the wrong option and the reason.
    pub(crate) fn read(options: &JsValue) -> Result<Self, String> {
        let options = OptionMembers::of(options, "options", &OPTIONS)?;
        let network = network(&options.text("network")?.unwrap_or_default())?;
        let min_work = options.number("minWork")?.unwrap_or(SyncOptions::default().work_floor);
        if min_work > 100 {
            return Err("minWork: a percentage, at most 100".into());
        }
        let checkpoint = options.raw("checkpoint");
        let start = start(&checkpoint, &network, min_work)?;
        let shown_start = Reflect::get(&checkpoint, &"shown".into()).is_ok_and(|shown| shown.is_truthy());
        let unproven = options.text("unproven")?.map_or(Ok(UnprovenPolicy::default()), |text| text.parse());
        let batch = options.number("batch")?.and_then(|batch| batch.try_into().ok());
        Ok(Self {
            network: Arc::new(network),
            start,
            shown_start,
            poll_millis: options.number("pollMillis")?.map_or(POLL, |pause| pause.max(LEAST_POLL)),
            batch: batch.unwrap_or(BATCH).max(1),
            batch_limit: options.batch_limit()?,
            min_depth: options.number("minDepth")?.unwrap_or(0),
            max_age: options.number("maxAge")?.unwrap_or(MAX_AGE),
            min_work,
            unproven: unproven.map_err(|e| format!("unproven: {e}"))?,
            names: options.texts("names")?,
        })
    }

    /// Checks that there are enough upstreams for the options. The error is the reason, in words.
    pub(crate) fn check(&self, upstreams: usize) -> Result<(), String> {
        match self.unproven {
            _ if upstreams == 0 => Err("upstream: at least one is needed".into()),
            UnprovenPolicy::Quorum(count) if upstreams < count => {
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

/// The network with this name. Modules for tests and measurements also take a JSON object that describes a network, in the format of
/// network files.
fn network(option: &str) -> Result<Network, String> {
    match option.starts_with('{') {
        false => Network::by_name(option).ok_or_else(|| format!("network: '{option}' is not known")),
        true if cfg!(feature = "networks") => Network::from_json(option).map_err(|e| format!("network: {e}")),
        true => Err("network: give a name".into()),
    }
}

/// The start: the given block, or the one with this name. By default it is `window`, and `built-in` on networks whose work
/// proves nothing and without a floor of work.
fn start(option: &JsValue, network: &Network, min_work: u64) -> Result<ClientStart, String> {
    let (work, named) = (network.start_by_work(), option.as_string());
    let name = match &named {
        Some(name) => name,
        // An object: a block, which is read below.
        None if !option.is_undefined() && !option.is_null() => "",
        None if work.is_ok() && min_work > 0 => WINDOW,
        None => BUILT_IN,
    };
    let kind = match name {
        BUILT_IN => return newest(network).map(ClientStart::At),
        WINDOW => ClientStart::Window,
        "work" => ClientStart::Work,
        _ => {
            let forms = "give {number, hash}, 'window', 'built-in' or 'work'";
            return block(option).map(ClientStart::At).map_err(|error| format!("{error}: {forms}"));
        }
    };
    if min_work == 0 {
        return Err(
            "checkpoint: a start without a trusted block needs a floor of work: minWork above 0".into()
        );
    }
    work.map(kind).map_err(|e| format!("checkpoint: {e}"))
}

/// The block that a caller gives.
fn block(option: &JsValue) -> Result<Checkpoint, String> {
    let block = OptionMembers::of(option, "checkpoint", &BLOCK)?;
    let hash = block.text("hash")?.ok_or("checkpoint: hash is missing")?;
    let total_difficulty = match block.text("totalDifficulty")? {
        Some(text) => Some(difficulty(&text).ok_or("checkpoint.totalDifficulty: not a number")?),
        None => None,
    };
    Ok(Checkpoint {
        number: block.number("number")?.ok_or("checkpoint: number is missing")?,
        hash: hash.parse().map_err(|e| format!("checkpoint.hash: {e}"))?,
        total_difficulty,
    })
}

/// A total difficulty, decimal or `0x` hexadecimal; `None` if the text is neither.
fn difficulty(text: &str) -> Option<U256> {
    // Checked before parsing: the parser reads an empty text as 0 and skips underscores.
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    text.parse().ok().filter(|_| valid)
}

/// The newest built-in checkpoint, or genesis if there is none. An error if the checkpoint is too old.
fn newest(network: &Network) -> Result<Checkpoint, String> {
    let newest = checkpoint::newest(network, clock().unix).map_err(|e| format!("checkpoint: {e}"))?;
    let genesis = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    Ok(newest.unwrap_or(genesis))
}
