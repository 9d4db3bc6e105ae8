//! `web3_*`, `net_*` and the chain-level `eth_*` methods.

use alloc::{format, string::String};

use alloy_primitives::{U256, keccak256};
use serde::Serialize;

use super::{
    method::{Done, Failure, Handler, Method, Pages, done, required, told, verified},
    params::Params,
};
use crate::{
    engine::{Level, SyncProgress, View, settled_height},
    types::json::Quantity,
};

/// The eth protocol number that the reference node reports (measured).
const PROTOCOL_VERSION: &str = "0x3e";

/// Names of the upstreams for those who may not know their addresses.
#[cfg(all(feature = "dev", feature = "light"))]
pub(super) fn numbered(view: &dyn View) -> alloc::vec::Vec<String> {
    (1..=view.upstreams().len()).map(|number| format!("upstream {number}")).collect()
}

/// `net_peerList`.
pub(super) const PEER_LIST: Method = Method {
    name: "net_peerList",
    aliases: &[],
    params: &[],
    result: told("array of strings"),
    level: Level::Local,
    cost: 1,
    pages: Pages::Named,
    doc: told("The upstreams in use, credentials removed."),
    handler: Handler::Read(|view, _| done(&view.upstreams(), Level::Local)),
};

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "web3_clientVersion",
        aliases: &[],
        params: &[],
        result: told("string"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("Name, version, host and language of this client."),
        handler: Handler::Read(|view, _| done(&view.policy().version, Level::Local)),
    },
    Method {
        name: "web3_sha3",
        aliases: &[],
        params: &[required("data", "DATA")],
        result: told("HASH"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("Keccak-256 of the data."),
        handler: Handler::Read(|_, params| {
            done(&format!("{}", keccak256(params.prefixed_bytes(0)?)), Level::Local)
        }),
    },
    Method {
        name: "net_version",
        aliases: &[],
        params: &[],
        result: told("string"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("The chain id in decimal."),
        handler: Handler::Read(|view, _| done(&format!("{}", view.policy().network.chain_id), Level::Local)),
    },
    Method {
        name: "net_listening",
        aliases: &[],
        params: &[],
        result: told("boolean"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("Whether the client can answer."),
        handler: Handler::Read(|_, _| done(&true, Level::Local)),
    },
    Method {
        name: "net_peerCount",
        aliases: &[],
        params: &[],
        result: told("QUANTITY"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("Number of upstreams in use."),
        handler: Handler::Read(|view, _| done(&format!("{:#x}", view.upstreams().len()), Level::Local)),
    },
    PEER_LIST,
    Method {
        name: "eth_chainId",
        aliases: &[],
        params: &[],
        result: told("QUANTITY"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("The chain id (EIP-695)."),
        handler: Handler::Read(|view, _| {
            done(&format!("{:#x}", view.policy().network.chain_id), Level::Local)
        }),
    },
    Method {
        name: "eth_protocolVersion",
        aliases: &[],
        params: &[],
        result: told("QUANTITY"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("Protocol version of the chain's nodes."),
        handler: Handler::Read(|_, _| done(&PROTOCOL_VERSION, Level::Local)),
    },
    Method {
        name: "ext_protocolVersion",
        aliases: &["rsk_protocolVersion"],
        params: &[],
        result: told("QUANTITY"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("Protocol version of the chain's nodes."),
        handler: Handler::Read(|_, _| done(&PROTOCOL_VERSION, Level::Local)),
    },
    Method {
        name: "eth_syncing",
        aliases: &[],
        params: &[],
        result: told("sync status or false"),
        level: Level::Local,
        cost: 1,
        pages: Pages::Any,
        doc: told("Progress of header verification, or false when the head is current."),
        handler: Handler::Read(syncing),
    },
    Method {
        name: "eth_blockNumber",
        aliases: &[],
        params: &[],
        result: told("QUANTITY"),
        level: Level::Verified,
        cost: 1,
        pages: Pages::Any,
        doc: told("Height of the newest verified block."),
        handler: Handler::Read(|view, _| verified(&format!("{:#x}", view.height()?))),
    },
    Method {
        name: "eth_gasPrice",
        aliases: &[],
        params: &[],
        result: told("QUANTITY"),
        level: Level::Verified,
        cost: 1,
        pages: Pages::Any,
        doc: told("The newest block's minimum gas price, or what a development chain demands, plus a tenth."),
        handler: Handler::Read(|view, _| {
            let minimum = match view.miner() {
                Some(miner) => miner.price,
                None => {
                    let newest = view.header_by_number(settled_height(view)?)?;
                    newest.map_or(U256::ZERO, |header| header.minimum_gas_price.value())
                }
            };
            let tenth = minimum.checked_div(U256::from(10)).unwrap_or_default();
            verified(&Quantity(minimum.saturating_add(tenth)))
        }),
    },
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Syncing {
    starting_block: String,
    current_block: String,
    highest_block: String,
}

fn syncing(view: &dyn View, _: Params<'_>) -> Result<Done, Failure> {
    sync_status(view.syncing())
}

/// The result of `eth_syncing`: the status object, or `false` when the head is current.
///
/// # Errors
/// Only if the value cannot be written as JSON.
pub fn sync_status(progress: Option<SyncProgress>) -> Result<Done, Failure> {
    match progress {
        None => done(&false, Level::Local),
        Some(progress) => done(
            &Syncing {
                starting_block: format!("{:#x}", progress.starting),
                current_block: format!("{:#x}", progress.current),
                highest_block: format!("{:#x}", progress.highest),
            },
            Level::Local,
        ),
    }
}
