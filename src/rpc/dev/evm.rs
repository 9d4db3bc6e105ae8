//! Snapshots, time and mining: `evm_*` and anvil's names for the same methods.

use alloc::{boxed::Box, string::String, vec::Vec};

use alloy_primitives::U256;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use super::{brief, chain, chain_at, number, optional_u64_param, quantity, u64_param, unit, write};
use crate::{
    dev::{DevError, MAX_BLOCKS_AT_ONCE, Mining, Spacing},
    engine::{Level, LocalNode},
    rpc::{
        error::{ParamError, RpcError},
        limits::MAX_RESPONSE,
        method::{Failure, HandlerResult, Method, done, optional, required},
        params::{Params, parse_data},
        render,
    },
};

/// Most blocks of `evm_mine_detailed`. An empty block takes 3 KB of the answer, and an answer has at most [`MAX_RESPONSE`]
/// bytes (10 MiB).
const MOST_DETAILED: u64 = 2_000;

pub(super) const METHODS: &[Method] = &[
    write(
        ("evm_snapshot", &["anvil_snapshot"]),
        &[],
        "QUANTITY",
        "Takes a snapshot of the chain and returns its number, from 1 on.",
        |node, _| done(&quantity(chain(node)?.save().map_err(RpcError::from)?), Level::Local),
    ),
    write(
        ("evm_revert", &["anvil_revert"]),
        &[required("snapshotId", "QUANTITY")],
        "boolean",
        "Reverts to a snapshot, which stays. Removes later ones, empties the pool. False if unknown.",
        revert,
    ),
    write(
        ("evm_reset", &["anvil_reset", "hardhat_reset"]),
        &[optional("options", "object")],
        "null",
        "Reverts to block 0 and removes all snapshots. With {forking: {jsonRpcUrl, blockNumber}} a fork begins again there.",
        reset,
    ),
    brief(write(
        ("evm_mine", &[]),
        &[optional("options", "QUANTITY or {timestamp, blocks}")],
        "null",
        "Mines one block or the given number of blocks; the first may have a given timestamp, for which 0 stands for none.",
        |node, params| {
            mine(node, params, MAX_BLOCKS_AT_ONCE)?;
            done(&(), Level::Local)
        },
    )),
    write(
        ("evm_mine_detailed", &["anvil_mine_detailed", "evm_mineDetailed", "anvil_mineDetailed"]),
        &[optional("options", "QUANTITY or {timestamp, blocks}")],
        "array of block objects",
        "As evm_mine, with the mined blocks and their transactions; at most 2,000 blocks.",
        mine_detailed,
    ),
    write(
        ("evm_increaseTime", &["anvil_increaseTime"]),
        &[required("seconds", "QUANTITY")],
        "QUANTITY",
        "Moves the clock ahead, from the newest block if that is later, and returns the seconds by which it is ahead of the real time.",
        increase_time,
    ),
    write(
        ("evm_startMining", &["miner_start"]),
        &[],
        "null",
        "Resumes mining as before evm_stopMining.",
        |node, _| {
            let (chain, now) = chain_at(node)?;
            chain.resume(now).map_err(RpcError::from)?;
            done(&(), Level::Local)
        },
    ),
    write(
        ("evm_stopMining", &["miner_stop"]),
        &[],
        "null",
        "Mines on demand only, until evm_startMining.",
        |node, _| {
            chain(node)?.pause();
            done(&(), Level::Local)
        },
    ),
    write(
        ("evm_setNextBlockTimestamp", &["anvil_setNextBlockTimestamp"]),
        &[required("timestamp", "QUANTITY, seconds")],
        "null",
        "Sets the timestamp of the next block; the clock continues from it.",
        |node, params| {
            let time = u64_param(params, 0)?;
            let chain = chain(node)?;
            let parent = chain.view().head().timestamp;
            chain.change_clock(|clock| clock.set_next(time, parent)).map_err(RpcError::from)?;
            done(&(), Level::Local)
        },
    ),
    write(
        ("evm_setTime", &["anvil_setTime"]),
        &[required("time", "QUANTITY, seconds")],
        "JSON integer",
        "Sets the clock and returns the seconds by which it is ahead of the real time.",
        |node, params| {
            let time = u64_param(params, 0)?;
            let (chain, now) = chain_at(node)?;
            let ahead = chain.change_clock(|clock| clock.set(time, now)).map_err(RpcError::from)?;
            // 0 also stands for a clock that is behind the real time.
            done(&u64::try_from(ahead).unwrap_or(0), Level::Local)
        },
    ),
    write(
        ("anvil_setBlockTimestampInterval", &[]),
        &[required("seconds", "QUANTITY")],
        "null",
        "Sets a fixed number of seconds between blocks, independent of the clock.",
        |node, params| {
            let seconds = u64_param(params, 0)?;
            chain(node)?.clock_mut().set_interval(Some(seconds));
            done(&(), Level::Local)
        },
    ),
    // The client library viem calls this method, in milliseconds.
    write(
        ("hardhat_setBlockTimestampInterval", &[]),
        &[required("milliseconds", "QUANTITY")],
        "null",
        "As anvil_setBlockTimestampInterval, in milliseconds, rounded up to seconds.",
        |node, params| {
            let seconds = u64_param(params, 0)?.div_ceil(1000);
            chain(node)?.clock_mut().set_interval(Some(seconds));
            done(&(), Level::Local)
        },
    ),
    write(
        ("anvil_removeBlockTimestampInterval", &["hardhat_removeBlockTimestampInterval"]),
        &[],
        "boolean",
        "Lets the clock determine the timestamps of blocks again.",
        |node, _| {
            chain(node)?.clock_mut().set_interval(None);
            done(&true, Level::Local)
        },
    ),
    write(
        ("evm_setAutomine", &[]),
        &[required("enabled", "boolean")],
        "boolean",
        "Turns instant mining on, or off to mine on demand only.",
        set_automine,
    ),
    write(
        ("anvil_setAutomine", &[]),
        &[required("enabled", "boolean")],
        "null",
        "As evm_setAutomine.",
        |node, params| unit(set_automine(node, params)),
    ),
    write(
        ("evm_setIntervalMining", &[]),
        &[required("milliseconds", "QUANTITY")],
        "boolean",
        "Mines a block at an interval in milliseconds, rounded up to seconds; 0 mines on demand only.",
        |node, params| set_mining(node, every(u64_param(params, 0)?.div_ceil(1000))),
    ),
    write(
        ("anvil_setIntervalMining", &[]),
        &[required("seconds", "QUANTITY")],
        "null",
        "Mines a block at an interval in seconds; 0 mines on demand only.",
        |node, params| unit(set_mining(node, every(u64_param(params, 0)?))),
    ),
    write(
        ("evm_setBlockGasLimit", &["anvil_setBlockGasLimit"]),
        &[required("gasLimit", "QUANTITY")],
        "boolean",
        "Sets the gas limit that blocks approach, by at most 1/1,024 per block as the rules demand. Transactions may use it at once.",
        |node, params| {
            let limit = u64_param(params, 0)?;
            chain(node)?.miner_settings_mut().gas_limit = limit;
            done(&true, Level::Local)
        },
    ),
];

