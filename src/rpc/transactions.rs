//! Transactions and receipts.

use super::{
    blocks::{by_hash, by_selector},
    error::ParamError,
    method::{
        BLOCK_HASH, Done, Failure, Handler, Method, Pages, Param, THE_BLOCK, absent, done, optional,
        required, told, verified,
    },
    params::Params,
    render, signed,
};
use crate::{
    engine::{BlockHeader, Level, Refusal, Stop, TransactionPlace, View},
    types::{Transaction, json::RpcTransaction},
};

const TRANSACTION: &[Param] = &[required("transactionHash", "HASH"), optional("rawTransaction", "DATA")];
const HASH_INDEX: &[Param] = &[BLOCK_HASH, required("index", "QUANTITY")];
const BLOCK_INDEX: &[Param] = &[THE_BLOCK, required("index", "QUANTITY")];

pub(super) const METHODS: &[Method] = &[
    Method {
        name: "eth_getTransactionByHash",
        aliases: &[],
        params: TRANSACTION,
        result: told("transaction object or null"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told(
            "A transaction of the canonical chain, or a pending one. If the signed transaction is given too, the nonce of its sender can prove that it is not mined yet.",
        ),
        handler: Handler::Read(by_transaction_hash),
    },
    Method {
        name: "eth_getTransactionByBlockHashAndIndex",
        aliases: &[],
        params: HASH_INDEX,
        result: told("transaction object or null"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told("A transaction by its place in a block."),
        handler: Handler::Read(|view, params| at_index(view, by_hash(view, params)?, params)),
    },
    Method {
        name: "eth_getTransactionByBlockNumberAndIndex",
        aliases: &[],
        params: BLOCK_INDEX,
        result: told("transaction object or null"),
        level: Level::Verified,
        cost: 10,
        pages: Pages::Any,
        doc: told("A transaction by its place in a block."),
        handler: Handler::Read(|view, params| at_index(view, by_selector(view, params)?, params)),
    },
    Method {
        name: "eth_getTransactionReceipt",
        aliases: &[],
        params: TRANSACTION,
        result: told("receipt object or null"),
        level: Level::Verified,
        cost: 20,
        pages: Pages::Any,
        doc: told(
            "The receipt of a mined transaction, proven with all receipts of its block. If the signed transaction is given too, the nonce of its sender can prove that there is none yet.",
        ),
        handler: Handler::Read(receipt),
    },
    Method {
        name: "eth_getBlockReceipts",
        aliases: &[],
        params: &[THE_BLOCK],
        result: told("array of receipt objects or null"),
        level: Level::Verified,
        cost: 30,
        pages: Pages::Any,
        doc: told("All receipts of a block."),
        handler: Handler::Read(block_receipts),
    },
];

fn at_index(view: &dyn View, header: Option<BlockHeader>, params: Params<'_>) -> Result<Done, Failure> {
    let index = params.index(1)?;
    let Some(header) = header else { return absent() };
    let body = view.body(&header)?;
    verified(&render::transaction(view, &header, &body, index)?)
}

/// Locates the transaction whose hash is the first parameter. The second parameter, if given, is the signed
/// transaction itself.
fn locate(view: &dyn View, params: Params<'_>) -> Result<TransactionPlace, Failure> {
    let hash = params.hash(0, "transaction hash")?;
    let mut given = None;
    if params.is_given(1) {
        let decode = || signed::decode(&params.data(1)?, view.network().chain_id).map(|(given, _)| given);
        let transaction = params.once(1, decode)?;
        let found = transaction.hash();
        if found != hash {
            return Err(ParamError::OtherTransaction(found).into());
        }
        given = Some(transaction);
    }
    Ok(view.locate(hash, given.as_ref())?)
}

fn by_transaction_hash(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    match locate(view, params)? {
        TransactionPlace::Unknown => absent(),
        TransactionPlace::Pending(transaction) => pending(view, &transaction),
        TransactionPlace::Mined(header, index) => {
            let body = view.body(&header)?;
            Ok(verified(&render::transaction(view, &header, &body, index)?)?.about(&header))
        }
    }
}

/// A waiting transaction: its hash proves its content, but only an upstream says that it waits.
fn pending(view: &dyn View, transaction: &Transaction) -> Result<Done, Failure> {
    let hash = transaction.hash();
    if let Some(waiting) = view.pool().and_then(|pool| pool.get(&hash)) {
        return done(&RpcTransaction::new(transaction, hash, waiting.sender, None), Level::Verified);
    }
    match transaction.recover_sender(view.network().chain_id) {
        Ok(from) => done(&RpcTransaction::new(transaction, hash, from, None), Level::UnprovenAbsence),
        Err(error) => Err(Failure::Stop(Stop::Refused(Refusal::PendingSender(error)))),
    }
}

fn receipt(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    match locate(view, params)? {
        TransactionPlace::Unknown | TransactionPlace::Pending(_) => absent(),
        TransactionPlace::Mined(header, index) => {
            let (body, receipts) = render::body_and_receipts(view, &header)?;
            Ok(verified(&render::receipt(view, &header, &body, &receipts, index)?)?.about(&header))
        }
    }
}

fn block_receipts(view: &dyn View, params: Params<'_>) -> Result<Done, Failure> {
    let Some(header) = by_selector(view, params)? else { return absent() };
    let (body, receipts) = render::body_and_receipts(view, &header)?;
    let all: Result<alloc::vec::Vec<_>, Failure> = (0..receipts.receipts().len())
        .map(|index| render::receipt(view, &header, &body, &receipts, index))
        .collect();
    verified(&all?)
}
