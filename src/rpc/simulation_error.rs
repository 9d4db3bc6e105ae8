//! The rules that a simulation can break, with the messages and codes of `eth_simulateV1` in execution-apis (Ethereum's
//! specification of JSON-RPC).

use alloy_primitives::{Address, U256};
use thiserror::Error;

/// A rule of blocks or transactions that a simulation breaks.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum SimulationError {
    #[error("nonce too low: address {from}, tx: {given} state: {expected}")]
    NonceTooLow { from: Address, given: u64, expected: u64 },
    #[error("nonce too high: address {from}, tx: {given} state: {expected}")]
    NonceTooHigh { from: Address, given: u64, expected: u64 },
    /// The gas price is below the block's minimum, which takes the place of a base fee.
    #[error("gas price less than block minimum: address {from}, gasPrice: {price}, minimum: {minimum}")]
    GasPrice { from: Address, price: U256, minimum: U256 },
    #[error("intrinsic gas too low: have {given}, want {needed}")]
    IntrinsicGas { given: u64, needed: u64 },
    #[error("insufficient funds for gas * price + value: address {from} have {balance} want {needed}")]
    Funds { from: Address, balance: U256, needed: U256 },
    #[error("block gas limit reached: {used} of {limit} used, call needs {gas}")]
    BlockGas { used: u64, limit: u64, gas: u64 },
    #[error("block numbers must be in order: {given} <= {parent}")]
    BlockNumber { given: u64, parent: u64 },
    #[error("block timestamps must be in order: {given} <= {parent}")]
    Timestamp { given: u64, parent: u64 },
    #[error("max initcode size exceeded: code size {size} limit {limit}")]
    InitCode { size: usize, limit: usize },
    /// More blocks than one simulation may have, those between given numbers included.
    #[error("too many blocks: at most {0}")]
    TooManyBlocks(u64),
    /// The earlier calls have used the gas that one request may use.
    #[error("client limit exceeded: the calls use more than {0} gas together")]
    TotalGas(u64),
    #[error("empty input: blockStateCalls has no block")]
    Empty,
}

impl SimulationError {
    /// The JSON-RPC code.
    pub fn code(&self) -> i32 {
        match self {
            Self::NonceTooLow { .. } => -38010,
            Self::NonceTooHigh { .. } => -38011,
            Self::GasPrice { .. } => -38012,
            Self::IntrinsicGas { .. } => -38013,
            Self::Funds { .. } => -38014,
            Self::BlockGas { .. } => -38015,
            Self::BlockNumber { .. } => -38020,
            Self::Timestamp { .. } => -38021,
            Self::InitCode { .. } => -38025,
            Self::TooManyBlocks(_) | Self::TotalGas(_) => -38026,
            Self::Empty => -32602,
        }
    }
}
