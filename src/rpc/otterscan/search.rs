//! `ots_searchTransactionsBefore` and `ots_searchTransactionsAfter`: the transactions in which an address takes part.
//!
//! No index has inner calls, so blocks are executed again, up to a limit for each request.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use alloy_primitives::{Address, U256};
use serde_json::{Value, json, to_value};

use crate::{
    consensus::VerifiedBody,
    engine::{BlockHeader, Refusal, Stop, View, newest_answerable_height},
    exec::trace::{TraceAction, TraceNode, Tracer, TransactionTrace},
    rpc::{
        error::RpcError,
        method::{Failure, HandlerResult, verified},
        params::Params,
        render,
        trace::traces,
    },
    state::Facts,
    types::json::Quantity,
};

/// Most blocks of one search. Those without transactions other than REMASC's are only looked at.
const MAX_BLOCKS: u64 = 10_000;

/// Most transactions after which a page ends, whatever its request says: all of them are in memory at once.
const MAX_PAGE: usize = 100;

type Found = (BlockHeader, Arc<VerifiedBody>, usize);

/// The results of a search, in its order, and whether it came to the end of the chain.
#[derive(Default)]
struct SearchPage {
    found: Vec<Found>,
    ended: bool,
}

/// The page of transactions before a block, or the newest ones for block 0.
pub(super) fn before(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (address, block, size) = read(params)?;
    let newest = newest_answerable_height(view)?;
    let first = block == 0 || block > newest;
    let from = if first { newest } else { block.saturating_sub(1) };
    let page = search(view, &address, Box::new((1..=from).rev()), size)?;
    show(view, page.found, first, page.ended)
}

/// The page of transactions after a block, or the oldest ones for block 0.
pub(super) fn after(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let (address, block, size) = read(params)?;
    let newest = newest_answerable_height(view)?;
    let page = search(view, &address, Box::new(block.saturating_add(1)..=newest), size)?;
    show(view, page.found, page.ended, block == 0)
}

fn read(params: Params<'_>) -> Result<(Address, u64, usize), Failure> {
    let block = params.number(1)?.saturating_to();
    let size: U256 = params.number(2)?;
    Ok((params.address(0)?, block, size.saturating_to::<usize>().clamp(1, MAX_PAGE)))
}

/// Searches these blocks until a page is full. A page has all transactions of its last block.
fn search(
    view: &dyn View,
    address: &Address,
    numbers: Box<dyn Iterator<Item = u64>>,
    size: usize,
) -> Result<SearchPage, Failure> {
    let max = view.policy().max_traced_blocks.min(MAX_BLOCKS);
    let (mut page, mut missing) = (SearchPage::default(), Facts::new());
    for (searched, number) in (0..).zip(numbers) {
        if view.policy().interrupted() {
            return Err(Failure::Stop(Stop::Refused(Refusal::Interrupted)));
        }
        if page.found.len() >= size || searched == max {
            return full(page, missing, max);
        }
        match of_block(view, number, address) {
            // Later blocks are tried too, so that all missing facts are requested together.
            Err(Failure::Stop(Stop::Missing(facts))) => missing.extend(facts),
            // For example where states are no longer kept: what was found up to there is a page.
            Err(Failure::Stop(Stop::Refused(_))) if !page.found.is_empty() => {
                return full(page, missing, max);
            }
            found => page.found.extend(found?),
        }
    }
    page.ended = true;
    full(page, missing, u64::MAX)
}

fn full(page: SearchPage, missing: Facts, max: u64) -> Result<SearchPage, Failure> {
    if !missing.is_empty() {
        return Err(Failure::Stop(Stop::Missing(missing)));
    }
    // Without a transaction there is no place from which to ask on.
    if page.found.is_empty() && !page.ended {
        return Err(Failure::Stop(Stop::Refused(Refusal::TooManyBlocks { max })));
    }
    Ok(page)
}

/// The transactions of a block in which the address takes part.
fn of_block(view: &dyn View, number: u64, address: &Address) -> Result<Vec<Found>, Failure> {
    let Some(header) = view.header_by_number(number)? else { return Ok(Vec::new()) };
    let body = view.body(&header)?;
    if body.transactions().len() <= 1 {
        return Ok(Vec::new());
    }
    let traces = traces(view, &header, Tracer::CALLS, None)?;
    let takes_part = |index: usize| {
        let transaction = body.transactions().get(index);
        transaction.is_some_and(|transaction| transaction.to == Some(*address))
            || traces.get(index).is_some_and(|trace| mentions(trace, address))
    };
    let indices = (0..body.transactions().len()).filter(|index| takes_part(*index));
    Ok(indices.map(|index| (header.clone(), body.clone(), index)).collect())
}

fn mentions(trace: &TransactionTrace, address: &Address) -> bool {
    let nodes = trace.calls.iter().flat_map(|calls| calls.nodes.iter());
    trace.sender == *address || nodes.into_iter().any(|node| names(node, address))
}

fn names(node: &TraceNode, address: &Address) -> bool {
    let created = node.close.as_ref().and_then(|close| close.created);
    created == Some(*address)
        || match &node.action {
            TraceAction::Frame(start) => start.from == *address || start.to == Some(*address),
            TraceAction::Destruction { contract, beneficiary, .. } => {
                contract == address || beneficiary == address
            }
        }
}

/// The page, the newest transactions first, also those of one block, as in Erigon and anvil.
fn show(view: &dyn View, mut found: Vec<Found>, first: bool, last: bool) -> HandlerResult {
    found.sort_by_key(|(header, _, index)| core::cmp::Reverse((header.number, *index)));
    let (mut transactions, mut outcomes) = (Vec::new(), Vec::new());
    for (header, body, index) in &found {
        transactions.push(to_value(render::transaction(view, header, body, *index)?)?);
        let receipts = view.receipts(header)?;
        let mut receipt = to_value(render::receipt(view, header, body, &receipts, *index)?)?;
        let Value::Object(members) = &mut receipt else { return Err(RpcError::Internal.into()) };
        members.insert("timestamp".into(), to_value(Quantity::from(header.timestamp))?);
        // Otterscan's page refuses logs without this member, which receipts of Rootstock do not have.
        for log in members.get_mut("logs").and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::Object(fields) = log {
                fields.insert("removed".into(), Value::Bool(false));
            }
        }
        outcomes.push(receipt);
    }
    verified(&json!({"txs": transactions, "receipts": outcomes, "firstPage": first, "lastPage": last}))
}
