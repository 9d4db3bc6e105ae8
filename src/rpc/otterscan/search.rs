//! `ots_searchTransactionsBefore` and `ots_searchTransactionsAfter`: the transactions in which an address takes part.
//!
//! An address also takes part through inner calls, which no index of this client has. Therefore the search executes blocks
//! again, up to a limit for each request.

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

/// Most blocks of one search; the documentation of the methods states the number. Blocks whose only transaction is that which
/// calls REMASC (it pays miners, last in each block) are not executed.
const MAX_BLOCKS: u64 = 10_000;

/// Most transactions after which a page ends, even if the request allows more. All transactions of a page are in memory at once.
const MAX_PAGE: usize = 100;

/// A transaction, as its block, the block's transactions, and its index among them.
type FoundTransaction = (BlockHeader, Arc<VerifiedBody>, usize);

/// The results of a search.
#[derive(Default)]
struct SearchPage {
    /// The transactions, in the order of the search.
    found: Vec<FoundTransaction>,
    /// Whether the search came to the last block in its direction.
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

/// The address, the number of the block, and the size of the page, which has at least one transaction.
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
            return checked(page, missing, max);
        }
        match of_block(view, number, address) {
            // The search goes on after missing facts, so that those of all blocks are requested together.
            Err(Failure::Stop(Stop::Missing(facts))) => missing.extend(facts),
            // A refused block, such as one whose state is no longer kept, ends the page if it has transactions.
            Err(Failure::Stop(Stop::Refused(_))) if !page.found.is_empty() => {
                return checked(page, missing, max);
            }
            found => page.found.extend(found?),
        }
    }
    page.ended = true;
    checked(page, missing, max)
}

/// The page, unless facts are missing, or the search ended after `max` blocks without a transaction.
fn checked(page: SearchPage, missing: Facts, max: u64) -> Result<SearchPage, Failure> {
    if !missing.is_empty() {
        return Err(Failure::Stop(Stop::Missing(missing)));
    }
    // The caller continues from the block of the last transaction of a page, so that an empty page cannot be continued.
    if page.found.is_empty() && !page.ended {
        return Err(Failure::Stop(Stop::Refused(Refusal::TooManyBlocks { max })));
    }
    Ok(page)
}

/// The transactions of a block in which the address takes part.
fn of_block(view: &dyn View, number: u64, address: &Address) -> Result<Vec<FoundTransaction>, Failure> {
    let Some(header) = view.header_by_number(number)? else { return Ok(Vec::new()) };
    let body = view.body(&header)?;
    // The only transaction calls REMASC.
    if body.transactions().len() <= 1 {
        return Ok(Vec::new());
    }
    // `None`: of all transactions of the block.
    let traces = traces(view, &header, Tracer::CALLS, None)?;
    let takes_part = |index: usize| {
        let transaction = body.transactions().get(index);
        transaction.is_some_and(|transaction| transaction.to == Some(*address))
            || traces.get(index).is_some_and(|trace| mentions(trace, address))
    };
    let indices = (0..body.transactions().len()).filter(|index| takes_part(*index));
    Ok(indices.map(|index| (header.clone(), body.clone(), index)).collect())
}

/// Whether an address is the sender of a transaction, or takes part in one of its calls.
fn mentions(trace: &TransactionTrace, address: &Address) -> bool {
    let nodes = trace.calls.iter().flat_map(|calls| calls.nodes.iter());
    trace.sender == *address || nodes.into_iter().any(|node| entry_mentions(node, address))
}

/// Whether an address is the caller, the callee, the new contract or the beneficiary of an entry.
fn entry_mentions(node: &TraceNode, address: &Address) -> bool {
    let created = node.close.as_ref().and_then(|close| close.created);
    created == Some(*address)
        || match &node.action {
            TraceAction::Frame(start) => start.from == *address || start.to == Some(*address),
            TraceAction::Destruction { contract, beneficiary, .. } => {
                contract == address || beneficiary == address
            }
        }
}

/// The page as an answer: the newest transactions first, also among those of one block, as in Erigon and anvil. `first` and
/// `last` tell whether the page has the newest and the oldest transaction of the address.
fn show(view: &dyn View, mut found: Vec<FoundTransaction>, first: bool, last: bool) -> HandlerResult {
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
