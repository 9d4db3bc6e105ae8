//! Decodes signed transactions that callers send, and recovers their senders.

use alloc::format;

use alloy_primitives::{Address, Bytes};

use super::error::ParamError;
#[cfg(feature = "dev")]
use super::params::Params;
use crate::types::{SenderError, Transaction};

/// `v` of an EIP-155 signature with chain id 0 and an even y coordinate: EIP-155 defines `v` as 2 * chain id + 35 for even y.
const EIP155_BASE_V: i64 = 35;
/// The position under which [`Params::once`] keeps the transaction with its sender. No parameter has it.
#[cfg(feature = "dev")]
pub(super) const SIGNED: usize = usize::MAX;
/// First byte of the shortest RLP list; typed transactions (EIP-2718) start with a lower byte.
const EMPTY_LIST: u8 = 0xc0;

/// Decodes a transaction. Errors have the reference node's messages where it has one.
pub(super) fn transaction(raw: &Bytes) -> Result<Transaction, ParamError> {
    if raw.first().is_some_and(|first| *first < EMPTY_LIST) {
        return Err(ParamError::TypedTransaction);
    }
    let transaction = Transaction::decode(raw).map_err(ParamError::Transaction)?;
    if transaction.gas_limit.is_empty() {
        return Err(ParamError::MissingGas);
    }
    Ok(transaction)
}

/// Decodes a transaction and recovers its sender. Errors have the reference node's messages where it has one.
pub(super) fn decode(raw: &Bytes, chain_id: u64) -> Result<(Transaction, Address), ParamError> {
    let transaction = transaction(raw)?;
    match transaction.recover_sender(chain_id) {
        // The transaction that calls REMASC, the contract that pays miners, is unsigned and only valid in blocks. `Ok` includes
        // that transaction: the pool refuses it later with an error of its own.
        Ok(sender) => Ok((transaction, sender)),
        Err(SenderError::ChainId { found, .. }) => Err(ParamError::ChainId(format!("{found}"))),
        // The reference node reports every invalid signature as an invalid chain id.
        Err(_) => Err(ParamError::ChainId(format!("{}", encoded_chain_id(transaction.v)))),
    }
}

/// The transaction that `eth_sendRawTransaction` sends, with its sender. A server may have recovered the sender before, together
/// with those of other transactions of the message ([`MessageProgress::recover`](super::MessageProgress::recover)).
#[cfg(feature = "dev")]
pub(super) fn sent(params: Params<'_>, chain_id: u64) -> Result<(Transaction, Address), ParamError> {
    let recover = || decode(&params.data(0)?, chain_id);
    params.once(SIGNED, recover).map(|sent| (*sent).clone())
}

/// The chain id that `v` encodes, computed as the reference node does; negative for a `v` that encodes none.
fn encoded_chain_id(v: u8) -> i64 {
    match v {
        0 | 27 | 28 => 0,
        v => i64::from(v).saturating_sub(EIP155_BASE_V) / 2,
    }
}
