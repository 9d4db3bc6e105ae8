//! Why a transaction cannot be in a block.

use alloy_primitives::{B256, U256};
use thiserror::Error;

use crate::evm::{Abort, MAX_INIT_CODE};
use crate::types::{SenderError, Transaction};

/// A rule of transactions that one breaks, with the reference's text; the order is that in which they
/// are checked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TxError {
    /// Below the block's minimum gas price.
    #[error("transaction's gas price lower than block's minimum: {price} < {minimum}")]
    MinimumGasPrice {
        /// The transaction's, in wei.
        price: U256,
        /// The block's, in wei.
        minimum: U256,
    },
    /// More than a hundred times the block's minimum gas price (RSKIP-252).
    #[error("transaction's gas price exceeds cap: {price} > {cap}")]
    GasPriceCap {
        /// The transaction's, in wei.
        price: U256,
        /// The most allowed, in wei.
        cap: U256,
    },
    /// Initialisation code of more than 49,152 bytes (RSKIP-438).
    #[error("Initcode size for contract is invalid, it exceed the max limit size: initcode size = {size} | maxAllowed = {MAX_INIT_CODE} |  tx = {hash}")]
    InitCodeSize {
        /// Its size in bytes.
        size: usize,
        /// Hash of the transaction.
        hash: B256,
    },
    /// More gas than is left in its list of transactions.
    #[error("Too much gas used in this block or sublist(RSKIP144): available in sublist: {} tx sent: {sent}", i128::from(*.limit).saturating_sub(i128::from(*.sent)))]
    ListGas {
        /// Gas limit of the list.
        limit: u64,
        /// Gas limit of the transaction.
        sent: u64,
    },
    /// Less gas than any transaction with such data needs.
    #[error("Not enough gas for transaction execution: tx needs: {needed} tx sent: {sent}")]
    Intrinsic {
        /// What it needs.
        needed: u64,
        /// Its gas limit.
        sent: u64,
    },
    /// Not the sender's next nonce.
    #[error("Invalid nonce: required: {required} , tx.nonce: {found}")]
    Nonce {
        /// The sender's.
        required: u64,
        /// The transaction's.
        found: U256,
    },
    /// The sender cannot pay value and gas.
    #[error("Not enough cash: Require: {required}, Sender cash: {}{balance}", if *.below_zero { "-" } else { "" })]
    Cash {
        /// Value and gas limit times price, in wei.
        required: U256,
        /// What the sender has, in wei.
        balance: U256,
        /// Whether that is a debt.
        below_zero: bool,
    },
    /// To the BLAKE2 F contract without data before RSKIP-552: the reference fails to find its price.
    #[error(
        "transaction to the BLAKE2 F contract (0x09) without data, which no block may hold before RSKIP-552"
    )]
    NoBlakeData,
    /// Signed by nobody, or for another chain.
    #[error("Transaction signature not accepted: {0}")]
    Signature(#[from] SenderError),
    /// It needs what this version does not execute.
    #[error("not executed: {0}")]
    NotExecuted(NotExecuted),
    /// A contract's or a fee payment's transaction that only a block itself may hold.
    #[error("transaction is a remasc transaction")]
    Remasc,
}

impl TxError {
    /// Whether the host ended the run, which says nothing against the transaction.
    #[must_use]
    pub fn is_interruption(&self) -> bool {
        *self == Self::NotExecuted(NotExecuted(Abort::Stopped))
    }
}

/// What this version does not execute, or was told not to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0:?}")]
pub struct NotExecuted(pub Abort);

/// Gas price of a transaction in wei.
pub(super) fn gas_price(transaction: &Transaction) -> U256 {
    transaction.gas_price.value()
}

/// Gas limit of a transaction; what does not fit is more than any block has.
pub(super) fn gas_limit(transaction: &Transaction) -> u64 {
    u64::try_from(transaction.gas_limit.value()).unwrap_or(MAX_GAS).min(MAX_GAS)
}

/// The largest gas the reference knows (63 bits).
pub(super) const MAX_GAS: u64 = i64::MAX as u64;
