//! The interface between native contracts and the run that calls them: `evm/native.rs` implements [`NativeHost`].

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, Log, U256};

use crate::consensus::RuleSet;
use crate::types::{Header, SealedHeader, Transaction};

/// How a native contract was called (relevant to RSKIP-417).
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

/// The transaction of a run. A local call has none.
#[derive(Clone, Copy, Debug)]
pub struct RunTransaction<'a> {
    /// Index in its block.
    pub index: u32,
    /// The transaction, which provides its hash and the public key of its sender.
    pub transaction: &'a Transaction,
}

/// One call of a native contract.
#[derive(Clone, Copy, Debug)]
pub struct NativeCall<'a> {
    /// Call data.
    pub input: &'a [u8],
    /// The calling account: a transaction's sender, or the contract whose code runs (also for CALLCODE and
    /// DELEGATECALL). `None` is the null sender of local calls.
    pub caller: Option<Address>,
    /// Value in wei. If a contract calls, the value has already been transferred; in a transaction's direct
    /// call it has not.
    pub value: U256,
    /// The kind of call.
    pub kind: CallType,
    /// Depth that a frame of this call would have: 0 for the direct call of a transaction or local call.
    pub depth: usize,
    /// The transaction, `None` in local calls.
    pub transaction: Option<RunTransaction<'a>>,
    /// The block.
    pub block: NativeBlock,
    /// Rules at the height of the block.
    pub rules: RuleSet,
    /// Chain id, which selects the constants of the Bridge and REMASC.
    pub chain_id: u64,
}

/// The fields of the executing block that native contracts use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeBlock {
    /// Block number.
    pub number: u64,
    /// Time in seconds since 1970.
    pub timestamp: u64,
    /// Minimum gas price in wei.
    pub minimum_gas_price: U256,
}

impl NativeCall<'_> {
    /// Whether a transaction or local call made this call itself, without a contract in between.
    pub fn is_direct(&self) -> bool {
        self.depth == 0
    }

    /// Whether methods reserved for local calls (`eth_call`) can be used: in a local call, directly or from the outermost
    /// contract. In deeper calls the reference node cannot tell that the call is local.
    pub fn is_local(&self) -> bool {
        self.transaction.is_none() && self.depth <= 1
    }
}

/// The state that a native contract can read and change. Changes are reverted with the frame they belong to.
pub trait NativeHost {
    /// Raw bytes of a storage cell; empty if the cell is not set.
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes;
    /// Writes a cell; empty bytes remove it.
    fn set_cell(&mut self, contract: Address, slot: U256, bytes: Bytes);
    /// Balance in wei.
    fn balance(&mut self, account: Address) -> U256;
    /// Transfers wei and creates the payee if needed. Returns `false` if the payer has less, or if the payee's balance overflows.
    fn transfer(&mut self, from: Address, to: Address, amount: U256) -> bool;
    /// As [`Self::transfer`]. If a transaction calls the contract directly, its trace shows the payment as a
    /// call.
    fn pay(&mut self, from: Address, to: Address, amount: U256) -> bool;
    /// Writes a log.
    fn log(&mut self, log: Log);
    /// The ancestor of the executing block at a height. `None`, as in the next two methods, if it is not known: a run on parts of a
    /// state has noted it then, and its result is discarded.
    fn header(&mut self, number: u64) -> Option<SealedHeader>;
    /// The uncles of the ancestor at a height.
    fn uncles(&mut self, number: u64) -> Option<Vec<Header>>;
    /// Total difficulty of the chain up to the ancestor at a height, uncles included. Also unknown on a development chain that begins on
    /// a block of another network; its transactions read zero.
    fn total_difficulty(&mut self, number: u64) -> Option<U256>;
    /// Whether the run has used up its time. Called from time to time by long computations.
    fn interrupted(&self) -> bool {
        false
    }
}

/// Why a native contract returned no output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NativeFailure {
    /// The contract failed, as it does in the reference node.
    Failed,
    /// The contract finished without any output, which is a success before RSKIP-197 and in direct calls of
    /// transactions, a failure otherwise.
    Nothing,
    /// This version does not implement the named method.
    NotSimulated(&'static str),
    /// The run has used up its time and ends without a result.
    Interrupted,
}

/// A method of a native contract that this version does not implement.
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
