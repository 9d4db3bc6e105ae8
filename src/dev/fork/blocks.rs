//! Fetches the blocks below the one on which a chain begins. Hashes lead from that block to each of them.

use alloc::borrow::ToOwned;
use alloc::collections::BTreeSet;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, B256};

use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched, Stop, given, refuted};
use super::headers::{link, raw};
use super::missing::{MOST_CONTENTS, Wanted};
use super::state::{ForkState, Parts};
use crate::consensus::{Network, VerifiedBody, VerifiedHeader, VerifiedReceipts, VerifiedUncles};
use crate::light::{UpstreamRequest, UpstreamResponse};
use crate::local::{StoredBlock, marked_sender};
use crate::types::json::{block_with_header, header_from_json, location_from_json, receipt_from_json};
use crate::types::{EMPTY_UNCLES_HASH, Header, Receipt, Transaction};

/// Most look-ups of hashes that are kept.
const MOST_PLACES: usize = 100_000;

/// Most uncles of a block.
const MOST_UNCLES: u32 = 10;

/// Fetches the blocks that are wanted, and takes out of `wanted` what is done. `run` are the blocks whose contents one run reads, as
/// many as [`Wanted::count_contents`] allows: those of others make room for them.
///
/// # Errors
/// [`Stop`]
pub fn fetch_blocks(
    exchanges: &mut Exchanges,
    state: &ForkState,
    wanted: &mut Wanted,
    run: &BTreeSet<u64>,
) -> Fetched<()> {
    let begun = exchanges.used();
    if let Some(lowest) = wanted.headers.first() {
        link(exchanges, state, *lowest)?;
        wanted.headers.clear();
    }
    while let Some(hash) = wanted.headers_of.first().copied() {
        header_of(exchanges, state, hash)?;
        wanted.headers_of.remove(&hash);
        exchanges.forget(begun);
    }
    if !wanted.contents.is_empty() {
        contents(exchanges, state, &wanted.contents, run)?;
        wanted.contents.clear();
        exchanges.forget(begun);
    }
    while let Some(number) = wanted.uncles.first().copied() {
        uncles(exchanges, state, number)?;
        wanted.uncles.remove(&number);
        exchanges.forget(begun);
    }
    while let Some(hash) = wanted.places.first().copied() {
        place(exchanges, state, hash, run)?;
        wanted.places.remove(&hash);
        exchanges.forget(begun);
    }
    Ok(())
}

/// Looks up a header by a hash that is not that of a linked one.
fn header_of(exchanges: &mut Exchanges, state: &ForkState, hash: B256) -> Fetched<()> {
    let number = match raw(exchanges, state.network(), hash) {
        Ok(found) => Some(found.number).filter(|number| *number < state.block.number),
        Err(Stop::Failed(ForkError::NoBlockHash { .. })) => None,
        Err(stop) => return Err(stop),
    };
    if let Some(number) = number {
        link(exchanges, state, number)?;
    }
    let mut parts = state.parts();
    if !parts.numbers.contains_key(&hash) {
        if parts.unknown_hashes.len() >= MOST_PLACES {
            parts.unknown_hashes.clear();
        }
        parts.unknown_hashes.insert(hash);
    }
    Ok(())
}