/// Mining at an interval; 0 mines on demand only.
const fn every(seconds: u64) -> Mining {
    if seconds == 0 { Mining::Manual } else { Mining::Interval(seconds) }
}

fn set_automine(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    // The parameter is required, so that its default (`true`) is never used.
    let mining = if params.boolean(0, true)? { Mining::Instant } else { Mining::Manual };
    set_mining(node, mining)
}

fn set_mining(node: &mut dyn LocalNode, mining: Mining) -> HandlerResult {
    let (chain, now) = chain_at(node)?;
    chain.set_mining(mining, now).map_err(RpcError::from)?;
    done(&true, Level::Local)
}

/// The options object of `hardhat_reset` and `anvil_reset`.
#[derive(Deserialize)]
struct ResetOptions<'a> {
    #[serde(borrow, default)]
    forking: Option<Forking<'a>>,
}

/// The block of another network on which a fork begins again.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Forking<'a> {
    #[serde(default)]
    json_rpc_url: Option<String>,
    #[serde(borrow, default)]
    block_number: Option<&'a RawValue>,
}

fn reset(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let options = params.object::<ResetOptions<'_>>(0, "reset options")?;
    let is_fork = chain(node)?.view().fork().is_some();
    // The client library viem sends the member `forking` without URL and number if its caller gives neither. Then a chain that
    // is no fork is reset to its block 0.
    let names = |forking: &Forking<'_>| forking.json_rpc_url.is_some() || forking.block_number.is_some();
    let forking = options.and_then(|options| options.forking).filter(|forking| is_fork || names(forking));
    let Some(forking) = forking else {
        chain(node)?.reset();
        return done(&(), Level::Local);
    };
    let block = forking.block_number.map(number).transpose()?;
    let block = block.map(|block| u64::try_from(block).unwrap_or(u64::MAX));
    chain(node)?.reset_to(forking.json_rpc_url.as_deref(), block).map_err(RpcError::from)?;
    done(&(), Level::Local)
}

