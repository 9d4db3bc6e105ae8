//! The miner: coinbase, hash rates, and work for external miners (`mnr_*`). Rootstock is merge-mined: a miner puts the hash of
//! a Rootstock block into the coinbase of a Bitcoin block, and submits the Bitcoin block as proof of work.

use alloc::{string::String, vec::Vec};

use alloy_primitives::{B256, U256, hex};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{address, chain_at, quantity, read, send::hash_text, write};
use crate::{
    consensus::{HeadChange, bitcoin::reversed},
    dev::{DevError, Submission},
    engine::{Chain, Level, LocalNode},
    local::Imported,
    rpc::{
        error::{ParamError, RpcError},
        method::{Failure, HandlerResult, Method, Param, done, required},
        mode::Mode,
        params::Params,
    },
    types::json::Quantity,
};

/// The period in seconds over which the hash rate is measured, as in the reference node.
const RATE_SECONDS: u64 = 3_600;

/// Header of the submitted Bitcoin block.
const HEADER: Param = required("blockHeader", "DATA");
/// Hash of the submitted Bitcoin block, which is not read: it follows from the header.
const HASH: Param = required("blockHash", "HASH");
/// Coinbase transaction of the submitted Bitcoin block.
const COINBASE: Param = required("coinbase", "DATA");

pub(super) const METHODS: &[Method] = &[
    read(
        "eth_coinbase",
        &[],
        "ADDRESS",
        "The account that receives the fees of blocks mined by this node.",
        // The zero address on a chain that this node does not mine.
        |view, _| done(&address(&view.miner().map(|miner| miner.coinbase).unwrap_or_default()), Level::Local),
    ),
    read("eth_mining", &[], "boolean", "Whether this node mines blocks without requests.", |view, _| {
        done(&view.miner().is_some_and(|miner| miner.active), Level::Local)
    }),
    read("eth_hashrate", &[], "QUANTITY", "The hash rate of this node over the last hour.", |view, _| {
        // On a development chain, all blocks count as mined by this node.
        let own = if view.miner().is_some() { hash_rate(view)? } else { U256::ZERO };
        done(&Quantity(own), Level::Local)
    }),
    read(
        "eth_netHashrate",
        &[],
        "JSON integer",
        "The hash rate of all blocks of the last hour, as a number and not as a QUANTITY.",
        |view, _| {
            let number = RawValue::from_string(alloc::format!("{}", hash_rate(view)?))?;
            done(&number, Level::Verified)
        },
    ),
    write(
        ("eth_getWork", &[]),
        &[],
        "array of three HASHes",
        "The hash that the Bitcoin coinbase must contain, 32 zero bytes, and the target.",
        |node, _| {
            let (chain, now) = chain_at(node).map_err(|_| RpcError::NoWork)?;
            let work = chain.work(now).map_err(RpcError::from)?;
            let target = B256::from(work.target);
            done(&[work.mining_hash, B256::ZERO, target].map(|hash| hash_text(&hash)), Level::Local)
        },
    )
    .refused(&[(Mode::Follow, || RpcError::NoWork), (Mode::Light, || RpcError::NoWork)]),
    write(
        ("mnr_getWork", &[]),
        &[],
        "work object",
        "The next block for a merge miner: the hash that the Bitcoin coinbase must contain after RSKBLOCK:.",
        get_work,
    ),
    write(
        ("mnr_submitBitcoinBlock", &[]),
        &[required("bitcoinBlock", "DATA")],
        "submitted block object",
        "Submits a Bitcoin block whose coinbase contains the hash of earlier work.",
        |node, params| {
            let submission = Submission::block(&bytes(params, 0)?).map_err(RpcError::from)?;
            submit(node, &submission)
        },
    ),
    write(
        ("mnr_submitBitcoinBlockTransactions", &[]),
        &[HASH, HEADER, COINBASE, required("transactionHashes", "hashes separated by spaces")],
        "submitted block object",
        "As mnr_submitBitcoinBlock, with the hashes of the Bitcoin block's transactions.",
        |node, params| {
            // Bitcoin displays hashes in reverse byte order.
            let hashes: Vec<B256> = hashes(params, 3)?.iter().map(reversed).collect();
            let submission = Submission::transactions(&bytes(params, 1)?, &bytes(params, 2)?, &hashes);
            submit(node, &submission.map_err(RpcError::from)?)
        },
    ),
    write(
        ("mnr_submitBitcoinBlockPartialMerkle", &[]),
        &[
            HASH,
            HEADER,
            COINBASE,
            required("merkleHashes", "hashes separated by spaces"),
            required("transactionCount", "hex number"),
        ],
        "submitted block object",
        "As mnr_submitBitcoinBlock, with the Merkle branch of the coinbase, whose own hash comes first.",
        |node, params| {
            let branch = hashes(params, 3)?;
            let count = text(params, 4)?;
            let count = u32::from_str_radix(count.trim_start_matches("0x"), 16)
                .map_err(|_| ParamError::Number(count.clone()))?;
            let submission = Submission::partial(&bytes(params, 1)?, &bytes(params, 2)?, &branch, count);
            submit(node, &submission.map_err(RpcError::from)?)
        },
    ),
];

