//! `ots_*`: the methods that the block explorer Otterscan calls besides the usual ones (its docs/custom-jsonrpc.md, API level 8),
//! and `erigon_getHeaderByNumber`, by which its page recognizes a node with these methods. The page writes numbers of blocks as
//! JSON numbers.

mod search;

use alloc::{format, string::String, sync::Arc, vec::Vec};

use alloy_primitives::{Address, B256, U256, hex};
use serde::Serialize;
use serde_json::{Value, json, to_value};

use super::{
    blocks::by_hash,
    error::RpcError,
    lookup::{find, require},
    method::{
        AT_BLOCK, BLOCK_HASH, Failure, HandlerResult, Method, Param, Runs, THE_BLOCK, absent, account_of,
        contract_of, done, required, verified,
    },
    mode::Mode,
    params::{BlockParam, Params},
    raw, render,
    state::read,
    support::PARENT_STATE,
    trace::traces,
};
use crate::{
    consensus::VerifiedBody,
    engine::{BlockHeader, Level, TransactionLocation, View, newest_answerable_height},
    exec::{
        FrameKind,
        trace::{TraceAction, TraceNode, Tracer, TransactionTrace},
    },
    state::AccountState,
    types::json::{Data, Quantity},
};

/// The level of Otterscan's interface with these methods.
const API_LEVEL: u32 = 8;

const TRANSACTION: &[Param] = &[required("transactionHash", "HASH")];

const SEARCH: &[Param] =
    &[account_of("address"), required("blockNumber", "QUANTITY"), required("pageSize", "QUANTITY")];

pub(super) const METHODS: &[Method] = &[
    Method::local("ots_getApiLevel", &[], "JSON integer", "The level of the ots_ methods.", |_, _| {
        done(&API_LEVEL, Level::Local)
    }),
    Method::read(
        "erigon_getHeaderByNumber",
        &[THE_BLOCK],
        "header object or null",
        "As eth_getHeaderByNumber; the number of the block may be a JSON number.",
        |view, params| raw::header(view, by_block_param(view, params)?),
    )
    .costs(5),
    Method::read(
        "ots_hasCode",
        &[contract_of("address"), AT_BLOCK],
        "boolean",
        "Whether an address has code.",
        |view, params| {
            let header = require(view, &params.any_block(1)?)?;
            verified(&(account(view, &header, &params.address(0)?)?.code_size > 0))
        },
    ),
    Method::read(
        "ots_getBlockDetails",
        &[THE_BLOCK],
        "{block, issuance, totalFees} or null",
        "A block without its transactions, and its fees; Rootstock issues no coins.",
        |view, params| details(view, by_block_param(view, params)?),
    ),
    Method::read(
        "ots_getBlockDetailsByHash",
        &[BLOCK_HASH],
        "{block, issuance, totalFees} or null",
        "As ots_getBlockDetails, by hash.",
        |view, params| details(view, by_hash(view, params)?),
    ),
    Method::read(
        "ots_getBlockTransactions",
        &[THE_BLOCK, required("page", "QUANTITY"), required("pageSize", "QUANTITY")],
        "{fullblock, receipts} or null",
        "A page of a block's transactions with their receipts, without logs and data. Page 0 has the last ones.",
        transactions,
    )
    .costs(30),
    Method::read(
        "ots_getTransactionBySenderAndNonce",
        &[account_of("sender"), required("nonce", "QUANTITY")],
        "HASH or null",
        "The mined transaction of a sender with this nonce.",
        by_nonce,
    )
    .costs(300),
    Method::read(
        "eth_getTransactionBySenderAndNonce",
        &[account_of("sender"), required("nonce", "QUANTITY")],
        "transaction object or null",
        "As ots_getTransactionBySenderAndNonce, with the transaction.",
        |view, params| match sent_with(view, params)? {
            Some((header, body, index)) => {
                Ok(verified(&render::transaction(view, &header, &body, index)?)?.about(&header))
            }
            None => verified(&()),
        },
    )
    .costs(300),
    Method::read(
        "ots_getContractCreator",
        &[contract_of("address")],
        "{hash, creator} or null",
        "The transaction and the account that created a contract.",
        creator,
    )
    .limited(&[(Mode::Light, PARENT_STATE)])
    .costs(500),
    Method::read(
        "ots_searchTransactionsBefore",
        SEARCH,
        "{txs, receipts, firstPage, lastPage}",
        "Transactions in which an address takes part, inner calls included, in blocks before this one or the newest \
         (0). A page ends with a whole block; a request searches at most 10,000 blocks.",
        search::before,
    )
    .costs(1_000),
    Method::read(
        "ots_searchTransactionsAfter",
        SEARCH,
        "{txs, receipts, firstPage, lastPage}",
        "As ots_searchTransactionsBefore, in blocks after this one, the newest first.",
        search::after,
    )
    .costs(1_000),
    Method::read(
        "ots_getInternalOperations",
        TRANSACTION,
        "array of {type, from, to, value} or null",
        "Transfers (0), destructions (1) and creations (2, 3) inside a transaction.",
        |view, params| of_trace(view, params, operations),
    )
    .runs(Runs::Block)
    .costs(100),
    Method::read(
        "ots_getTransactionError",
        TRANSACTION,
        "DATA or null",
        "What a transaction gave with REVERT; empty for one that did not revert.",
        |view, params| of_trace(view, params, |trace| Data::from(revert_data(trace))),
    )
    .runs(Runs::Block)
    .costs(100),
    Method::read(
        "ots_traceTransaction",
        TRANSACTION,
        "array of calls or null",
        "The calls of a transaction in order, each with its depth.",
        |view, params| of_trace(view, params, calls),
    )
    .runs(Runs::Block)
    .costs(100),
];

