//! `anvil_*` and `hardhat_*`: mining, the pool, the miner's settings. Where the two tools answer differently, each name
//! has its own answer.

use alloc::{collections::BTreeMap, string::String};

use serde::Serialize;

use super::{chain, chain_at, optional_u64_param, quantity, send::hash_text, unit, write};
use crate::{
    dev::{Mining, Spacing},
    engine::{Level, LocalNode},
    rpc::{
        error::RpcError,
        method::{HandlerResult, Method, Param, account_of, done, optional, required},
        params::Params,
    },
};

const ADDRESS: Param = account_of("address");
const PRICE: &[Param] = &[required("price", "QUANTITY, wei")];
const MINE: &[Param] = &[optional("blocks", "QUANTITY"), optional("interval", "QUANTITY, seconds")];

pub(super) const METHODS: &[Method] = &[
    write(
        ("anvil_mine", &[]),
        MINE,
        "null",
        "Mines blocks, by default one, each with an optional interval between its timestamp and its parent's.",
        |node, params| mine(node, params, Spacing::Each),
    ),
    write(
        ("hardhat_mine", &[]),
        MINE,
        "null",
        "Mines blocks, by default one, with an optional interval between their timestamps.",
        |node, params| mine(node, params, Spacing::Later),
    ),
    write(
        ("anvil_getAutomine", &["hardhat_getAutomine"]),
        &[],
        "boolean",
        "Whether each transaction is mined at once.",
        |node, _| done(&(chain(node)?.mining() == Mining::Instant), Level::Local),
    ),
    write(
        ("anvil_getIntervalMining", &[]),
        &[],
        "QUANTITY or null",
        "Seconds between blocks if they are mined by the clock.",
        |node, _| {
            let seconds = match chain(node)?.mining() {
                Mining::Interval(seconds) => Some(quantity(seconds)),
                _ => None,
            };
            done(&seconds, Level::Local)
        },
    ),
    write(
        ("anvil_dropTransaction", &[]),
        &[required("transactionHash", "HASH")],
        "HASH or null",
        "Drops a transaction from the pool; null if the pool has none with this hash.",
        |node, params| {
            let hash = params.hash(0, "transaction hash")?;
            done(&chain(node)?.drop_transaction(&hash).then(|| hash_text(&hash)), Level::Local)
        },
    ),
    write(
        ("hardhat_dropTransaction", &[]),
        &[required("transactionHash", "HASH")],
        "boolean",
        "Drops a transaction from the pool; false if the pool has none with this hash.",
        |node, params| {
            let hash = params.hash(0, "transaction hash")?;
            done(&chain(node)?.drop_transaction(&hash), Level::Local)
        },
    ),
    write(
        ("anvil_dropAllTransactions", &["hardhat_dropAllTransactions", "debug_clearTxpool"]),
        &[],
        "null",
        "Drops all transactions from the pool.",
        |node, _| {
            chain(node)?.drop_transactions(None);
            done(&(), Level::Local)
        },
    ),
    write(
        ("anvil_removePoolTransactions", &[]),
        &[ADDRESS],
        "null",
        "Drops the transactions of an account from the pool.",
        |node, params| {
            let address = params.address(0)?;
            chain(node)?.drop_transactions(Some(&address));
            done(&(), Level::Local)
        },
    ),
    write(
        ("hardhat_setCoinbase", &[]),
        &[ADDRESS],
        "boolean",
        "Sets the account that receives the fees of later blocks.",
        set_coinbase,
    ),
    write(("anvil_setCoinbase", &[]), &[ADDRESS], "null", "As hardhat_setCoinbase.", |node, params| {
        unit(set_coinbase(node, params))
    }),
    write(
        ("hardhat_setMinGasPrice", &[]),
        PRICE,
        "boolean",
        "Sets the minimum gas price of transactions, at once. The header's approaches it by at most 1/100 per block, or 1 wei below 200 wei, as the rules demand: some 230 blocks for each factor of ten.",
        set_price,
    ),
    write(("anvil_setMinGasPrice", &[]), PRICE, "null", "As hardhat_setMinGasPrice.", |node, params| {
        unit(set_price(node, params))
    }),
    write(
        ("anvil_setLoggingEnabled", &["hardhat_setLoggingEnabled"]),
        &[required("enabled", "boolean")],
        "null",
        "Turns the lines about blocks and failed transactions in the host's log on or off.",
        |node, params| {
            // The parameter is required, so that its default (`true`) is never used.
            let enabled = params.boolean(0, true)?;
            chain(node)?.set_logging(enabled);
            done(&(), Level::Local)
        },
    ),
    write(
        ("anvil_metadata", &["hardhat_metadata"]),
        &[],
        "metadata object",
        "Client name and version, chain id, and the head.",
        metadata,
    ),
];

fn set_coinbase(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let address = params.address(0)?;
    chain(node)?.miner_settings_mut().coinbase = address;
    done(&true, Level::Local)
}

fn set_price(node: &mut dyn LocalNode, params: Params<'_>) -> HandlerResult {
    let price = params.number(0)?;
    chain(node)?.miner_settings_mut().minimum_gas_price = price;
    done(&true, Level::Local)
}

/// Mines as many blocks as the first parameter says. `spacing` makes the spacing of the seconds in the second parameter.
fn mine(node: &mut dyn LocalNode, params: Params<'_>, spacing: fn(u64) -> Spacing) -> HandlerResult {
    let (blocks, interval) = (optional_u64_param(params, 0)?, optional_u64_param(params, 1)?);
    let (chain, now) = chain_at(node)?;
    // The client library viem sends 0 if its caller gives no interval.
    let spacing = interval.filter(|seconds| *seconds > 0).map_or(Spacing::Clock, spacing);
    chain.mine_many(blocks.unwrap_or(1), spacing, now).map_err(RpcError::from)?;
    done(&(), Level::Local)
}

/// The result of `anvil_metadata`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    client_version: String,
    chain_id: u64,
    instance_id: String,
    latest_block_number: u64,
    latest_block_hash: String,
    /// Number and hash of the head of each snapshot.
    snapshots: BTreeMap<String, (u64, String)>,
}

fn metadata(node: &mut dyn LocalNode, _: Params<'_>) -> HandlerResult {
    let chain = chain(node)?;
    let head = chain.view().head();
    let metadata = Metadata {
        client_version: chain.version().into(),
        chain_id: chain.view().network().chain_id,
        // The genesis hash serves as the id of the instance: it identifies the chain.
        instance_id: hash_text(&chain.view().network().genesis_hash),
        latest_block_number: head.number,
        latest_block_hash: hash_text(&head.hash()),
        snapshots: chain
            .saved()
            .map(|(id, head)| (alloc::format!("{id:#x}"), (head.number, hash_text(&head.hash()))))
            .collect(),
    };
    done(&metadata, Level::Local)
}
