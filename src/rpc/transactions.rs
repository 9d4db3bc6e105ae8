//! `eth_getTransaction*` and `eth_get*Receipt*`: transactions and receipts of mined blocks, and transactions that wait.

use super::{
    blocks::{by_block_param, by_hash},
    error::ParamError,
    method::{
        BLOCK_HASH, Failure, HandlerResult, Indexed, Method, Param, THE_BLOCK, absent, done, optional,
        required, verified,
    },
    params::Params,
    render, signed,
};
use crate::{
    engine::{BlockHeader, Level, Refusal, Stop, TransactionLocation, View},
    types::{Transaction, json::RpcTransaction},
};

const TRANSACTION: &[Param] = &[required("transactionHash", "HASH"), optional("rawTransaction", "DATA")];
pub(super) const HASH_INDEX: &[Param] = &[BLOCK_HASH, required("index", "QUANTITY")];
pub(super) const BLOCK_INDEX: &[Param] = &[THE_BLOCK, required("index", "QUANTITY")];

pub(super) const METHODS: &[Method] = &[
    Method::read(
        "eth_getTransactionByHash",
        TRANSACTION,
        "transaction object or null",
        "A transaction of the canonical chain, or a pending one. If the signed transaction is given \
         too, the nonce of its sender can prove that it is not mined yet.",
        by_transaction_hash,
    )
    .relayed()
    .indexed(Indexed::Transaction),
    Method::read(
        "eth_getTransactionByBlockHashAndIndex",
        HASH_INDEX,
        "transaction object or null",
        "A transaction by its place in a block.",
        |view, params| at_index(view, by_hash(view, params)?, params),
    )
    .relayed(),
    Method::read(
        "eth_getTransactionByBlockNumberAndIndex",
        BLOCK_INDEX,
        "transaction object or null",
        "A transaction by its place in a block.",
        |view, params| at_index(view, by_block_param(view, params)?, params),
    )
    .relayed(),
    Method::read(
        "eth_getTransactionReceipt",
        TRANSACTION,
        "receipt object or null",
        "The receipt of a mined transaction, proven with all receipts of its block. If the signed \
         transaction is given too, the nonce of its sender can prove that there is none yet.",
        receipt,
    )
    .relayed()
    .indexed(Indexed::Receipt)
    .costs(20),
    Method::read(
        "eth_getBlockReceipts",
        &[THE_BLOCK],
        "array of receipt objects or null",
        "All receipts of a block.",
        block_receipts,
    )
    .relayed()
    .costs(30),
];

/// The transaction of a block at the index in the second parameter.
fn at_index(view: &dyn View, header: Option<BlockHeader>, params: Params<'_>) -> HandlerResult {
    let index = params.index(1)?;
    let Some(header) = header else { return absent() };
    let body = view.body(&header)?;
    verified(&render::transaction(view, &header, &body, index)?)
}

/// Locates the transaction whose hash is the first parameter. The second parameter, if given, is the signed transaction itself,
/// with which the view can prove that the transaction is not mined.
fn locate(view: &dyn View, params: Params<'_>) -> Result<TransactionLocation, Failure> {
    let hash = params.hash(0, "transaction hash")?;
    let mut given = None;
    if params.is_given(1) {
        let decode =
            || signed::decode(&params.data(1)?, view.policy().network.chain_id).map(|(given, _)| given);
        let transaction = params.once(1, decode)?;
        let found = transaction.hash();
        if found != hash {
            return Err(ParamError::OtherTransaction(found).into());
        }
        given = Some(transaction);
    }
    Ok(view.locate(hash, given.as_ref())?)
}

fn by_transaction_hash(view: &dyn View, params: Params<'_>) -> HandlerResult {
    match locate(view, params)? {
        TransactionLocation::Unknown => absent(),
        TransactionLocation::Pending(transaction) => pending(view, &transaction),
        TransactionLocation::Mined(header, index) => {
            let body = view.body(&header)?;
            Ok(verified(&render::transaction(view, &header, &body, index)?)?.about(&header))
        }
    }
}

/// A waiting transaction. Its hash proves its content. In the own pool of a chain the answer is verified; otherwise only an
/// upstream says that the transaction waits.
fn pending(view: &dyn View, transaction: &Transaction) -> HandlerResult {
    let hash = transaction.hash();
    // `None` below: the transaction is in no block.
    if let Some(waiting) = view.pool().and_then(|pool| pool.get(&hash)) {
        return done(&RpcTransaction::new(transaction, hash, waiting.sender, None), Level::Verified);
    }
    match transaction.recover_sender(view.policy().network.chain_id) {
        Ok(from) => done(&RpcTransaction::new(transaction, hash, from, None), Level::UnprovenAbsence),
        Err(error) => Err(Failure::Stop(Stop::Refused(Refusal::PendingSender(error)))),
    }
}

fn receipt(view: &dyn View, params: Params<'_>) -> HandlerResult {
    match locate(view, params)? {
        TransactionLocation::Unknown | TransactionLocation::Pending(_) => absent(),
        TransactionLocation::Mined(header, index) => {
            let (body, receipts) = render::body_and_receipts(view, &header)?;
            Ok(verified(&render::receipt(view, &header, &body, &receipts, index)?)?.about(&header))
        }
    }
}

fn block_receipts(view: &dyn View, params: Params<'_>) -> HandlerResult {
    let Some(header) = by_block_param(view, params)? else { return absent() };
    let (body, receipts) = render::body_and_receipts(view, &header)?;
    let all: Result<alloc::vec::Vec<_>, Failure> = (0..receipts.receipts().len())
        .map(|index| render::receipt(view, &header, &body, &receipts, index))
        .collect();
    verified(&all?)
}