/// The block that the first parameter names, which may be a JSON number.
fn by_block_param(view: &dyn View, params: Params<'_>) -> Result<Option<BlockHeader>, Failure> {
    find(view, &params.any_block(0)?)
}

/// The account after a block; an account that does not exist reads as empty.
fn account(view: &dyn View, header: &BlockHeader, address: &Address) -> Result<AccountState, Failure> {
    Ok(read(view, header, |state| state.account(address))?.unwrap_or(AccountState::EMPTY))
}

/// A block without its transactions, with its fees.
fn details(view: &dyn View, header: Option<BlockHeader>) -> HandlerResult {
    let Some(header) = header else { return absent() };
    let none = Quantity::default();
    let issuance = json!({"blockReward": none, "uncleReward": none, "issuance": none});
    let fees = Quantity::from(header.paid_fees);
    let block = block(view, &header, None)?;
    verified(&json!({"block": block, "issuance": issuance, "totalFees": fees}))
}

/// A block object with the number of its transactions, and with these transaction objects if there are any.
fn block(view: &dyn View, header: &BlockHeader, transactions: Option<Value>) -> Result<Value, Failure> {
    // `false`: with the hashes of the transactions, which are only counted.
    let mut shown = to_value(render::block(view, header, false)?)?;
    let Value::Object(members) = &mut shown else { return Err(RpcError::Internal.into()) };
    let all = members.remove("transactions");
    let count = all.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
    members.insert("transactionCount".into(), json!(count));
    members.insert("logsBloom".into(), Value::Null);
    members.extend(transactions.map(|transactions| (String::from("transactions"), transactions)));
    Ok(shown)
}

fn transactions(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let saturated = |number: U256| usize::try_from(number).unwrap_or(usize::MAX);
    let (page, size) = (saturated(params.number(1)?), saturated(params.number(2)?));
    let Some(header) = by_block_param(view, params)? else { return absent() };
    let (body, receipts) = render::body_and_receipts(view, &header)?;
    let end = body.transactions().len().saturating_sub(page.saturating_mul(size));
    let (mut shown, mut outcomes) = (Vec::new(), Vec::new());
    for index in end.saturating_sub(size)..end {
        let mut transaction = to_value(render::transaction(view, &header, &body, index)?)?;
        if let Some(Value::String(input)) = transaction.get_mut("input") {
            // Only the selector of the function stays: `0x` and 4 bytes in hex.
            input.truncate(2 + 2 * 4);
        }
        shown.push(transaction);
        let mut receipt = to_value(render::receipt(view, &header, &body, &receipts, index)?)?;
        for name in ["logs", "logsBloom"] {
            if let Some(member) = receipt.get_mut(name) {
                *member = Value::Null;
            }
        }
        outcomes.push(receipt);
    }
    verified(&json!({"fullblock": block(view, &header, Some(Value::Array(shown)))?, "receipts": outcomes}))
}

