//! Blocks and uncles.

use alloc::{format, string::String, vec::Vec};

use alloy_primitives::B256;
use serde::Serialize;

use super::{
    error::RpcError,
    lookup::{find, require},
    method::{
        BLOCK_HASH, Done, Failure, Handler, Method, Pages, Param, Subject, THE_BLOCK, absent, optional,
        required, told, verified,
    },
    params::{BlockParam, Params},
    render,
};
use crate::{
    engine::{BlockHeader, Chain, Level, View},
    types::{BlockRef, json::Quantity},
};

const HASH: &[Param] = &[BLOCK_HASH];
const BLOCK: &[Param] = &[THE_BLOCK];
const HASH_FULL: &[Param] = &[BLOCK_HASH, optional("full", "boolean")];
const BLOCK_FULL: &[Param] = &[THE_BLOCK, optional("full", "boolean")];
const HASH_INDEX: &[Param] = &[BLOCK_HASH, required("index", "QUANTITY")];
const BLOCK_INDEX: &[Param] = &[THE_BLOCK, required("index", "QUANTITY")];

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "eth_getBlockByHash",
        aliases: &[],
        params: HASH_FULL,
        result: told("block object or null"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told("A block by hash, also off the canonical chain."),
        handler: Handler::Read(|view, params| block(view, by_hash(view, params)?, params)),
    },
    Method {
        name: "eth_getBlockByNumber",
        aliases: &[],
        params: BLOCK_FULL,
        result: told("block object or null"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told("A block of the canonical chain."),
        handler: Handler::Read(|view, params| block(view, by_selector(view, params)?, params)),
    },
    Method {
        name: "eth_getBlockTransactionCountByHash",
        aliases: &[],
        params: HASH,
        result: told("QUANTITY or null"),
        level: Level::Verified,
        cost: 5,
        pages: Pages::Any,
        doc: told("Number of transactions of a block."),
        handler: Handler::Read(|view, params| match by_hash(view, params)? {
            Some(header) => transaction_count(view, &header),
            None => absent(),
        }),
    },
    Method {
        name: "eth_getBlockTransactionCountByNumber",
        aliases: &[],
        params: BLOCK,
        result: told("QUANTITY"),
        level: Level::Verified,
        cost: 5,
        pages: Pages::Any,
        doc: told("Number of transactions of a block."),
        handler: Handler::Read(|view, params| transaction_count(view, &require(view, &params.block(0)?)?)),
    },
    Method {
        name: "eth_getUncleCountByBlockHash",
        aliases: &[],
        params: HASH,
        result: told("QUANTITY"),
        level: Level::Verified,
        cost: 5,
        pages: Pages::Any,
        doc: told("Number of uncles of a block."),
        handler: Handler::Read(|view, params| {
            let hash = params.hash(0, "block hash")?;
            let header = by_hash(view, params)?.ok_or(RpcError::BlockHashNotFound(hash))?;
            uncle_count(view, &header)
        }),
    },
    Method {
        name: "eth_getUncleCountByBlockNumber",
        aliases: &[],
        params: BLOCK,
        result: told("QUANTITY"),
        level: Level::Verified,
        cost: 5,
        pages: Pages::Any,
        doc: told("Number of uncles of a block."),
        handler: Handler::Read(|view, params| uncle_count(view, &require(view, &params.block(0)?)?)),
    },
    Method {
        name: "eth_getUncleByBlockHashAndIndex",
        aliases: &[],
        params: HASH_INDEX,
        result: told("block object without transactions, or null"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told("An uncle of a block."),
        handler: Handler::Read(|view, params| uncle(view, by_hash(view, params)?, params)),
    },
    Method {
        name: "eth_getUncleByBlockNumberAndIndex",
        aliases: &[],
        params: BLOCK_INDEX,
        result: told("block object without transactions, or null"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told("An uncle of a block."),
        handler: Handler::Read(|view, params| uncle(view, by_selector(view, params)?, params)),
    },
    Method {
        name: "eth_getBlocksByNumber",
        aliases: &[],
        params: &[required("number", "QUANTITY").of(Subject::Block)],
        result: told("array of {hash, totalDifficulty, inMainChain}"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told("Every block of a height that an executed chain holds, canonical or not."),
        handler: Handler::Read(all_at),
    },
];

/// The block whose hash is the first parameter.
pub(super) fn by_hash(view: &dyn View, params: Params<'_>) -> Result<Option<BlockHeader>, Failure> {
    let hash = params.hash(0, "block hash")?;
    find(view, &BlockParam::Hash { hash, require_canonical: false, in_map: false })
}

/// The block that the first parameter selects.
pub(super) fn by_selector(view: &dyn View, params: Params<'_>) -> Result<Option<BlockHeader>, Failure> {
    find(view, &params.block(0)?)
}

fn block(view: &dyn Chain, header: Option<BlockHeader>, params: Params<'_>) -> Result<Done, Failure> {
    let full = params.boolean(1, false)?;
    match header {
        Some(header) => verified(&render::block(view, &header, full)?),
        None => absent(),
    }
}

fn transaction_count(view: &dyn Chain, header: &BlockHeader) -> Result<Done, Failure> {
    verified(&format!("{:#x}", view.body(header)?.transactions().len()))
}

/// The number of proven uncles. The count in the header is only the miner's claim.
fn uncle_count(view: &dyn Chain, header: &BlockHeader) -> Result<Done, Failure> {
    verified(&format!("{:#x}", view.uncles(header)?.headers().len()))
}

fn uncle(view: &dyn Chain, header: Option<BlockHeader>, params: Params<'_>) -> Result<Done, Failure> {
    let index = params.index(1)?;
    let Some(header) = header else { return absent() };
    match view.uncles(&header)?.headers().get(index) {
        Some(uncle) => verified(&render::uncle(view, uncle)?),
        None => verified(&()),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AtHeight {
    hash: String,
    total_difficulty: Option<Quantity>,
    in_main_chain: bool,
}

fn all_at(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let number = params.number(0)?;
    let Ok(number) = u64::try_from(number) else { return verified(&[(); 0]) };
    // Refuses a height of which nothing may be answered.
    view.header_by_number(number)?;
    let one = |hash: B256| -> Result<AtHeight, Failure> {
        Ok(AtHeight {
            hash: format!("{hash}"),
            total_difficulty: view.total_difficulty(hash)?.map(Quantity),
            in_main_chain: view.is_canonical(BlockRef { number, hash }),
        })
    };
    let all: Result<Vec<AtHeight>, Failure> = view.blocks_at(number).into_iter().map(one).collect();
    verified(&all?)
}
