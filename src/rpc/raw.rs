//! Raw blocks, transactions and receipts, and headers alone, under the names that tools for Ethereum use.

use alloc::{format, vec::Vec};

use alloy_primitives::hex;
use serde_json::{Value, to_value};

use super::{
    blocks::{by_block_param, by_hash},
    error::RpcError,
    method::{BLOCK_HASH, HandlerResult, Method, Param, THE_BLOCK, absent, required, verified},
    params::Params,
    render,
    transactions::{BLOCK_INDEX, HASH_INDEX},
};
use crate::{
    engine::{BlockHeader, TransactionLocation, View, both},
    types::{
        Header, HeaderForm, Receipt,
        block::encode_block,
        json::{BlockParts, RpcTransactions},
    },
};

const TRANSACTION: &[Param] = &[required("transactionHash", "HASH")];

/// Members of a block object that do not follow from the header alone.
const BODY_MEMBERS: [&str; 5] = ["transactions", "uncles", "size", "totalDifficulty", "cumulativeDifficulty"];

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "debug_getRawHeader",
        &[THE_BLOCK],
        "DATA or null",
        "RLP of a header in the form that is hashed: its Keccak-256 is the block hash.",
        raw_header,
    )
    .costs(5),
    Method::read(
        "debug_getRawBlock",
        &[THE_BLOCK],
        "DATA or null",
        "RLP of a block: the header with all merged-mining fields, the transactions and the uncles.",
        raw_block,
    ),
    Method::read(
        "debug_getRawTransaction",
        TRANSACTION,
        "DATA or null",
        "RLP of a transaction, mined or pending.",
        raw_transaction,
    ),
    Method::read(
        "debug_getRawTransactions",
        &[THE_BLOCK],
        "array of DATA or null",
        "RLP of all transactions of a block.",
        raw_transactions,
    ),
    Method::read(
        "debug_getRawReceipts",
        &[THE_BLOCK],
        "array of DATA or null",
        "RLP of all receipts of a block, as the receipts trie holds them.",
        raw_receipts,
    )
    .costs(30),
    Method::read(
        "eth_getRawTransactionByHash",
        TRANSACTION,
        "DATA or null",
        "RLP of a transaction, mined or pending.",
        raw_transaction,
    ),
    Method::read(
        "eth_getRawTransactionByBlockHashAndIndex",
        HASH_INDEX,
        "DATA or null",
        "RLP of a transaction by its place in a block.",
        |view, params| raw_at_index(view, by_hash(view, params)?, params),
    ),
    Method::read(
        "eth_getRawTransactionByBlockNumberAndIndex",
        BLOCK_INDEX,
        "DATA or null",
        "RLP of a transaction by its place in a block.",
        |view, params| raw_at_index(view, by_block_param(view, params)?, params),
    ),
    Method::read(
        "eth_getHeaderByHash",
        &[BLOCK_HASH],
        "header object or null",
        "A header by hash: a block object without what needs the block's body.",
        |view, params| header(view, by_hash(view, params)?),
    )
    .costs(5),
    Method::read(
        "eth_getHeaderByNumber",
        &[THE_BLOCK],
        "header object or null",
        "A header of the canonical chain: a block object without what needs the block's body.",
        |view, params| header(view, by_block_param(view, params)?),
    )
    .costs(5),
];

fn raw_header(view: &dyn View, params: Params<'_>) -> HandlerResult {
    match by_block_param(view, params)? {
        Some(header) => verified(&hex::encode_prefixed(header.encode(HeaderForm::Hash))),
        None => absent(),
    }
}

fn raw_block(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let Some(header) = by_block_param(view, params)? else { return absent() };
    if !view.shows_work(&header) {
        return Err(unproven_work(&header).into());
    }
    let (body, uncles) = both(view.body(&header), view.uncles(&header))?;
    let uncles: Vec<Header> = uncles.headers().iter().map(|uncle| uncle.header().clone()).collect();
    verified(&hex::encode_prefixed(encode_block(&header, body.transactions(), &uncles)))
}

/// The error for a block whose proof of work is not proven: from RSKIP-92 on, the hash of a header does not cover its Merkle
/// proof and its Bitcoin coinbase, which are in the block's RLP.
fn unproven_work(header: &BlockHeader) -> RpcError {
    let (number, hash) = (header.number, header.hash());
    RpcError::unavailable(&format!(
        "upstreams gave no valid Merkle proof and coinbase of block {number} ({hash}); debug_getRawHeader needs neither"
    ))
}

/// The hash proves the content of a transaction, so that a pending one is verified too, whichever upstream supplies it.
fn raw_transaction(view: &dyn View, params: Params<'_>) -> HandlerResult {
    // `None`: the caller gives the hash only, not the transaction.
    match view.locate(params.hash(0, "transaction hash")?, None)? {
        TransactionLocation::Unknown => absent(),
        TransactionLocation::Pending(transaction) => verified(&hex::encode_prefixed(transaction.encode())),
        TransactionLocation::Mined(header, index) => {
            let body = view.body(&header)?;
            let raw = body.transactions().get(index).map(|found| hex::encode_prefixed(found.encode()));
            Ok(verified(&raw)?.about(&header))
        }
    }
}

/// The transaction of a block at the index in the second parameter.
fn raw_at_index(view: &dyn View, header: Option<BlockHeader>, params: Params<'_>) -> HandlerResult {
    let index = params.index(1)?;
    let Some(header) = header else { return absent() };
    let body = view.body(&header)?;
    verified(&body.transactions().get(index).map(|found| hex::encode_prefixed(found.encode())))
}

fn raw_transactions(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let Some(header) = by_block_param(view, params)? else { return absent() };
    let body = view.body(&header)?;
    let encoded = body.transactions().iter().map(|transaction| hex::encode_prefixed(transaction.encode()));
    verified(&encoded.collect::<Vec<_>>())
}

fn raw_receipts(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let Some(header) = by_block_param(view, params)? else { return absent() };
    let receipts = view.receipts(&header)?;
    let encoded = receipts.receipts().iter().map(Receipt::encode);
    verified(&encoded.map(hex::encode_prefixed).collect::<Vec<_>>())
}

/// A header object: a block object without the members that need the block's body.
pub(super) fn header(view: &dyn View, header: Option<BlockHeader>) -> HandlerResult {
    let Some(header) = header else { return absent() };
    let transactions = RpcTransactions::Hashes(Vec::new());
    let parts = BlockParts { transactions, uncles: None, total_difficulty: None, size: None };
    let mut object = to_value(render::from_parts(view, &header, parts))?;
    if let Value::Object(members) = &mut object {
        members.retain(|name, _| !BODY_MEMBERS.contains(&name.as_str()));
    }
    verified(&object)
}