/// The block after which an account begins to meet a condition, found by bisection; `None` if it does not meet the condition
/// after the newest block. If the account has met and lost the condition several times, the result is one of these blocks.
fn first_block(
    view: &dyn View,
    address: &Address,
    condition: impl Fn(&AccountState) -> bool,
) -> Result<Option<BlockHeader>, Failure> {
    let check = |number: u64| -> Result<(BlockHeader, bool), Failure> {
        let header = require(view, &BlockParam::Number(Some(number), format!("{number:#x}")))?;
        let is_met = condition(&account(view, &header, address)?);
        Ok((header, is_met))
    };
    let (mut lowest, mut highest) = (0, newest_answerable_height(view)?);
    let (mut found, is_met) = check(highest)?;
    if !is_met {
        return Ok(None);
    }
    while lowest < highest {
        let middle = lowest.midpoint(highest);
        match check(middle)? {
            (header, true) => (found, highest) = (header, middle),
            (_, false) => lowest = middle.saturating_add(1),
        }
    }
    Ok(Some(found))
}

fn by_nonce(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let found = sent_with(view, params)?;
    verified(&found.as_ref().and_then(|(_, body, index)| body.hashes().get(*index)))
}

/// The transaction of the sender and nonce that the parameters name: its block, the block's transactions, and its index.
fn sent_with(
    view: &dyn View,
    params: Params<'_>,
) -> Result<Option<(BlockHeader, Arc<VerifiedBody>, usize)>, Failure> {
    let (sender, nonce) = (params.address(0)?, params.number(1)?);
    let Some(header) = first_block(view, &sender, |account| U256::from(account.nonce) > nonce)? else {
        return Ok(None);
    };
    let body = view.body(&header)?;
    let matches = |(index, transaction): &(usize, &crate::types::Transaction)| {
        transaction.nonce.value() == nonce
            && view.sender(&header.hash(), *index, transaction).is_ok_and(|found| found == sender)
    };
    let index = body.transactions().iter().enumerate().find(matches).map(|(index, _)| index);
    Ok(index.map(|index| (header, body, index)))
}

/// `ots_getContractCreator`.
fn creator(view: &dyn View, params: Params<'_>) -> HandlerResult {
    #[derive(Serialize)]
    struct Created {
        hash: B256,
        creator: Address,
    }
    let address = params.address(0)?;
    let Some(header) = first_block(view, &address, |account| account.code_size > 0)? else {
        return verified(&());
    };
    // `None`: of all transactions of the block.
    let traces = traces(view, &header, Tracer::CALLS, None)?;
    let entries = traces.iter().flat_map(|trace| not_undone(trace).map(move |(_, node)| (trace, node)));
    let creations = entries.filter(|(_, node)| {
        let created = node.close.as_ref().and_then(|close| close.created);
        created == Some(address)
    });
    // If the address was created, destroyed and created again in this block, the last creation made the present contract.
    let last = creations.filter_map(|(trace, node)| Some((trace.hash(), node.frame()?.from))).last();
    verified(&last.map(|(hash, creator)| Created { hash, creator }))
}

/// An answer made of the trace of the transaction in the first parameter.
fn of_trace<T: Serialize>(
    view: &dyn View,
    params: Params<'_>,
    show: impl FnOnce(&TransactionTrace) -> T,
) -> HandlerResult {
    // `None`: the caller gives the hash only, not the transaction.
    let TransactionLocation::Mined(header, index) = view.locate(params.hash(0, "transaction hash")?, None)?
    else {
        return absent();
    };
    let traces = traces(view, &header, Tracer::CALLS, Some(index))?;
    Ok(verified(&traces.first().map(show))?.about(&header))
}

