//! The context of a run besides accounts: rules, block fields that `revm`'s types lack, and abort reasons. Instructions find it as `chain`
//! in `revm`'s context.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;

use alloy_primitives::{Address, B256, Bytes, U256};
use revm::Database;
use revm::context::{BlockEnv, CfgEnv, Context, Journal, TxEnv};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{InstructionContext, InstructionResult, Interpreter};
use revm::primitives::hardfork::SpecId;

use super::inspect::Inspector;
use super::precompiles::{Precompile, RunTransaction, Unsimulated};
use super::touches::Touch;
use crate::consensus::{Rule, RuleSet};
use crate::types::{Header, SealedHeader};

/// The rule set in the form in which `revm` takes a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec(pub(super) RuleSet);

impl From<Spec> for SpecId {
    /// Petersburg is the Ethereum specification closest to Rootstock in every era. The differences are set
    /// opcode by opcode.
    fn from(_: Spec) -> SpecId {
        SpecId::PETERSBURG
    }
}

/// The data of one run that is not in `revm`'s block and transaction types: those types have no field for it, or a narrower one than
/// Rootstock needs, as for the gas limit and the prices of gas.
pub struct RunContext<'a> {
    /// Rules of the block in which the code runs.
    pub rules: RuleSet,
    /// Gas limit in the header of that block.
    pub gas_limit: U256,
    /// Minimum gas price of that block in wei, which BASEFEE pushes (RSKIP-412).
    pub minimum_gas_price: U256,
    /// Gas price of the transaction or call, in wei.
    pub gas_price: U256,
    /// Called every 4,096 instructions, in an inline run every 512. The run ends as interrupted if it returns `true`.
    pub interrupt: &'a dyn Fn() -> bool,
    /// Whether the run is inline, which ends as interrupted before anything that takes long (`evm::inline_run`).
    pub is_inline: bool,
    /// The sender of a local call that spends more than it has, so that its balance becomes negative in the reference node. The run
    /// aborts if the balance is read.
    pub overdrawn: Option<Address>,
    /// The inspector of the run, if any.
    pub inspector: Option<&'a mut dyn Inspector>,
    /// The transaction being run; `None` in a local call.
    pub transaction: Option<RunTransaction<'a>>,
    /// Whether methods of native contracts that are not implemented fail instead of aborting the run, as
    /// transactions need it. [`Machine::unsimulated`](super::Machine::unsimulated) lists them.
    pub fail_unsimulated: bool,
    /// The calls of such methods, in order.
    pub(super) unsimulated: Vec<Unsimulated>,
    /// Contents of the cells that native contracts have written in this run. `revm` has only words, so its transient storage has, for
    /// each such cell, the index in this list plus one; it reverts the indices, and thus the cells, with their frames.
    pub(super) cells: Vec<Bytes>,
    /// Native contracts that were called, including calls in reverted frames.
    pub(super) natives: Vec<NativeCallRecord>,
    /// Number of open frames of creations by contracts.
    pub(super) inner_creations: usize,
    /// Set by an instruction that aborts the run. The frame loop reads it.
    pub(super) abort: Option<Abort>,
    /// Set if a native contract failed under the rules before RSKIP-197, by which its caller fails too. The frame loop reads it.
    pub(super) fail_caller: bool,
    /// Original code of running frames whose code starts with a header (`code.rs`), indexed by call depth.
    pub(super) codes_with_header: Vec<Option<Bytes>>,
}

impl<'a> RunContext<'a> {
    /// Creates a context with all prices zero and without an overdrawn sender.
    pub fn new(rules: RuleSet, interrupt: &'a dyn Fn() -> bool) -> Self {
        Self {
            rules,
            gas_limit: U256::ZERO,
            minimum_gas_price: U256::ZERO,
            gas_price: U256::ZERO,
            interrupt,
            is_inline: false,
            overdrawn: None,
            inspector: None,
            transaction: None,
            fail_unsimulated: false,
            unsimulated: Vec::new(),
            cells: Vec::new(),
            natives: Vec::new(),
            inner_creations: 0,
            abort: None,
            fail_caller: false,
            codes_with_header: Vec::new(),
        }
    }

    /// Greatest call depth at which a frame runs (RSKIP-150). The first frame has depth 0.
    pub(super) fn max_depth(&self) -> usize {
        if self.rules.has(Rule::Rskip150) { 400 } else { 1024 }
    }
}

