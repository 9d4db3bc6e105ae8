//! `web3_*`, `net_*` and the chain-level `eth_*` methods.

use alloc::format;

use alloy_primitives::{U256, keccak256};
use serde::Serialize;

use super::{
    method::{Failure, HandlerResult, Method, PageAccess, done, required, verified},
    params::Params,
};
use crate::{
    engine::{Level, SyncProgress, View, newest_answerable_height},
    types::json::Quantity,
};

/// The version of the `eth` peer-to-peer protocol, 62, that the reference node reports (`EthVersion` of rskj 9.1).
const PROTOCOL_VERSION: &str = "0x3e";

const PEER_LIST: Method = Method::local(
    "net_peerList",
    &[],
    "array of strings",
    "The upstreams in use, credentials removed.",
    |view, _| done(&view.upstreams(), Level::Local),
)
.pages(PageAccess::Named);

pub(super) const METHODS: &[Method] = &[
    Method::local(
        "web3_clientVersion",
        &[],
        "string",
        "Name, version, host and language of this client.",
        |view, _| done(&view.policy().version, Level::Local),
    ),
    Method::local(
        "web3_sha3",
        &[required("data", "DATA")],
        "HASH",
        "Keccak-256 of the data.",
        |_, params| done(&format!("{}", keccak256(params.prefixed_bytes(0)?)), Level::Local),
    ),
    Method::local("net_version", &[], "string", "The chain id in decimal.", |view, _| {
        done(&format!("{}", view.policy().network.chain_id), Level::Local)
    }),
    Method::local("net_listening", &[], "boolean", "Whether the client can answer.", |_, _| {
        done(&true, Level::Local)
    }),
    Method::local("net_peerCount", &[], "QUANTITY", "Number of upstreams in use.", |view, _| {
        done(&Quantity::from(view.upstreams().len() as u64), Level::Local)
    }),
    PEER_LIST,
    Method::local("eth_chainId", &[], "QUANTITY", "The chain id (EIP-695).", |view, _| {
        done(&Quantity::from(view.policy().network.chain_id), Level::Local)
    }),
    Method::local(
        "eth_protocolVersion",
        &[],
        "QUANTITY",
        "Protocol version of the chain's nodes.",
        |_, _| done(&PROTOCOL_VERSION, Level::Local),
    ),
    Method::local(
        "ext_protocolVersion",
        &[],
        "QUANTITY",
        "Protocol version of the chain's nodes.",
        |_, _| done(&PROTOCOL_VERSION, Level::Local),
    )
    .also(&["rsk_protocolVersion"]),
    Method::local(
        "eth_syncing",
        &[],
        "sync status or false",
        "Progress of header verification, or false when the head is current.",
        syncing,
    ),
    Method::read("eth_blockNumber", &[], "QUANTITY", "Height of the newest verified block.", |view, _| {
        verified(&Quantity::from(view.height()?))
    })
    .costs(1),
    Method::read(
        "eth_gasPrice",
        &[],
        "QUANTITY",
        "The newest block's minimum gas price, or what a development chain demands, plus a tenth.",
        |view, _| verified(&Quantity(gas_price(view)?)),
    )
    .relayed()
    .costs(1),
];

/// The price in wei with which a transaction is mined: a tenth above the minimum.
pub(super) fn gas_price(view: &dyn View) -> Result<U256, Failure> {
    let minimum = match view.miner() {
        Some(miner) => miner.price,
        None => {
            let newest = view.header_by_number(newest_answerable_height(view)?)?;
            newest.map_or(U256::ZERO, |header| header.minimum_gas_price.value())
        }
    };
    let tenth = minimum.checked_div(U256::from(10)).unwrap_or_default();
    Ok(minimum.saturating_add(tenth))
}

/// The result of `eth_syncing` during synchronization.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Syncing {
    starting_block: Quantity,
    current_block: Quantity,
    highest_block: Quantity,
}

fn syncing(view: &dyn View, _: Params<'_>) -> HandlerResult {
    sync_status(view.syncing())
}

/// The result of `eth_syncing`: the status object, or `false` when the head is current.
///
/// # Errors
/// Only if the value cannot be written as JSON.
pub fn sync_status(progress: Option<SyncProgress>) -> HandlerResult {
    match progress {
        None => done(&false, Level::Local),
        Some(progress) => done(
            &Syncing {
                starting_block: progress.starting.into(),
                current_block: progress.current.into(),
                highest_block: progress.highest.into(),
            },
            Level::Local,
        ),
    }
}
