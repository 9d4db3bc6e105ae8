//! Fetches ancestors of the block on which a fork begins: headers, transactions, receipts and uncles. Each parent hash leads to the
//! next lower header, whose roots prove the rest. [`super::Rounds`] calls this file with what a run has found missing.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::B256;

use super::cache::{
    HostCache, cached_block_number, cached_body, cached_receipts, cached_uncles, checked_body,
    checked_receipts, store_bodies, store_receipts, store_uncles,
};
use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched, Stop, given, refuted};
use super::headers::{fetch_linked, header_with_hash};
use super::missing::{Wanted, in_parts};
use super::state::ForkState;
use crate::consensus::{Network, VerifiedHeader, VerifiedUncles};
use crate::light::{UpstreamRequest, UpstreamResponse};
use crate::local::{ForkBody, StoredBlock};
use crate::types::json::{block_with_header, header_from_json, location_from_json, receipt_from_json};
use crate::types::{EMPTY_UNCLES_HASH, Header, Receipt};

/// Most uncles of a block by Rootstock's rules.
const MOST_UNCLES: u32 = 10;

/// Blocks whose transactions and receipts are fetched at once. Sixteen blocks of the main network stay below the limit of memory for
/// the responses of one upstream.
const BLOCKS_AT_ONCE: usize = 16;

/// The inputs of a fetch of blocks.
pub(super) struct Blocks<'a> {
    pub(super) state: &'a ForkState,
    /// Heights of the blocks whose contents the present message reads; [`Wanted::count_contents`] limits their number. When too many
    /// contents are stored, those of other blocks are dropped first.
    pub(super) in_use: &'a BTreeSet<u64>,
    pub(super) cache: HostCache<'a>,
}

/// Fetches the parts of blocks that are wanted, and removes each from `wanted` when it is stored. The exchanges of a stored part are
/// dropped, because later runs of this function do not request it again.
pub(super) fn fetch_blocks(
    exchanges: &mut Exchanges,
    blocks: &Blocks<'_>,
    wanted: &mut Wanted,
) -> Fetched<()> {
    let (begun, state) = (exchanges.used(), blocks.state);
    if let Some(lowest) = wanted.headers.first() {
        fetch_linked(exchanges, state, *lowest)?;
        wanted.headers.clear();
    }
    while let Some(hash) = wanted.headers_of.first().copied() {
        header_of(exchanges, state, hash)?;
        wanted.headers_of.remove(&hash);
        exchanges.forget(begun);
    }
    in_parts(&mut wanted.bodies, BLOCKS_AT_ONCE, |part| {
        bodies(exchanges, blocks, part)?;
        exchanges.forget(begun);
        Fetched::Ok(())
    })?;
    in_parts(&mut wanted.contents, BLOCKS_AT_ONCE, |part| {
        contents(exchanges, blocks, part)?;
        exchanges.forget(begun);
        Fetched::Ok(())
    })?;
    while let Some(number) = wanted.uncles.first().copied() {
        uncles(exchanges, blocks, number)?;
        wanted.uncles.remove(&number);
        exchanges.forget(begun);
    }
    while let Some(hash) = wanted.locations.first().copied() {
        location(exchanges, blocks, hash)?;
        wanted.locations.remove(&hash);
        exchanges.forget(begun);
    }
    Ok(())
}

/// Looks up a header by a hash that no linked header has. The header from the upstream only tells the height: the headers down to that
/// height are linked then, and the hash counts as unknown if none of them has it.
fn header_of(exchanges: &mut Exchanges, state: &ForkState, hash: B256) -> Fetched<()> {
    let number = match header_with_hash(exchanges, state.network(), hash) {
        Ok(found) => Some(found.number).filter(|number| *number < state.block.number),
        Err(Stop::Failed(ForkError::NoBlockHash { .. })) => None,
        Err(stop) => return Err(stop),
    };
    if let Some(number) = number {
        fetch_linked(exchanges, state, number)?;
    }
    let mut parts = state.parts();
    if !parts.numbers.contains_key(&hash) {
        parts.add_unknown(hash);
    }
    Ok(())
}

