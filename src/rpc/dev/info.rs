//! `anvil_nodeInfo` and `anvil_getGenesisTime`: information about the node, in anvil's form.

use alloc::string::String;

use serde::Serialize;

use super::{chain, send::hash_text, write};
use crate::{
    consensus::Rule,
    engine::{Level, LocalNode},
    rpc::{
        method::{HandlerResult, Method, done},
        params::Params,
    },
    types::json::Quantity,
};

pub(super) const METHODS: &[Method] = &[
    write(
        ("anvil_nodeInfo", &[]),
        &[],
        "{currentBlockNumber, environment, forkConfig ...}",
        "The head, the network upgrade, and the chain id, gas limit and gas price of the next block.",
        info,
    ),
    write(
        ("anvil_getGenesisTime", &[]),
        &[],
        "JSON integer",
        "The time of the first block of this chain, in seconds since 1970.",
        |node, _| {
            let headers = chain(node)?.view().headers();
            let first = headers.by_number(headers.base().number);
            done(&first.map_or(0, |header| header.timestamp), Level::Local)
        },
    ),
];

/// The result of `anvil_nodeInfo`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    current_block_number: Quantity,
    current_block_timestamp: u64,
    current_block_hash: String,
    /// Name of the newest network upgrade that is active at the head.
    hard_fork: &'static str,
    /// Transactions of a block are always ordered by their gas price, which anvil calls `fees`.
    transaction_order: &'static str,
    environment: Environment,
    fork_config: ForkConfig,
}

/// The values of the next block.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Environment {
    base_fee: Quantity,
    chain_id: u64,
    gas_limit: Quantity,
    gas_price: Quantity,
}

/// The block of another network on which a fork begins. The URL of that network's node is never shown.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForkConfig {
    fork_url: (),
    /// `None` for a chain that begins with its own block 0.
    fork_block_number: Option<u64>,
    fork_retry_backoff: (),
}

fn info(node: &mut dyn LocalNode, _: Params<'_>) -> HandlerResult {
    let chain = chain(node)?;
    let (head, network) = (chain.view().head(), chain.view().network());
    let active = Rule::ALL.iter().filter(|rule| network.active(**rule, head.number));
    let info = NodeInfo {
        current_block_number: head.number.into(),
        current_block_timestamp: head.timestamp,
        current_block_hash: hash_text(&head.hash()),
        hard_fork: active.filter_map(|rule| rule.fork()).max().map_or("genesis", |fork| fork.name()),
        transaction_order: "fees",
        environment: Environment {
            base_fee: 0.into(),
            chain_id: network.chain_id,
            gas_limit: chain.miner_settings().gas_limit.into(),
            gas_price: chain.price().into(),
        },
        fork_config: ForkConfig {
            fork_url: (),
            fork_block_number: chain.view().fork().map(|fork| fork.block().number),
            fork_retry_backoff: (),
        },
    };
    done(&info, Level::Local)
}