/// Work (expected hashes) per second of the canonical blocks of the last hour, uncles included.
fn hash_rate(view: &dyn Chain) -> Result<U256, Failure> {
    let mut header = view.head()?;
    // Without a clock, the hour ends with the newest block.
    let since = view.policy().now.unwrap_or(header.timestamp).saturating_sub(RATE_SECONDS);
    let mut work = U256::ZERO;
    while header.number > 0 && header.timestamp >= since && !view.policy().interrupted() {
        let uncles = view.uncles(&header)?.work();
        work = work.saturating_add(header.difficulty.value()).saturating_add(uncles);
        match view.header_by_number(header.number.saturating_sub(1))? {
            Some(parent) => header = parent,
            None => break,
        }
    }
    Ok(work.checked_div(U256::from(RATE_SECONDS)).unwrap_or_default())
}

/// The result of `mnr_getWork`, with the names of the reference node.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WorkObject {
    block_hash_for_merged_mining: String,
    target: String,
    fees_paid_to_miner: String,
    notify: bool,
    parent_block_hash: String,
}

fn get_work(node: &mut dyn LocalNode, _: Params<'_>) -> HandlerResult {
    let (chain, now) = chain_at(node)?;
    let work = chain.work(now).map_err(RpcError::from)?;
    let object = WorkObject {
        block_hash_for_merged_mining: hash_text(&work.mining_hash),
        target: hash_text(&B256::from(work.target)),
        fees_paid_to_miner: alloc::format!("{}", work.fees),
        notify: work.notify,
        parent_block_hash: hash_text(&work.parent),
    };
    done(&object, Level::Local)
}

/// The result of `mnr_submit*`, with the names of the reference node.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Submitted {
    block_imported_result: String,
    block_hash: String,
    block_included_height: Quantity,
}

/// Submits a block, and answers what became of it.
fn submit(node: &mut dyn LocalNode, submission: &Submission) -> HandlerResult {
    let (chain, now) = chain_at(node)?;
    let Imported { header, change, .. } = match chain.submit_work(submission, now) {
        Ok(imported) => imported,
        Err(error @ DevError::Import(_)) => return Err(RpcError::Submission(error).into()),
        Err(error) => return Err(RpcError::from(error).into()),
    };
    // The reference node answers these names as hex of their bytes.
    let result = match change {
        HeadChange::Known => "EXIST",
        HeadChange::Side => "IMPORTED_NOT_BEST",
        HeadChange::Extended | HeadChange::Reorganised(_) => "IMPORTED_BEST",
    };
    let submitted = Submitted {
        block_imported_result: hex::encode_prefixed(result),
        block_hash: hash_text(&header.hash()),
        block_included_height: quantity(header.number),
    };
    done(&submitted, Level::Local)
}

/// The string at a position; empty if it is missing.
fn text(params: Params<'_>, position: usize) -> Result<String, ParamError> {
    Ok(params.value(position, "a string")?.unwrap_or_default())
}

/// The bytes at a position, in hex with or without `0x`.
fn bytes(params: Params<'_>, position: usize) -> Result<Vec<u8>, ParamError> {
    hex::decode(text(params, position)?).map_err(|_| ParamError::Data)
}

/// Parses hashes separated by white space.
fn hashes(params: Params<'_>, position: usize) -> Result<Vec<B256>, ParamError> {
    let text = text(params, position)?;
    text.split_whitespace().map(|hash| hash.parse().map_err(|_| ParamError::Data)).collect()
}