/// Fetches the transactions of blocks whose headers are linked, unless the host has them from an earlier run.
fn bodies(exchanges: &mut Exchanges, blocks: &Blocks<'_>, numbers: &BTreeSet<u64>) -> Fetched<()> {
    let (state, network) = (blocks.state, blocks.state.network());
    let mut headers = state.parts().linked(numbers, |parts, number| !parts.bodies.contains_key(number));
    headers.retain(|header| {
        let cached = cached_body(blocks.cache, header, network);
        cached.map(|body| state.add_body(blocks.in_use, header, body)).is_none()
    });
    let of_block = |header: &VerifiedHeader| {
        UpstreamRequest::new("eth_getBlockByHash", format!(r#"["{}",true]"#, header.hash()))
    };
    let requests: Vec<UpstreamRequest> = headers.iter().map(of_block).collect();
    let fetched = exchanges.first(&requests, |name, responses| {
        let pairs = headers.iter().zip(responses);
        pairs.map(|(header, response)| body(name, network, header, response)).collect::<Result<Vec<_>, _>>()
    })?;
    let fetched: Vec<_> = headers.into_iter().zip(fetched).collect();
    store_bodies(blocks.cache, &fetched);
    fetched.into_iter().for_each(|(header, body)| state.add_body(blocks.in_use, &header, body));
    Ok(())
}

/// Reads the transactions of a block from the response of the upstream `name`, and checks them against the header.
fn body(
    name: &str,
    network: &Network,
    header: &VerifiedHeader,
    response: &UpstreamResponse,
) -> Result<ForkBody, ForkError> {
    let what = format!("transactions of block {}", header.number);
    let none = || ForkError::NoBlockHash { name: name.to_owned(), hash: header.hash() };
    let text = given(name, &what, Some(response))?.ok_or_else(none)?;
    let block = block_with_header(text, header.sealed().clone(), network.chain_id);
    let block = block.map_err(|error| refuted(name, &what, error))?;
    let transactions = block.transactions.into_full().ok_or_else(|| refuted(name, &what, "only hashes"))?;
    checked_body(header, transactions, network).map_err(|error| refuted(name, &what, error))
}

/// Fetches the transactions and receipts of blocks whose headers are linked, unless the host has them from an earlier run.
fn contents(exchanges: &mut Exchanges, blocks: &Blocks<'_>, numbers: &BTreeSet<u64>) -> Fetched<()> {
    let (state, network, begun) = (blocks.state, blocks.state.network(), exchanges.used());
    bodies(exchanges, blocks, numbers)?;
    // The transactions are stored now, so a later run of this fetch does not request them, and uses no exchange up to here. Such
    // a run must not drop the exchanges with receipts that follow.
    if exchanges.used() > begun {
        exchanges.forget(begun);
    }
    let mut without_receipts = {
        let parts = state.parts();
        let headers = parts.linked(numbers, |parts, number| !parts.contents.contains_key(number));
        let body = |header: VerifiedHeader| Some((parts.bodies.get(&header.number)?.clone(), header));
        headers.into_iter().filter_map(body).collect::<Vec<_>>()
    };
    without_receipts.retain(|(body, header)| {
        let cached = cached_receipts(blocks.cache, header, body, network);
        cached.map(|block| state.add_contents(blocks.in_use, header.number, Arc::new(block))).is_none()
    });
    let of_receipt =
        |hash: &B256| UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{hash}"]"#));
    let hashes = without_receipts.iter().flat_map(|(body, _)| body.body.hashes());
    let requests: Vec<UpstreamRequest> = hashes.map(of_receipt).collect();
    let fetched = exchanges.first(&requests, |name, responses| {
        let mut responses = responses.iter();
        let fetched = without_receipts.iter().map(|(body, header)| {
            let of_block: Vec<&UpstreamResponse> =
                responses.by_ref().take(body.body.hashes().len()).collect();
            stored(name, network, (header, &**body), of_block)
        });
        fetched.collect::<Result<Vec<_>, _>>()
    })?;
    let headers = without_receipts.into_iter().map(|(_, header)| header);
    let fetched: Vec<_> = headers.zip(fetched.into_iter().map(Arc::new)).collect();
    store_receipts(blocks.cache, &fetched);
    for (header, block) in fetched {
        state.add_contents(blocks.in_use, header.number, block);
    }
    Ok(())
}

/// Reads the receipts of a block from the responses of the upstream `name`, and checks them against header and body.
fn stored(
    name: &str,
    network: &Network,
    (header, body): (&VerifiedHeader, &ForkBody),
    responses: Vec<&UpstreamResponse>,
) -> Result<StoredBlock, ForkError> {
    let what = format!("receipts of block {}", header.number);
    let refute = |reason: String| refuted(name, &what, reason);
    let mut receipts: Vec<Receipt> = Vec::new();
    for response in responses {
        let text = given(name, &what, Some(response))?.ok_or_else(|| refute("there is none".to_owned()))?;
        receipts.push(receipt_from_json(text).map_err(|error| refute(error.to_string()))?);
    }
    checked_receipts(header, body, receipts, network).map_err(|error| refute(error.to_string()))
}

/// Fetches the uncles of a block whose header is linked, unless the host has them from an earlier run.
fn uncles(exchanges: &mut Exchanges, blocks: &Blocks<'_>, number: u64) -> Fetched<()> {
    let state = blocks.state;
    let Some(header) = state.parts().headers.get(&number).cloned() else { return Ok(()) };
    if let Some(cached) = cached_uncles(blocks.cache, &header, state.network()) {
        state.parts().uncles.insert(number, Arc::new(cached));
        return Ok(());
    }
    let count = match header.uncles_hash == EMPTY_UNCLES_HASH {
        true => 0,
        false => header.uncle_count.min(MOST_UNCLES),
    };
    let request = |index| {
        let params = format!(r#"["{}","{index:#x}"]"#, header.hash());
        UpstreamRequest::new("eth_getUncleByBlockHashAndIndex", params)
    };
    let requests: Vec<UpstreamRequest> = (0..count).map(request).collect();
    let what = format!("uncles of block {number}");
    let found = exchanges.first(&requests, |name, responses| {
        let mut uncles: Vec<Header> = Vec::new();
        for response in responses {
            let text = given(name, &what, Some(response))?;
            let text = text.ok_or_else(|| refuted(name, &what, "there is none"))?;
            let found = header_from_json(text, None, &|number| state.network().header_shape(number));
            uncles.push(found.map_err(|error| refuted(name, &what, error))?.into_header());
        }
        VerifiedUncles::check(&header, uncles).map_err(|error| refuted(name, &what, error))
    })?;
    if count > 0 {
        store_uncles(blocks.cache, &header, &found);
    }
    state.parts().uncles.insert(number, Arc::new(found));
    Ok(())
}

/// Looks up the block and index of a transaction. The upstream states the block only, whose verified transactions show the index.
fn location(exchanges: &mut Exchanges, blocks: &Blocks<'_>, hash: B256) -> Fetched<()> {
    let state = blocks.state;
    // A height that the host has stored may be wrong, so it is used only if the headers down to it are linked already.
    let cached = cached_block_number(blocks.cache, &hash);
    if let Some(number) = cached.filter(|number| state.parts().headers.contains_key(number))
        && let Some(location) = location_in(exchanges, blocks, number, &hash)?
    {
        state.parts().add_location(hash, Some(location));
        return Ok(());
    }
    let request = UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{hash}"]"#));
    let what = format!("place of transaction {hash}");
    let stated = exchanges.first(&[request], |name, responses| {
        let Some(text) = given(name, &what, responses.first())? else { return Ok(None) };
        location_from_json(text).map_err(|error| refuted(name, &what, error))
    })?;
    let number = stated.map(|location| location.block_number).filter(|number| *number <= state.block.number);
    let mut location = None;
    if let Some(number) = number {
        fetch_linked(exchanges, state, number)?;
        location = location_in(exchanges, blocks, number, &hash)?;
    }
    state.parts().add_location(hash, location);
    Ok(())
}

/// The location of a transaction if it is in this block.
fn location_in(
    exchanges: &mut Exchanges,
    blocks: &Blocks<'_>,
    number: u64,
    hash: &B256,
) -> Fetched<Option<(B256, usize)>> {
    bodies(exchanges, blocks, &BTreeSet::from([number]))?;
    let parts = blocks.state.parts();
    let (header, body) = (parts.headers.get(&number), parts.bodies.get(&number));
    Ok(header.zip(body).and_then(|(header, body)| Some((header.hash(), body.body.position(hash)?))))
}