fn revert(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let text: String = params.text(0);
    let bad = || ParamError::SnapshotId(text.clone());
    let digits = text.strip_prefix("0x").ok_or_else(bad)?;
    let bytes = parse_data(digits).map_err(|_| bad())?;
    let id = U256::try_from_be_slice(&bytes).ok_or_else(bad)?;
    if digits.is_empty() {
        return Err(bad().into());
    }
    // No snapshot has the number 0.
    let id = u64::try_from(id).unwrap_or(0);
    done(&chain(node)?.revert(id), Level::Local)
}

fn increase_time(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let seconds = params.number(0).ok().and_then(|seconds| u64::try_from(seconds).ok());
    let seconds = seconds.ok_or_else(|| ParamError::Seconds(params.text(0)))?;
    let (chain, now) = chain_at(node)?;
    let parent = chain.view().head().timestamp;
    let ahead = chain.change_clock(|clock| clock.increase(seconds, parent, now)).map_err(RpcError::from)?;
    // 0 also stands for a clock that is behind the real time.
    done(&quantity(u64::try_from(ahead).unwrap_or(0)), Level::Local)
}

/// The options object of `evm_mine`, which also accepts a number.
#[derive(Deserialize)]
struct MineOptions<'a> {
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    blocks: Option<&'a RawValue>,
}

fn mine_detailed(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    // If the blocks are too long for an answer, the chain is as it was before.
    let before = chain(node)?.begin();
    let blocks = mine(node, params, MOST_DETAILED).and_then(|first| blocks_from(node, first));
    chain(node)?.end(before, blocks.is_ok());
    done(&blocks?, Level::Local)
}

/// The block objects from a height on, or an error if they are too long for an answer.
fn blocks_from(node: &mut dyn LocalNode, first: u64) -> Result<Vec<Box<RawValue>>, Failure> {
    // The blocks are stored: no code runs that would have to be interrupted.
    let (snapshot, interrupt) = (node.snapshot(), || false);
    let view = snapshot.view(node.now(), &interrupt);
    let (mut blocks, mut size) = (Vec::new(), "[]".len());
    for number in first..=view.head()?.number {
        if let Some(header) = view.header_by_number(number)? {
            // `true`: with whole transactions.
            let block = to_raw_value(&render::block(&*view, &header, true)?)?;
            size = size.saturating_add(block.get().len()).saturating_add(",".len());
            if size > MAX_RESPONSE {
                return Err(RpcError::ResponseSize(MAX_RESPONSE).into());
            }
            blocks.push(block);
        }
    }
    Ok(blocks)
}

/// Mines as many blocks as the options say, at most `most`, and returns the height of the first one.
fn mine(node: &mut dyn LocalNode, params: Params<'_>, most: u64) -> Result<u64, Failure> {
    let (timestamp, blocks) = match params.object::<MineOptions<'_>>(0, "mining options") {
        Ok(Some(options)) => {
            let read = |raw: Option<&RawValue>| raw.map(number).transpose();
            (read(options.timestamp)?, read(options.blocks)?.unwrap_or(U256::from(1)))
        }
        // Missing, or no object: then the parameter is the timestamp, and anything but a number is an error.
        _ => (optional_u64_param(params, 0)?.map(U256::from), U256::from(1)),
    };
    let count = u64::try_from(blocks).unwrap_or(u64::MAX);
    if count > most {
        return Err(RpcError::from(DevError::TooManyBlocks { count, most }).into());
    }
    let (chain, now) = chain_at(node)?;
    let first = chain.view().head().number.saturating_add(1);
    let mined = chain.change_atomically(|chain| {
        // As for hardhat, 0 stands for no timestamp: no block can have it.
        if let Some(timestamp) = timestamp.filter(|timestamp| !timestamp.is_zero()) {
            let parent = chain.view().head().timestamp;
            let time = u64::try_from(timestamp).unwrap_or(u64::MAX);
            chain.change_clock(|clock| clock.set_next(time, parent))?;
        }
        chain.mine_many(count, Spacing::Clock, now)
    });
    mined.map_err(RpcError::from)?;
    Ok(first)
}
