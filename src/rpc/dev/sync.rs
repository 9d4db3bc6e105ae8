//! `eth_sendTransactionSync` and `eth_sendRawTransactionSync`: the answer to a transaction is its receipt (EIP-7966). No handler
//! waits: a transaction that is not mined at once is an error with its hash. A server takes the error `NOT_MINED` of a single call
//! as the sign to wait for a block itself (`rootlight-node`, `local/mined.rs`).

use alloy_primitives::{Address, Bytes};

use super::chain_at;
use crate::{
    dev::DevError,
    engine::{Level, LocalNode, TransactionLocation},
    exec::REVERTED,
    rpc::{
        error::RpcError,
        method::{HandlerResult, done},
        render,
        revert::reason,
    },
    types::Transaction,
};

/// The code for a transaction that waits in the pool and can be mined.
const NOT_MINED: i32 = 4;
/// The code for a transaction that waits for earlier ones of its sender.
const NOT_READY: i32 = 5;

/// Sends a transaction and returns its receipt. A transaction that is not mined at once stays in the pool, and the answer is an
/// error with its hash.
pub(super) fn submit(node: &mut dyn LocalNode, transaction: Transaction, from: Address) -> HandlerResult {
    let (chain, now) = chain_at(node)?;
    let hash = transaction.hash();
    match chain.submit(transaction, from, now) {
        Ok(_) => {}
        // The transaction stays in the pool, so that the error below gives the sender its hash.
        Err(DevError::NotMined) if chain.pool().get(&hash).is_some() => {}
        Err(error) => return Err(not_sent(error).into()),
    }
    let waits = chain.pool().get(&hash).is_some();
    let is_ready =
        chain.pool().pending().get(&from).is_some_and(|own| own.iter().any(|pooled| pooled.hash == hash));
    if waits {
        let (code, text) = match is_ready {
            true => (
                NOT_MINED,
                "the transaction was added to the pool but is not in a block yet: ask for its receipt",
            ),
            false => (
                NOT_READY,
                "the transaction was added to the pool and waits for earlier nonces of its sender",
            ),
        };
        return Err(RpcError::Host {
            code,
            text: text.into(),
            data: Some(Bytes::copy_from_slice(hash.as_slice())),
        }
        .into());
    }
    // The block is stored: no code runs that would have to be interrupted.
    let (snapshot, interrupt) = (node.snapshot(), || false);
    let view = snapshot.view(now, &interrupt);
    // `None`: a local chain needs no transaction to find its block.
    let TransactionLocation::Mined(header, index) = view.locate(hash, None)? else {
        return Err(RpcError::Internal.into());
    };
    let (body, receipts) = render::body_and_receipts(&*view, &header)?;
    done(&render::receipt(&*view, &header, &body, &receipts, index)?, Level::Local)
}

/// The JSON-RPC error of a transaction that the pool refused or that has failed in its block.
pub(super) fn not_sent(error: DevError) -> RpcError {
    match error {
        DevError::Reverted { output: Some(data), .. } => {
            RpcError::Reverted { reason: reason(&data), data, code: REVERTED }
        }
        error => RpcError::from(error),
    }
}