/// The entries that no failure has undone, each with its depth.
fn not_undone(trace: &TransactionTrace) -> impl Iterator<Item = (usize, &TraceNode)> {
    let calls = trace.calls.iter();
    calls.flat_map(|calls| {
        let entries = calls.nodes.iter().enumerate();
        entries.filter(|(index, _)| !calls.is_undone(*index)).map(|(_, node)| (depth(trace, node), node))
    })
}

/// The number of entries around an entry; 0 for the outermost entry, which is the transaction itself.
fn depth(trace: &TransactionTrace, node: &TraceNode) -> usize {
    let (mut depth, mut at) = (0_usize, node.parent);
    while let Some(parent) = at {
        depth = depth.saturating_add(1);
        at = trace.calls.as_ref().and_then(|calls| calls.nodes.get(parent)).and_then(|node| node.parent);
    }
    depth
}

/// A transfer, destruction or creation inside a transaction.
#[derive(Serialize)]
struct Operation {
    /// 0 for a transfer, 1 for a destruction, 2 for CREATE, 3 for CREATE2.
    #[serde(rename = "type")]
    kind: u8,
    from: Address,
    to: Option<Address>,
    value: Quantity,
}

/// The transfers, destructions and creations inside a transaction, in order.
fn operations(trace: &TransactionTrace) -> Vec<Operation> {
    let inner = not_undone(trace).filter(|(depth, _)| *depth > 0);
    let operation = |(_, node): (usize, &TraceNode)| {
        let (kind, from, to, value) = match &node.action {
            TraceAction::Destruction { contract, beneficiary, balance } => {
                (1, *contract, Some(*beneficiary), *balance)
            }
            TraceAction::Frame(start) => {
                let created = node.close.as_ref().and_then(|close| close.created);
                match start.kind {
                    FrameKind::Call if !start.value.is_zero() => (0, start.from, start.to, start.value),
                    FrameKind::Create => (2, start.from, created, start.value),
                    FrameKind::Create2 => (3, start.from, created, start.value),
                    // A call without value, or of a kind that moves no coins to another account.
                    _ => return None,
                }
            }
        };
        Some(Operation { kind, from, to, value: value.into() })
    };
    inner.filter_map(operation).collect()
}

/// The data with which a transaction reverted; empty if it did not revert.
fn revert_data(trace: &TransactionTrace) -> alloy_primitives::Bytes {
    let root = trace.calls.as_ref().and_then(|calls| calls.nodes.first());
    let close = root.and_then(|root| root.close.as_ref());
    // `Some(None)` is a revert, `Some(Some(_))` a halt.
    close.filter(|close| close.failure == Some(None)).map(|close| close.output.clone()).unwrap_or_default()
}

/// A call of `ots_traceTransaction`.
#[derive(Serialize)]
struct CallEntry {
    #[serde(rename = "type")]
    kind: &'static str,
    depth: usize,
    from: Address,
    to: Option<Address>,
    /// `null` for calls that cannot move coins.
    value: Option<Quantity>,
    input: String,
    output: String,
}

/// The calls of a transaction, failed ones too. Calls of native contracts are left out, as in the other traces.
fn calls(trace: &TransactionTrace) -> Vec<CallEntry> {
    let nodes = trace.calls.iter().flat_map(|calls| calls.nodes.iter());
    let shown = nodes.filter(|node| !node.is_inner_native());
    shown.map(|node| entry(depth(trace, node), node)).collect()
}

fn entry(depth: usize, node: &TraceNode) -> CallEntry {
    let close = node.close.as_ref();
    let output = close.map_or_else(|| "0x".into(), |close| hex::encode_prefixed(&close.output));
    match &node.action {
        TraceAction::Destruction { contract, beneficiary, balance } => CallEntry {
            kind: "SELFDESTRUCT",
            depth,
            from: *contract,
            to: Some(*beneficiary),
            value: Some(Quantity(*balance)),
            input: "0x".into(),
            output,
        },
        TraceAction::Frame(start) => CallEntry {
            kind: start.kind.opcode_name(),
            depth,
            from: start.from,
            to: start.to.or_else(|| close.and_then(|close| close.created)),
            value: match start.kind {
                FrameKind::DelegateCall | FrameKind::StaticCall => None,
                _ => Some(Quantity(start.value)),
            },
            input: hex::encode_prefixed(&start.input),
            output,
        },
    }
}
