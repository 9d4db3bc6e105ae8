//! Transactions that are sent and answered with their receipts (EIP-7966).

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

/// Sends a transaction and returns its receipt. One that no block has at once is an error with its hash: it stays in the
/// pool.
pub(super) fn submit(node: &mut dyn LocalNode, transaction: Transaction, from: Address) -> HandlerResult {
    let (chain, now) = chain_at(node)?;
    let hash = transaction.hash();
    match chain.submit(transaction, from, now) {
        Ok(_) => {}
        // The transaction stays in the pool, so its sender is told its hash.
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
    let (snapshot, interrupt) = (node.snapshot(), || false);
    let view = snapshot.view(now, &interrupt);
    let TransactionLocation::Mined(header, index) = view.locate(hash, None)? else {
        return Err(RpcError::Internal.into());
    };
    let (body, receipts) = render::body_and_receipts(&*view, &header)?;
    done(&render::receipt(&*view, &header, &body, &receipts, index)?, Level::Local)
}

/// The error of a transaction that was not taken or that has failed.
pub(super) fn not_sent(error: DevError) -> RpcError {
    match error {
        DevError::Reverted { output: Some(data), .. } => {
            RpcError::Reverted { reason: reason(&data), data, code: REVERTED }
        }
        error => RpcError::from(error),
    }
}
