//! `eth_getBlock*` and `eth_getUncle*`: blocks, the number of their transactions, and their uncles.

use alloc::{format, string::String, vec::Vec};

use alloy_primitives::B256;
use serde::Serialize;

use super::{
    error::RpcError,
    lookup::{find, require},
    method::{
        BLOCK_HASH, Failure, HandlerResult, Indexed, Method, Param, ParamSubject, THE_BLOCK, absent,
        optional, required, verified,
    },
    mode::Mode,
    params::{BlockParam, Params},
    render,
};
use crate::{
    engine::{BlockHeader, Chain, View},
    types::{BlockRef, json::Quantity},
};

const HASH: &[Param] = &[BLOCK_HASH];
const BLOCK: &[Param] = &[THE_BLOCK];
const HASH_FULL: &[Param] = &[BLOCK_HASH, optional("full", "boolean")];
const BLOCK_FULL: &[Param] = &[THE_BLOCK, optional("full", "boolean")];
const HASH_INDEX: &[Param] = &[BLOCK_HASH, required("index", "QUANTITY")];
const BLOCK_INDEX: &[Param] = &[THE_BLOCK, required("index", "QUANTITY")];

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "eth_getBlockByHash",
        HASH_FULL,
        "block object or null",
        "A block by hash, also off the canonical chain.",
        |view, params| block(view, by_hash(view, params)?, params),
    )
    .relayed(),
    Method::read(
        "eth_getBlockByNumber",
        BLOCK_FULL,
        "block object or null",
        "A block of the canonical chain.",
        |view, params| block(view, by_block_param(view, params)?, params),
    )
    .relayed(),
    Method::read(
        "eth_getBlockTransactionCountByHash",
        HASH,
        "QUANTITY or null",
        "Number of transactions of a block.",
        |view, params| match by_hash(view, params)? {
            Some(header) => transaction_count(view, &header),
            None => absent(),
        },
    )
    .relayed()
    .costs(5),
    Method::read(
        "eth_getBlockTransactionCountByNumber",
        BLOCK,
        "QUANTITY",
        "Number of transactions of a block.",
        |view, params| transaction_count(view, &require(view, &params.block(0)?)?),
    )
    .relayed()
    .costs(5),
    Method::read(
        "eth_getUncleCountByBlockHash",
        HASH,
        "QUANTITY",
        "Number of uncles of a block.",
        |view, params| {
            let hash = params.hash(0, "block hash")?;
            let header = by_hash(view, params)?.ok_or(RpcError::BlockHashNotFound(hash))?;
            uncle_count(view, &header)
        },
    )
    .relayed()
    .indexed(Indexed::UncleCount)
    .costs(5),
    Method::read(
        "eth_getUncleCountByBlockNumber",
        BLOCK,
        "QUANTITY",
        "Number of uncles of a block.",
        |view, params| uncle_count(view, &require(view, &params.block(0)?)?),
    )
    .relayed()
    .indexed(Indexed::UncleCount)
    .costs(5),
    Method::read(
        "eth_getUncleByBlockHashAndIndex",
        HASH_INDEX,
        "block object without transactions, or null",
        "An uncle of a block.",
        |view, params| uncle(view, by_hash(view, params)?, params),
    )
    .relayed()
    .indexed(Indexed::Uncle),
    Method::read(
        "eth_getUncleByBlockNumberAndIndex",
        BLOCK_INDEX,
        "block object without transactions, or null",
        "An uncle of a block.",
        |view, params| uncle(view, by_block_param(view, params)?, params),
    )
    .relayed()
    .indexed(Indexed::Uncle),
    Method::read(
        "eth_getBlocksByNumber",
        &[required("number", "QUANTITY").of(ParamSubject::Block)],
        "array of {hash, totalDifficulty, inMainChain}",
        "Every block of a height that an executed chain holds, canonical or not.",
        blocks_at_height,
    )
    .limited(&[(Mode::Light, "the canonical block only")])
    .relayed(),
];

/// The block whose hash is the first parameter.
pub(super) fn by_hash(view: &dyn View, params: Params<'_>) -> Result<Option<BlockHeader>, Failure> {
    let hash = params.hash(0, "block hash")?;
    find(view, &BlockParam::Hash { hash, require_canonical: false, in_map: false })
}

/// The block that the first parameter names as a block parameter: a number, a tag or a hash.
pub(super) fn by_block_param(view: &dyn View, params: Params<'_>) -> Result<Option<BlockHeader>, Failure> {
    find(view, &params.block(0)?)
}

/// A block object; the second parameter selects whole transactions instead of hashes.
fn block(view: &dyn Chain, header: Option<BlockHeader>, params: Params<'_>) -> HandlerResult {
    let full = params.boolean(1, false)?;
    match header {
        Some(header) => verified(&render::block(view, &header, full)?),
        None => absent(),
    }
}

fn transaction_count(view: &dyn Chain, header: &BlockHeader) -> HandlerResult {
    verified(&Quantity::from(view.body(header)?.transactions().len() as u64))
}

/// The number of proven uncles. The count in the header is only the miner's claim.
fn uncle_count(view: &dyn Chain, header: &BlockHeader) -> HandlerResult {
    verified(&Quantity::from(view.uncles(header)?.headers().len() as u64))
}

/// The uncle of a block at the index in the second parameter.
fn uncle(view: &dyn Chain, header: Option<BlockHeader>, params: Params<'_>) -> HandlerResult {
    let index = params.index(1)?;
    let Some(header) = header else { return absent() };
    match view.uncles(&header)?.headers().get(index) {
        Some(uncle) => verified(&render::uncle(view, uncle)?),
        // The header proves the whole list of uncles, hence also that the list has no such index.
        None => verified(&()),
    }
}

/// An element of the result of `eth_getBlocksByNumber`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BlockAtHeight {
    hash: String,
    total_difficulty: Option<Quantity>,
    in_main_chain: bool,
}

/// `eth_getBlocksByNumber`.
fn blocks_at_height(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let number = params.number(0)?;
    let Ok(number) = u64::try_from(number) else { return verified(&[(); 0]) };
    // `blocks_at` cannot refuse. This look-up refuses a height about which the view may not answer, such as one with too
    // few blocks above it.
    view.header_by_number(number)?;
    let described = |hash: B256| -> Result<BlockAtHeight, Failure> {
        Ok(BlockAtHeight {
            hash: format!("{hash}"),
            total_difficulty: view.total_difficulty(hash)?.map(Quantity),
            in_main_chain: view.is_canonical(BlockRef { number, hash }),
        })
    };
    let blocks: Result<Vec<BlockAtHeight>, Failure> =
        view.blocks_at(number).into_iter().map(described).collect();
    verified(&blocks?)
}
