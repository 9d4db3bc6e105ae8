//! Fetches headers: of the block on which a fork begins, and of its ancestors, each of which the parent hash of its child proves.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::B256;

use super::error::ForkError;
use super::exchanges::{Exchanges, Fetched, given, refuted};
use super::state::ForkState;
use super::values::on_branch;
use crate::consensus::{ChainView, Checkpoint, HeaderChain, Network, VerifiedHeader};
use crate::light::{UpstreamRequest, prove};
use crate::types::SealedHeader;
use crate::types::json::header_from_json;

/// Headers that one exchange requests, which bounds the memory and the time of its responses.
const HEADERS_AT_ONCE: u64 = 50;

/// How many blocks below the fork's block can be read at most: each header down to the requested one is fetched and stored.
const MOST_BELOW: u64 = 100_000;

/// The request for a block by its height, with hashes of transactions only.
fn by_number(number: u64) -> UpstreamRequest {
    UpstreamRequest::new("eth_getBlockByNumber", format!(r#"["{number:#x}",false]"#))
}

/// The ancestors of a header in descending order, down to the height `to` or as many as one exchange requests.
pub(super) fn below(
    exchanges: &mut Exchanges,
    network: &Network,
    header: &VerifiedHeader,
    to: u64,
) -> Fetched<Vec<VerifiedHeader>> {
    let to = to.max(header.number.saturating_sub(HEADERS_AT_ONCE));
    let numbers: Vec<u64> = (to..header.number).rev().collect();
    let requests: Vec<UpstreamRequest> = numbers.iter().copied().map(by_number).collect();
    let (child, mut linked) = exchanges.first(&requests, |name, responses| {
        let (mut child, mut linked) = (header.clone(), Vec::new());
        for (number, response) in numbers.iter().zip(responses) {
            let what = format!("header of block {number}");
            let none = || ForkError::NoBlock { name: name.to_owned(), number: *number };
            let text = given(name, &what, Some(response))?.ok_or_else(none)?;
            let Ok(found) = header_from_object(text, child.parent_hash, network) else {
                // The header's raw form is requested below.
                return Ok((child, linked));
            };
            child = child.parent_from(found).ok_or_else(|| refuted(name, &what, "another hash"))?;
            linked.push(child.clone());
        }
        Ok((child, linked))
    })?;
    if child.number > to {
        let hash = child.parent_hash;
        let found = header_with_hash(exchanges, network, hash)?;
        let none = || ForkError::NoBlockHash { name: exchanges.first_name(), hash };
        linked.push(child.parent_from(found).ok_or_else(none)?);
    }
    Ok(linked)
}

/// Fetches the headers down to this height and adds them to the linked ones. A linked header is a proven ancestor of the fork's block.
pub(super) fn fetch_linked(exchanges: &mut Exchanges, state: &ForkState, to: u64) -> Fetched<()> {
    if state.block.number.saturating_sub(to) > MOST_BELOW {
        return Err(ForkError::TooDeep { number: to, most: MOST_BELOW }.into());
    }
    loop {
        let lowest = state.lowest();
        if lowest.number <= to {
            return Ok(());
        }
        let begun = exchanges.used();
        let new = below(exchanges, state.network(), &lowest, to)?;
        new.into_iter().for_each(|header| state.add_header(header));
        exchanges.forget(begun);
    }
}

/// The header with this hash from a block object. An error if the object leaves out fields on which the hash depends.
fn header_from_object(text: &str, hash: B256, network: &Network) -> Result<SealedHeader, String> {
    header_from_json(text, Some(hash), &|number| network.header_shape(number))
        .map_err(|error| error.to_string())
}

/// The header with a hash, from its block object or, because the object may leave out fields, from its raw form.
pub(super) fn header_with_hash(
    exchanges: &mut Exchanges,
    network: &Network,
    hash: B256,
) -> Fetched<SealedHeader> {
    let requests = [
        UpstreamRequest::new("eth_getBlockByHash", format!(r#"["{hash}",false]"#)),
        UpstreamRequest::new("rsk_getRawBlockHeaderByHash", format!(r#"["{hash}"]"#)),
    ];
    let what = format!("header {hash}");
    exchanges.first(&requests, |name, responses| {
        let none = || ForkError::NoBlockHash { name: name.to_owned(), hash };
        let block = given(name, &what, responses.first())?.ok_or_else(none)?;
        let reason = match header_from_object(block, hash, network) {
            Ok(found) => return Ok(found),
            Err(reason) => reason,
        };
        let raw = given(name, &what, responses.get(1)).ok().flatten();
        let raw = raw.ok_or_else(|| refuted(name, &what, &reason))?;
        let found = prove::raw_header(raw, block, network).ok();
        found.filter(|found| found.hash() == hash).ok_or_else(|| refuted(name, &what, reason))
    })
}

/// The header of a block whose hash is trusted, from an upstream that has the block on its chain.
pub(super) fn trusted_header(
    exchanges: &mut Exchanges,
    network: &Network,
    (number, hash): (u64, B256),
) -> Fetched<SealedHeader> {
    let header = header_with_hash(exchanges, network, hash)?;
    if header.number != number {
        return Err(ForkError::OtherNumber { number, found: header.number, hash }.into());
    }
    exchanges
        .first(&[by_number(number)], |name, responses| on_branch(name, number, hash, responses.first()))?;
    Ok(header)
}

/// Makes a verified header of one whose hash is trusted.
///
/// # Errors
/// None: a chain from a checkpoint only refuses a header of another number or hash, and this checkpoint has those of the header.
pub fn trusted_block(network: &Arc<Network>, header: SealedHeader) -> Result<VerifiedHeader, ForkError> {
    let checkpoint = Checkpoint { number: header.number, hash: header.hash(), total_difficulty: None };
    let chain = HeaderChain::from_checkpoint(network.clone(), &checkpoint, header);
    let chain = chain.map_err(|error| ForkError::Unverified(error.to_string()))?;
    Ok(chain.head().clone())
}

/// Whether the first upstream that answers has another block at this height than the one with this hash, or none: the block was
/// reorganised away, or the upstream is a development chain that has begun anew.
///
/// # Errors
/// [`super::Stop`]
pub fn is_replaced(exchanges: &mut Exchanges, number: u64, hash: B256) -> Fetched<bool> {
    exchanges.first(&[by_number(number)], |name, responses| {
        match on_branch(name, number, hash, responses.first()) {
            Err(ForkError::OffChain { .. } | ForkError::NoBlock { .. }) => Ok(true),
            checked => checked.map(|()| false),
        }
    })
}

/// The header of a verified chain that is nearest to the block of this height: the block's own, or the lowest of the chain if the block
/// is below, from which parent hashes lead down to it.
pub(super) fn nearest(
    exchanges: &Exchanges,
    chain: &ChainView,
    number: u64,
) -> Result<VerifiedHeader, ForkError> {
    if number > chain.head().number {
        return Err(ForkError::NoBlock { name: exchanges.first_name(), number });
    }
    let missing = || ForkError::Unverified(format!("it does not have block {number}"));
    chain.by_number(number.max(chain.lowest())).cloned().ok_or_else(missing)
}