/// Fetches the transactions and receipts of blocks whose headers are linked.
fn contents(
    exchanges: &mut Exchanges,
    state: &ForkState,
    numbers: &BTreeSet<u64>,
    run: &BTreeSet<u64>,
) -> Fetched<()> {
    let headers: Vec<VerifiedHeader> = {
        let parts = state.parts();
        numbers.iter().filter_map(|number| parts.headers.get(number).cloned()).collect()
    };
    let of_block = |header: &VerifiedHeader| {
        UpstreamRequest::new("eth_getBlockByHash", format!(r#"["{}",true]"#, header.hash()))
    };
    let requests: Vec<UpstreamRequest> = headers.iter().map(of_block).collect();
    let network = state.network();
    let bodies = exchanges.first(&requests, |name, responses| {
        let both = headers.iter().zip(responses);
        both.map(|(header, response)| body(name, network, header, response)).collect::<Result<Vec<_>, _>>()
    })?;
    let of_receipt =
        |hash: &B256| UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{hash}"]"#));
    let requests: Vec<UpstreamRequest> =
        bodies.iter().flat_map(|body| body.hashes()).map(of_receipt).collect();
    let blocks = exchanges.first(&requests, |name, responses| {
        let mut responses = responses.iter();
        let blocks = headers.iter().zip(&bodies).map(|(header, body)| {
            let of: Vec<&UpstreamResponse> = responses.by_ref().take(body.hashes().len()).collect();
            stored(name, network, (header, body), of)
        });
        blocks.collect::<Result<Vec<_>, _>>()
    })?;
    let mut parts = state.parts();
    if parts.contents.len().saturating_add(numbers.len()) > MOST_CONTENTS {
        parts.contents.retain(|number, _| run.contains(number));
    }
    for (header, block) in headers.iter().zip(blocks) {
        parts.contents.insert(header.number, Arc::new(block));
    }
    Ok(())
}

fn body(
    name: &str,
    network: &Network,
    header: &VerifiedHeader,
    response: &UpstreamResponse,
) -> Result<VerifiedBody, ForkError> {
    let what = format!("transactions of block {}", header.number);
    let none = || ForkError::NoBlockHash { name: name.to_owned(), hash: header.hash() };
    let text = given(name, &what, Some(response))?.ok_or_else(none)?;
    let block = block_with_header(text, header.sealed().clone(), network.chain_id);
    let block = block.map_err(|error| refuted(name, &what, error))?;
    let transactions = block.transactions.into_full().ok_or_else(|| refuted(name, &what, "only hashes"))?;
    VerifiedBody::check(header, transactions, network).map_err(|error| refuted(name, &what, error))
}

fn stored(
    name: &str,
    network: &Network,
    (header, body): (&VerifiedHeader, &VerifiedBody),
    responses: Vec<&UpstreamResponse>,
) -> Result<StoredBlock, ForkError> {
    let what = format!("receipts of block {}", header.number);
    let refute = |reason: String| refuted(name, &what, reason);
    let mut receipts: Vec<Receipt> = Vec::new();
    for response in responses {
        let text = given(name, &what, Some(response))?.ok_or_else(|| refute("there is none".to_owned()))?;
        receipts.push(receipt_from_json(text).map_err(|error| refute(error.to_string()))?);
    }
    let receipts =
        VerifiedReceipts::check(header, receipts, network).map_err(|error| refute(error.to_string()))?;
    receipts.matches(body).map_err(|error| refute(error.to_string()))?;
    let senders = body.transactions().iter().map(|sent| sender(sent, network));
    Ok(StoredBlock { senders: senders.collect(), body: Arc::new(body.clone()), receipts: Arc::new(receipts) })
}

/// The sender of a transaction. Impersonated ones are on development chains only.
fn sender(sent: &Transaction, network: &Network) -> Address {
    let marked = marked_sender(sent).filter(|_| network.name == "regtest");
    marked.unwrap_or_else(|| sent.recover_sender(network.chain_id).unwrap_or_default())
}

/// Fetches the uncles of a block whose header is linked.
fn uncles(exchanges: &mut Exchanges, state: &ForkState, number: u64) -> Fetched<()> {
    let Some(header) = state.parts().headers.get(&number).cloned() else { return Ok(()) };
    let count = match header.uncles_hash == EMPTY_UNCLES_HASH {
        true => 0,
        false => header.uncle_count.min(MOST_UNCLES),
    };
    let at = |index| {
        let params = format!(r#"["{}","{index:#x}"]"#, header.hash());
        UpstreamRequest::new("eth_getUncleByBlockHashAndIndex", params)
    };
    let requests: Vec<UpstreamRequest> = (0..count).map(at).collect();
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
    state.parts().uncles.insert(number, Arc::new(found));
    Ok(())
}

/// Looks up where a transaction is. Its block shows it.
fn place(exchanges: &mut Exchanges, state: &ForkState, hash: B256, run: &BTreeSet<u64>) -> Fetched<()> {
    let request = UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{hash}"]"#));
    let what = format!("place of transaction {hash}");
    let stated = exchanges.first(&[request], |name, responses| {
        let Some(text) = given(name, &what, responses.first())? else { return Ok(None) };
        location_from_json(text).map_err(|error| refuted(name, &what, error))
    })?;
    let number = stated.map(|place| place.block_number).filter(|number| *number <= state.block.number);
    let mut place = None;
    if let Some(number) = number {
        link(exchanges, state, number)?;
        let is_there = state.parts().contents.contains_key(&number);
        if !is_there {
            let mut one = BTreeSet::new();
            one.insert(number);
            contents(exchanges, state, &one, run)?;
        }
        place = placed(&state.parts(), number, &hash);
    }
    let mut parts = state.parts();
    if parts.places.len() >= MOST_PLACES {
        parts.places.clear();
    }
    parts.places.insert(hash, place);
    Ok(())
}

fn placed(parts: &Parts, number: u64, hash: &B256) -> Option<(B256, usize)> {
    let block = parts.contents.get(&number)?;
    Some((parts.headers.get(&number)?.hash(), block.body.position(hash)?))
}
