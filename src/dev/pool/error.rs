//! Why the pool does not take a transaction, in the reference's words.

use alloy_primitives::U256;
use thiserror::Error;

/// Most bytes of an encoded transaction.
pub(super) const MAX_TRANSACTION_SIZE: usize = 128 * 1024;

/// A rule of the pool that a transaction breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PoolError {
    /// It is there already, among those that can be mined.
    #[error("pending transaction with same hash already exists")]
    KnownPending,
    /// It is there already, among those that wait for earlier ones.
    #[error("queued transaction with same hash already exists")]
    KnownQueued,
    /// Only a block itself holds one.
    #[error("transaction is a remasc transaction")]
    Remasc,
    /// More gas than any list of a block has.
    #[error("transaction's gas limit of {gas} is higher than the block's gas limit of {limit}")]
    GasLimit {
        /// The transaction's.
        gas: U256,
        /// The largest list's.
        limit: u64,
    },
    /// Nobody has sent anything to the sender yet.
    #[error("the sender account doesn't exist")]
    NoAccount,
    /// A nonce in more than eight bytes.
    #[error("transaction nonce byte length exceeds maximum: {0} > 8")]
    NonceLength(u32),
    /// A nonce with leading zeros.
    #[error("transaction nonce has non-canonical encoding")]
    NonceEncoding,
    /// The sender has used the nonce.
    #[error("transaction nonce too low")]
    NonceTooLow,
    /// Further ahead than an account has slots.
    #[error("transaction nonce too high")]
    NonceTooHigh,
    /// Gas limit times price is above the sender's balance.
    #[error("insufficient funds")]
    Funds,
    /// Below the head's minimum gas price.
    #[error("transaction's gas price lower than block's minimum")]
    MinimumGasPrice,
    /// Less gas than any transaction with such data needs.
    #[error("transaction's basic cost is above the gas limit")]
    BasicCost,
    /// More than eighty times the head's minimum gas price (RSKIP-252).
    #[error("transaction's gas price exceeds cap")]
    GasPriceCap,
    /// Initialisation code above 49,152 bytes (RSKIP-438).
    #[error("transaction's init code size is invalid")]
    InitCodeSize,
    /// Too many bytes.
    #[error("transaction's size is higher than defined maximum: {0} > {MAX_TRANSACTION_SIZE}")]
    Size(usize),
    /// Another one of the same sender and nonce, whose price is not exceeded by enough.
    #[error("gas price not enough to bump transaction")]
    Bump,
    /// The sender cannot pay for this one and those before it.
    #[error("insufficient funds to pay for pending and new transactions")]
    FundsForAll,
    /// Signed by nobody; texts of the cases are those of `eth_sendRawTransaction`.
    #[error("{0}")]
    Sender(crate::types::SenderError),
}
