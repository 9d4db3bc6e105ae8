//! The reasons for which the pool refuses a transaction. The messages are those of the reference node.

use alloy_primitives::U256;
use thiserror::Error;

/// The largest size of an encoded transaction in bytes.
pub(super) const MAX_TRANSACTION_SIZE: usize = 128 * 1024;

/// Most bytes of all transactions in the pool, each counted as its data and 1 KiB: 32,768 transactions without data. The limit
/// for each account does not bound the pool, because any number of accounts may send.
pub(super) const MAX_POOL_BYTES: usize = 32 << 20;

/// The rule of the pool that a transaction breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum PoolError {
    #[error("pending transaction with same hash already exists")]
    KnownPending,
    #[error("queued transaction with same hash already exists")]
    KnownQueued,
    /// A REMASC transaction, which only the miner of a block adds.
    #[error("transaction is a remasc transaction")]
    Remasc,
    /// The gas limit is above that of every transaction list of a block (RSKIP-144).
    #[error("transaction's gas limit of {gas} is higher than the block's gas limit of {limit}")]
    GasLimit { gas: U256, limit: u64 },
    #[error("the sender account doesn't exist")]
    NoAccount,
    /// The nonce has more than eight bytes.
    #[error("transaction nonce byte length exceeds maximum: {0} > 8")]
    NonceLength(u32),
    /// The nonce has leading zeros.
    #[error("transaction nonce has non-canonical encoding")]
    NonceEncoding,
    /// The sender has already used the nonce.
    #[error("transaction nonce too low")]
    NonceTooLow,
    /// The nonce is further ahead of the account's than the pool allows.
    #[error("transaction nonce too high")]
    NonceTooHigh,
    /// Gas limit times price is above the sender's balance.
    #[error("insufficient funds")]
    Funds,
    /// The gas price is below the minimum gas price that the miner's settings demand, or below the head's.
    #[error("transaction's gas price lower than block's minimum")]
    MinimumGasPrice,
    /// The gas limit is below the intrinsic gas of the transaction.
    #[error("transaction's basic cost is above the gas limit")]
    BasicCost,
    /// The gas price is above eighty times the minimum gas price of the next block and of the miner's settings, or above the cap of
    /// each of the next blocks (RSKIP-252).
    #[error("transaction's gas price exceeds cap")]
    GasPriceCap,
    /// The initialisation code is longer than 49,152 bytes (RSKIP-438).
    #[error("transaction's init code size is invalid")]
    InitCodeSize,
    /// The encoded transaction is too large.
    #[error("transaction's size is higher than defined maximum: {0} > {MAX_TRANSACTION_SIZE}")]
    Size(usize),
    /// The gas price is too low to replace the pending transaction with the same sender and nonce.
    #[error("gas price not enough to bump transaction")]
    Bump,
    /// The new transaction would exceed the limit of bytes of the pool.
    #[error("the pool is full, with {MAX_POOL_BYTES} bytes: mine blocks or drop transactions first")]
    Full,
    /// The sender cannot pay for this transaction together with its pending ones.
    #[error("insufficient funds to pay for pending and new transactions")]
    FundsForAll,
}
