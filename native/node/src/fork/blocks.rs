//! Fetches the blocks below the one that was forked. Hashes lead from that block to each of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use alloy_primitives::{Address, B256};
use rootlight::consensus::{Network, VerifiedBody, VerifiedHeader, VerifiedReceipts, VerifiedUncles};
use rootlight::light::{UpstreamRequest, prove};
use rootlight::local::{StoredBlock, marked_sender};
use rootlight::types::json::{block_with_header, header_from_json, location_from_json, receipt_from_json};
use rootlight::types::{EMPTY_UNCLES_HASH, Header, Receipt, SealedHeader, Transaction};
use rootlight_upstream::{SharedUpstream, UpstreamResult};

use super::error::ForkError;
use super::source::{ForkSource, given, refuted};
use super::state::{ForkState, Parts};

/// Most blocks below the one that was forked.
pub(super) const MOST_BELOW: u64 = 100_000;

/// Headers that are asked for at once.
const HEADERS_AT_ONCE: u64 = 50;

/// Most blocks whose contents are kept. A block of the main network takes some 100 kB.
pub(super) const MOST_CONTENTS: usize = 4_096;

/// Most look-ups of hashes that are kept.
const MOST_PLACES: usize = 100_000;

/// Links the headers down to this height. Returns those that are new, for a store.
pub(super) async fn link(
    source: &ForkSource,
    state: &ForkState,
    to: u64,
) -> Result<Vec<VerifiedHeader>, ForkError> {
    if state.block.number.saturating_sub(to) > MOST_BELOW {
        return Err(ForkError::TooDeep { number: to, most: MOST_BELOW });
    }
    let mut linked = Vec::new();
    loop {
        let lowest = state.parts().lowest().unwrap_or_else(|| state.block.clone());
        if lowest.number <= to {
            return Ok(linked);
        }
        let new = below(source, &state.network, &lowest, to).await?;
        let mut parts = state.parts();
        for header in new {
            linked.push(header.clone());
            parts.add_header(header);
        }
    }
}

