//! `debug_storageRangeAt`: the storage of a contract before a transaction of a block, page by page.

use alloc::collections::BTreeMap;

use alloy_primitives::{B256, hex};
use serde::Serialize;

use super::{
    blocks::by_block_param,
    error::RpcError,
    method::{HandlerResult, Method, THE_BLOCK, absent, contract_of, required, verified},
    mode::Mode,
    params::Params,
};
use crate::{
    engine::View,
    state::{StorageRange, storage_range},
};

/// The name of the method.
const NAME: &str = "debug_storageRangeAt";

/// Most cells of one answer. The limit bounds the length of the answer; the caller continues at its `nextKey`.
const MAX_CELLS: usize = 1_024;

pub(super) const METHODS: &[Method] = &[Method::read(
    NAME,
    &[
        THE_BLOCK,
        required("transactionIndex", "QUANTITY"),
        contract_of("address"),
        required("keyStart", "DATA"),
        required("maxResult", "QUANTITY"),
    ],
    "{storage, nextKey} or null",
    "Cells of a contract before a transaction of a block, in the order of the Keccak-256 of their slots, at most 1,024 at \
     once. An index above the last one stands for the state after the block.",
    storage_range_at,
)
.refused(&[(Mode::Light, unprovable)])
.costs(500)];

/// The result: cells by the Keccak-256 of their slots, and the first hash of the next page.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    storage: BTreeMap<B256, Cell>,
    next_key: Option<B256>,
}

/// A cell: its slot and its value.
#[derive(Serialize)]
struct Cell {
    key: B256,
    value: alloc::string::String,
}

fn storage_range_at(view: &dyn View, params: Params<'_>) -> HandlerResult {
    #[cfg(feature = "light")]
    if view.light().is_some() {
        return Err(unprovable().into());
    }
    let saturated = |number: alloy_primitives::U256| usize::try_from(number).unwrap_or(usize::MAX);
    let (index, address) = (saturated(params.number(1)?), params.address(2)?);
    let (start, most) = (start_key(&params.data(3)?), saturated(params.number(4)?).clamp(1, MAX_CELLS));
    let Some(header) = by_block_param(view, params)? else { return absent() };
    let state = view.state_before(&header, index)?;
    let Some(StorageRange { cells, next }) = storage_range(&state, &address, &start, most) else {
        return Err(unlisted().into());
    };
    let shown = cells.into_iter().map(|(hash, (slot, value))| {
        // Native contracts also store values of more than 32 bytes.
        let value = if value.len() > 32 { value } else { B256::left_padding_from(&value).into() };
        (hash, Cell { key: slot.into(), value: hex::encode_prefixed(&value) })
    });
    verified(&Page { storage: shown.collect(), next_key: next })
}

/// The hash that begins with these bytes and continues with zeros; further bytes are ignored.
fn start_key(given: &[u8]) -> B256 {
    let mut start = B256::ZERO;
    start.iter_mut().zip(given).for_each(|(target, byte)| *target = *byte);
    start
}

/// The error of a chain that begins on a block of another network, whose state it cannot list.
fn unlisted() -> RpcError {
    let instead = "this chain begins on a block of another network, of which it has only what was read; ask eth_getStorageAt for each cell";
    RpcError::Impossible { method: NAME.into(), instead }
}

/// The error of a light client.
fn unprovable() -> RpcError {
    let instead = "upstreams prove single cells and not that a range is complete; ask a chain that is executed \
                   (`rootlight follow`), or eth_getStorageAt for each cell";
    RpcError::Impossible { method: NAME.into(), instead }
}
