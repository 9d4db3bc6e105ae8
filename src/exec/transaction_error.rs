//! Why a transaction cannot be included in a block, and the numbers of a transaction as the checks read them.

use alloy_primitives::{B256, U256};
use thiserror::Error;

use crate::evm::{Abort, MAX_INIT_CODE};
use crate::types::{SenderError, Transaction};

/// The rule that a transaction breaks, with the error text of the reference node. The variants are in the
/// order of the checks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum TxError {
    #[error("transaction's gas price lower than block's minimum: {price} < {minimum}")]
    MinimumGasPrice { price: U256, minimum: U256 },
    /// The gas price is more than a hundred times the block's minimum (RSKIP-252).
    #[error("transaction's gas price exceeds cap: {price} > {cap}")]
    GasPriceCap { price: U256, cap: U256 },
    /// The initialisation code has more than 49,152 bytes (RSKIP-438).
    #[error(
        "Initcode size for contract is invalid, it exceed the max limit size: initcode size = {size} | maxAllowed = {MAX_INIT_CODE} |  tx = {hash}"
    )]
    InitCodeSize { size: usize, hash: B256 },
    /// The gas limit exceeds the gas that is left in the list of transactions.
    #[error("Too much gas used in this block or sublist(RSKIP144): available in sublist: {} tx sent: {sent}", i128::from(*.limit).saturating_sub(i128::from(*.sent)))]
    ListGas { limit: u64, sent: u64 },
    /// The gas limit is below the intrinsic gas.
    #[error("Not enough gas for transaction execution: tx needs: {needed} tx sent: {sent}")]
    Intrinsic { needed: u64, sent: u64 },
    /// The nonce is not the sender's next nonce.
    #[error("Invalid nonce: required: {required} , tx.nonce: {found}")]
    Nonce { required: u64, found: U256 },
    /// The sender cannot pay for value and gas; amounts in wei. `below_zero` says that the balance is negative, and `balance` is then its
    /// magnitude.
    #[error("Not enough cash: Require: {required}, Sender cash: {}{balance}", if *.below_zero { "-" } else { "" })]
    Cash { required: U256, balance: U256, below_zero: bool },
    /// A transaction to the BLAKE2 F contract has no data, before RSKIP-552. The reference node fails to
    /// compute its price.
    #[error(
        "transaction to the BLAKE2 F contract (0x09) without data, which no block may hold before RSKIP-552"
    )]
    NoBlakeData,
    /// The signature is invalid or for another chain.
    #[error("Transaction signature not accepted: {0}")]
    Signature(#[from] SenderError),
    /// The transaction needs something that this version does not implement, or the host interrupted its run.
    #[error("not executed: {0}")]
    NotExecuted(NotExecuted),
    /// The transaction is a REMASC transaction, which only the block itself may contain.
    #[error("transaction is a remasc transaction")]
    Remasc,
}

impl TxError {
    /// Whether the host interrupted the run, which does not make the transaction invalid.
    pub fn is_interruption(&self) -> bool {
        *self == Self::NotExecuted(NotExecuted(Abort::Stopped))
    }
}

/// The reason why a transaction was not executed: it is not implemented, or the run was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0:?}")]
pub struct NotExecuted(pub Abort);

/// Gas price of a transaction in wei.
pub(super) fn gas_price(transaction: &Transaction) -> U256 {
    transaction.gas_price.value()
}

/// Gas limit of a transaction, capped at [`MAX_GAS`], which exceeds the limit of any block.
pub(super) fn gas_limit(transaction: &Transaction) -> u64 {
    u64::try_from(transaction.gas_limit.value()).unwrap_or(MAX_GAS).min(MAX_GAS)
}

/// Highest gas amount of the reference node, whose numbers of gas are signed 64-bit integers.
pub(super) const MAX_GAS: u64 = i64::MAX as u64;
