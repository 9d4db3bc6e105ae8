//! What a native contract gets besides its input, and what it can do.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, Log, U256};

use crate::consensus::RuleSet;
use crate::types::{Header, SealedHeader, Transaction};

/// How a native contract was called (RSKIP-417 looks at it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallType {
    /// CALL, or a transaction.
    Call,
    /// CALLCODE.
    CallCode,
    /// DELEGATECALL.
    DelegateCall,
    /// STATICCALL.
    StaticCall,
}

/// The transaction a run belongs to; a local call has none.
#[derive(Clone, Copy, Debug)]
pub struct RunTransaction<'a> {
    /// Index in its block.
    pub index: u32,
    /// The transaction itself: its hash, and the public key of its sender.
    pub transaction: &'a Transaction,
}

/// One call of a native contract.
#[derive(Clone, Copy, Debug)]
pub struct NativeCall<'a> {
    /// Call data.
    pub input: &'a [u8],
    /// The account that calls: a transaction's sender, or the contract whose code runs (for
    /// CALLCODE and DELEGATECALL as well). `None` is the null sender of local calls.
    pub caller: Option<Address>,
    /// Value sent, in wei; already moved when a contract calls, still with the sender in a
    /// transaction's own call.
    pub value: U256,
    /// How it was called.
    pub kind: CallType,
    /// Depth of the frame it would be: 0 for a transaction's or local call's own call.
    pub depth: usize,
    /// The transaction, `None` in local calls.
    pub transaction: Option<RunTransaction<'a>>,
    /// The block.
    pub block: NativeBlock,
    /// Rules at its height.
    pub rules: RuleSet,
    /// Chain id: the constants of the Bridge and REMASC go by it.
    pub chain_id: u64,
}

/// The executing block, as far as native contracts look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeBlock {
    /// Height.
    pub number: u64,
    /// Time in seconds since 1970.
    pub timestamp: u64,
    /// Minimum gas price in wei.
    pub minimum_gas_price: U256,
}

impl NativeCall<'_> {
    /// Called by a transaction or local call itself, not by a contract.
    pub fn is_direct(&self) -> bool {
        self.depth == 0
    }

    /// Whether methods that only local calls may use can be used: in a local call, directly or from
    /// the outermost contract, but no deeper (the reference loses the mark of a local call there).
    pub fn is_local(&self) -> bool {
        self.transaction.is_none() && self.depth <= 1
    }
}

/// What a native contract can read and do. Changes roll back with the frame they belong to.
pub trait NativeHost {
    /// Raw bytes of a storage cell, empty where there are none.
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes;
    /// Writes a cell; no bytes remove it.
    fn set_cell(&mut self, contract: Address, slot: U256, bytes: Bytes);
    /// Balance in wei.
    fn balance(&mut self, account: Address) -> U256;
    /// Moves wei, creating the payee; `false` if the payer has less.
    fn transfer(&mut self, from: Address, to: Address, amount: U256) -> bool;
    /// As [`Self::transfer`]; where a transaction calls the contract directly, its trace shows the
    /// payment as a call.
    fn pay(&mut self, from: Address, to: Address, amount: U256) -> bool;
    /// Writes a log.
    fn log(&mut self, log: Log);
    /// The ancestor of the executing block at a height.
    fn header(&mut self, number: u64) -> Option<SealedHeader>;
    /// The uncles of that ancestor.
    fn uncles(&mut self, number: u64) -> Option<Vec<Header>>;
    /// Total difficulty up to that ancestor.
    fn total_difficulty(&mut self, number: u64) -> Option<U256>;
    /// Whether the run has used up its time; asked now and then by what takes long.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Why a native contract gave no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It failed, as the reference's does.
    Failed,
    /// It ended well with nothing at all: a success before RSKIP-197 and in a transaction's own
    /// call, a failure otherwise.
    Nothing,
    /// This version does not execute the named method.
    NotSimulated(&'static str),
    /// The run's time is up; the run ends without a result.
    Interrupted,
}

/// A native contract's method that this version does not execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsimulated {
    /// The contract.
    pub contract: Address,
    /// The method.
    pub method: &'static str,
}

impl core::fmt::Display for Unsimulated {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} of precompile {}", self.method, self.contract)
    }
}