/// A native contract that was called by a contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeCallRecord {
    /// The native contract.
    pub contract: Precompile,
    /// Whether the call was made outside of all constructors that CREATE or CREATE2 has started. The reference node ignores calls
    /// inside of them when it determines which native contracts a parallel list called.
    pub outside_creations: bool,
}

/// Why a run was aborted without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The interrupt callback or the database ([`EvmState::exhausted`](super::EvmState::exhausted)) ended the run, or an inline run would
    /// have taken too long.
    Stopped,
    /// The code called a method of a native contract that this version does not implement.
    NotSimulated(Unsimulated),
    /// The code needs the balance of a sender that spent more than it has.
    OverdrawnBalance(Address),
    /// Under the rules before RSKIP-150, the output of a native contract would be written far beyond the
    /// caller's memory without a charge.
    UnpaidMemory,
    /// A local call creates a contract at an address that has code or a nonce, to which only an overridden nonce leads. In the
    /// reference node the creation takes over the account.
    TakenAddress(Address),
    /// A balance would reach 2^256 wei, which only overrides and edits of a development chain can cause.
    BalanceOverflow,
}

/// The state as the machine reads it. No method fails: the implementation records missing data and returns
/// zero.
pub(super) trait EvmDatabase: Database<Error = Infallible> {
    /// Length in bytes of the code with this hash, without loading the code.
    fn code_size(&mut self, code_hash: B256) -> usize;
    /// Whether the account has the storage-root marker that every contract has.
    fn is_contract(&mut self, address: Address) -> bool;
    /// Whether a state override gave the account its code.
    fn code_overridden(&self, address: Address) -> bool;
    /// All storage words of an account; `None` if the state cannot list them.
    fn whole_storage(&mut self, address: Address) -> Option<BTreeMap<U256, U256>>;
    /// Raw bytes of a cell of a native contract.
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes;
    /// The ancestor at a height.
    fn header(&mut self, number: u64) -> Option<SealedHeader>;
    /// The uncles that the ancestor at a height lists.
    fn uncles(&mut self, number: u64) -> Option<Vec<Header>>;
    /// Total difficulty of the chain up to the ancestor at a height, uncles included.
    fn total_difficulty(&mut self, number: u64) -> Option<U256>;
    /// Records a touch, if touches are tracked.
    fn touch(&mut self, touch: Touch);
    /// Wei by which the account's balance is negative.
    fn debt(&self, address: Address) -> U256;
    /// Contracts that earlier transactions of the block destroyed.
    fn destroyed_before(&self) -> Option<&BTreeSet<Address>>;
    /// Whether the run should end because its result would be discarded.
    fn exhausted(&self) -> bool;
}

/// `revm`'s context with the types of this layer.
pub(super) type EvmContext<'a, DB> = Context<BlockEnv, TxEnv, CfgEnv<Spec>, DB, Journal<DB>, RunContext<'a>>;

/// Argument of the instructions implemented in this layer.
pub(super) type OpcodeContext<'i, 'a, DB> = InstructionContext<'i, EvmContext<'a, DB>, EthInterpreter>;

/// The result of an instruction: `Err` ends the frame, or suspends it while an inner frame runs.
pub(super) type OpcodeResult<T = ()> = Result<T, InstructionResult>;

/// Charges gas or ends the frame.
pub(super) fn charge(interpreter: &mut Interpreter, cost: u64) -> OpcodeResult {
    if interpreter.gas.record_regular_cost(cost) { Ok(()) } else { Err(InstructionResult::OutOfGas) }
}

/// Pushes a word or ends the frame.
pub(super) fn push(interpreter: &mut Interpreter, word: U256) -> OpcodeResult {
    if interpreter.stack.push(word) { Ok(()) } else { Err(InstructionResult::StackOverflow) }
}

/// Pops `N` words, the top one first, or ends the frame.
pub(super) fn pop<const N: usize>(interpreter: &mut Interpreter) -> OpcodeResult<[U256; N]> {
    interpreter.stack.popn().ok_or(InstructionResult::StackUnderflow)
}

/// Aborts the run. The returned result only ends the interpreter; the frame loop then reads the reason.
pub(super) fn abort<DB: EvmDatabase>(context: &mut EvmContext<'_, DB>, reason: Abort) -> InstructionResult {
    context.chain.abort = Some(reason);
    InstructionResult::FatalExternalError
}