/// The ancestors of a header down to a height, or as many as are asked for at once.
pub(super) async fn below(
    source: &ForkSource,
    network: &Network,
    header: &VerifiedHeader,
    to: u64,
) -> Result<Vec<VerifiedHeader>, ForkError> {
    let to = to.max(header.number.saturating_sub(HEADERS_AT_ONCE));
    let numbers: Vec<u64> = (to..header.number).rev().collect();
    let by_number =
        |number: &u64| UpstreamRequest::new("eth_getBlockByNumber", format!(r#"["{number:#x}",false]"#));
    let requests: Vec<UpstreamRequest> = numbers.iter().map(by_number).collect();
    let linked = source
        .first(&requests, |upstream, results| {
            let (mut child, mut linked) = (header.clone(), Vec::new());
            for (number, result) in numbers.iter().zip(results) {
                let what = format!("header of block {number}");
                let text = given(upstream, &what, Some(result))?;
                let text = text.ok_or_else(|| ForkError::NoBlock {
                    name: upstream.name().to_owned(),
                    number: *number,
                })?;
                let Ok(found) = shown(&text, child.parent_hash, network) else {
                    // The header's raw form is requested below.
                    return Ok((child, linked));
                };
                child = child.parent_from(found).ok_or_else(|| refuted(upstream, &what, "another hash"))?;
                linked.push(child.clone());
            }
            Ok((child, linked))
        })
        .await?;
    let (child, mut linked) = linked;
    if child.number > to {
        let hash = child.parent_hash;
        let found = raw(source, network, hash).await?;
        let name = || ForkError::NoBlockHash {
            name: source.upstreams.first().map_or_else(String::new, |one| one.name().to_owned()),
            hash,
        };
        linked.push(child.parent_from(found).ok_or_else(name)?);
    }
    Ok(linked)
}

/// A header as a block object shows it, if that shows all of it.
fn shown(text: &str, hash: B256, network: &Network) -> Result<SealedHeader, String> {
    header_from_json(text, Some(hash), &|number| network.header_shape(number))
        .map_err(|error| error.to_string())
}

/// The header with a hash, from its block object or, as that may hide a part, from its raw form.
pub(super) async fn raw(
    source: &ForkSource,
    network: &Network,
    hash: B256,
) -> Result<SealedHeader, ForkError> {
    let requests = [
        UpstreamRequest::new("eth_getBlockByHash", format!(r#"["{hash}",false]"#)),
        UpstreamRequest::new("rsk_getRawBlockHeaderByHash", format!(r#"["{hash}"]"#)),
    ];
    let what = format!("header {hash}");
    source
        .first(&requests, |upstream, results| {
            let mut results = results.into_iter();
            let none = || ForkError::NoBlockHash { name: upstream.name().to_owned(), hash };
            let block = given(upstream, &what, results.next())?.ok_or_else(none)?;
            let reason = match shown(&block, hash, network) {
                Ok(found) => return Ok(found),
                Err(reason) => reason,
            };
            let raw = given(upstream, &what, results.next()).ok().flatten();
            let raw = raw.ok_or_else(|| refuted(upstream, &what, &reason))?;
            let found = prove::raw_header(&raw, &block, network).ok();
            found.filter(|found| found.hash() == hash).ok_or_else(|| refuted(upstream, &what, reason))
        })
        .await
}

/// Fetches the transactions and receipts of blocks whose headers are linked.
pub(super) async fn contents(
    source: &ForkSource,
    state: &ForkState,
    numbers: &BTreeSet<u64>,
) -> Result<(), ForkError> {
    if numbers.len() > MOST_CONTENTS {
        return Err(ForkError::TooMuch(MOST_CONTENTS));
    }
    let headers: Vec<VerifiedHeader> = {
        let mut parts = state.parts();
        if parts.contents.len().saturating_add(numbers.len()) > MOST_CONTENTS {
            parts.contents.clear();
        }
        numbers.iter().filter_map(|number| parts.headers.get(number).cloned()).collect()
    };
    let of_block = |header: &VerifiedHeader| {
        UpstreamRequest::new("eth_getBlockByHash", format!(r#"["{}",true]"#, header.hash()))
    };
    let requests: Vec<UpstreamRequest> = headers.iter().map(of_block).collect();
    let network = &*state.network;
    let bodies = source
        .first(&requests, |upstream, results| {
            headers
                .iter()
                .zip(results)
                .map(|(header, result)| body(upstream, network, header, result))
                .collect::<Result<Vec<_>, _>>()
        })
        .await?;
    let of_receipt =
        |hash: &B256| UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{hash}"]"#));
    let requests: Vec<UpstreamRequest> =
        bodies.iter().flat_map(|body| body.hashes()).map(of_receipt).collect();
    let blocks = source
        .first(&requests, |upstream, results| {
            let mut results = results.into_iter();
            let blocks = headers.iter().zip(&bodies).map(|(header, body)| {
                let of: Vec<UpstreamResult> = results.by_ref().take(body.hashes().len()).collect();
                stored(upstream, network, (header, body), of)
            });
            blocks.collect::<Result<Vec<_>, _>>()
        })
        .await?;
    let mut parts = state.parts();
    for (header, block) in headers.iter().zip(blocks) {
        parts.contents.insert(header.number, Arc::new(block));
    }
    Ok(())
}

fn body(
    upstream: &SharedUpstream,
    network: &Network,
    header: &VerifiedHeader,
    result: UpstreamResult,
) -> Result<VerifiedBody, ForkError> {
    let what = format!("transactions of block {}", header.number);
    let none = || ForkError::NoBlockHash { name: upstream.name().to_owned(), hash: header.hash() };
    let text = given(upstream, &what, Some(result))?.ok_or_else(none)?;
    let block = block_with_header(&text, header.sealed().clone(), network.chain_id);
    let block = block.map_err(|error| refuted(upstream, &what, error))?;
    let transactions =
        block.transactions.into_full().ok_or_else(|| refuted(upstream, &what, "only hashes"))?;
    VerifiedBody::check(header, transactions, network).map_err(|error| refuted(upstream, &what, error))
}

fn stored(
    upstream: &SharedUpstream,
    network: &Network,
    (header, body): (&VerifiedHeader, &VerifiedBody),
    results: Vec<UpstreamResult>,
) -> Result<StoredBlock, ForkError> {
    let what = format!("receipts of block {}", header.number);
    let refute = |reason: String| refuted(upstream, &what, reason);
    let mut receipts: Vec<Receipt> = Vec::new();
    for result in results {
        let text = given(upstream, &what, Some(result))?.ok_or_else(|| refute("there is none".to_owned()))?;
        receipts.push(receipt_from_json(&text).map_err(|error| refute(error.to_string()))?);
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

/// Fetches the uncles of blocks whose headers are linked.
pub(super) async fn uncles(
    source: &ForkSource,
    state: &ForkState,
    numbers: &BTreeSet<u64>,
) -> Result<(), ForkError> {
    for number in numbers {
        let header = state.parts().headers.get(number).cloned();
        let Some(header) = header else { continue };
        let count = if header.uncles_hash == EMPTY_UNCLES_HASH { 0 } else { header.uncle_count.min(10) };
        let at = |index| {
            UpstreamRequest::new(
                "eth_getUncleByBlockHashAndIndex",
                format!(r#"["{}","{index:#x}"]"#, header.hash()),
            )
        };
        let requests: Vec<UpstreamRequest> = (0..count).map(at).collect();
        let what = format!("uncles of block {number}");
        let read = |upstream: &SharedUpstream, results: Vec<UpstreamResult>| {
            let mut uncles: Vec<Header> = Vec::new();
            for result in results {
                let text = given(upstream, &what, Some(result))?;
                let text = text.ok_or_else(|| refuted(upstream, &what, "there is none"))?;
                let found = header_from_json(&text, None, &|number| state.network.header_shape(number));
                uncles.push(found.map_err(|error| refuted(upstream, &what, error))?.into_header());
            }
            VerifiedUncles::check(&header, uncles).map_err(|error| refuted(upstream, &what, error))
        };
        let found = match count {
            0 => VerifiedUncles::check(&header, Vec::new())
                .map_err(|error| ForkError::Upstream(error.to_string()))?,
            _ => source.first(&requests, read).await?,
        };
        state.parts().uncles.insert(*number, Arc::new(found));
    }
    Ok(())
}

/// Looks up where transactions are. Their blocks show it.
pub(super) async fn places(
    source: &ForkSource,
    state: &ForkState,
    hashes: &BTreeSet<B256>,
) -> Result<(), ForkError> {
    for hash in hashes {
        let request = UpstreamRequest::new("eth_getTransactionReceipt", format!(r#"["{hash}"]"#));
        let what = format!("place of transaction {hash}");
        let stated = source
            .first(&[request], |upstream, results| {
                let Some(text) = given(upstream, &what, results.into_iter().next())? else { return Ok(None) };
                location_from_json(&text).map_err(|error| refuted(upstream, &what, error))
            })
            .await?;
        let number =
            stated.as_ref().map(|place| place.block_number).filter(|number| *number <= state.block.number);
        let mut place = None;
        if let Some(number) = number {
            link(source, state, number).await?;
            if !state.parts().contents.contains_key(&number) {
                contents(source, state, &BTreeSet::from([number])).await?;
            }
            place = placed(&state.parts(), number, hash);
        }
        let mut parts = state.parts();
        if parts.places.len() >= MOST_PLACES {
            parts.places.clear();
        }
        parts.places.insert(*hash, place);
    }
    Ok(())
}

fn placed(parts: &Parts, number: u64, hash: &B256) -> Option<(B256, usize)> {
    let block = parts.contents.get(&number)?;
    Some((parts.headers.get(&number)?.hash(), block.body.position(hash)?))
}

/// Looks up headers by hashes that are not those of linked ones.
pub(super) async fn headers_of(
    source: &ForkSource,
    state: &ForkState,
    hashes: &BTreeSet<B256>,
) -> Result<(), ForkError> {
    for hash in hashes {
        let found = match raw(source, &state.network, *hash).await {
            Ok(found) => Some(found.number),
            Err(ForkError::NoBlockHash { .. }) => None,
            Err(error) => return Err(error),
        };
        let number = found.filter(|number| *number < state.block.number);
        if let Some(number) = number {
            link(source, state, number).await?;
        }
        let mut parts = state.parts();
        if !parts.numbers.contains_key(hash) {
            if parts.unknown_hashes.len() >= MOST_PLACES {
                parts.unknown_hashes.clear();
            }
            parts.unknown_hashes.insert(*hash);
        }
    }
    Ok(())
}
