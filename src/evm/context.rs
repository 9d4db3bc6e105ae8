//! What a run knows besides accounts: rules, block facts wider than `revm` holds, reasons to stop.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::convert::Infallible;

use alloy_primitives::{Address, Bytes, B256, U256};
use revm::context::{BlockEnv, CfgEnv, Context, Journal, TxEnv};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::{InstructionContext, InstructionResult, Interpreter};
use revm::primitives::hardfork::SpecId;
use revm::Database;

use super::inspect::Inspector;
use super::precompiles::{Precompile, RunTransaction, Unsimulated};
use super::touches::Touch;
use crate::consensus::{Rule, RuleSet};
use crate::types::{Header, SealedHeader};

/// The rule set in the shape `revm` wants a specification in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spec(pub(super) RuleSet);

impl From<Spec> for SpecId {
    /// Petersburg is the Ethereum schedule nearest to Rootstock's in every era; what differs is
    /// set opcode by opcode.
    fn from(_: Spec) -> SpecId {
        SpecId::PETERSBURG
    }
}

/// Facts of one run that `revm`'s block and transaction types have no room for.
pub struct RunContext<'a> {
    /// Rules of the block whose state the run sees.
    pub rules: RuleSet,
    /// Gas limit of that block, as its header says.
    pub gas_limit: U256,
    /// Minimum gas price of that block in wei; what BASEFEE pushes (RSKIP-412).
    pub minimum_gas_price: U256,
    /// Gas price of the call in wei.
    pub gas_price: U256,
    /// Asked every few thousand instructions; `true` ends the run.
    pub interrupt: &'a dyn Fn() -> bool,
    /// Sender whose balance the reference lets fall below zero: nothing may read it.
    pub overdrawn: Option<Address>,
    /// Who watches the run.
    pub inspector: Option<&'a mut dyn Inspector>,
    /// The transaction that runs; `None` in a local call.
    pub transaction: Option<RunTransaction<'a>>,
    /// Methods of native contracts that are not executed fail, as transactions need it, instead of
    /// ending the run; [`Machine::unsimulated`](super::Machine::unsimulated) names them.
    pub fail_unsimulated: bool,
    /// Those methods, in the order of their calls.
    pub(super) unsimulated: Vec<Unsimulated>,
    /// Bytes of written cells; transient storage of native contracts holds places in here, one
    /// more than the index, so that cells roll back with their frames.
    pub(super) cells: Vec<Bytes>,
    /// Native contracts that were called, also in frames that were rolled back.
    pub(super) natives: Vec<NativeCalled>,
    /// Open frames of creations by contracts.
    pub(super) inner_creations: usize,
    /// Set by an instruction that cannot go on; taken by the frame loop.
    pub(super) abort: Option<Abort>,
    /// A native contract failed under the rules before RSKIP-197: its caller fails too.
    pub(super) fail_caller: bool,
    /// Running codes that start with a code header; the index is the call depth.
    pub(super) headed_codes: Vec<Option<Bytes>>,
}

impl<'a> RunContext<'a> {
    /// A context without prices and with nobody overdrawn.
    pub fn new(rules: RuleSet, interrupt: &'a dyn Fn() -> bool) -> Self {
        Self {
            rules,
            gas_limit: U256::ZERO,
            minimum_gas_price: U256::ZERO,
            gas_price: U256::ZERO,
            interrupt,
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
            headed_codes: Vec::new(),
        }
    }

    /// Deepest call depth at which a frame may still run (RSKIP-150; the first frame has depth 0).
    pub(super) fn max_depth(&self) -> usize {
        if self.rules.has(Rule::Rskip150) {
            400
        } else {
            1024
        }
    }
}

/// A native contract that contracts called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeCalled {
    /// Which one.
    pub contract: Precompile,
    /// Whether a call came from outside of all constructors of contracts that contracts created. The reference
    /// overlooks the others when it asks which native contracts a parallel list called.
    pub outside_creations: bool,
}

/// Why a run ended without a result of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Abort {
    /// The interrupt callback or the database asked for it.
    Stopped,
    /// A method of a native contract that this version does not execute was called.
    NotSimulated(Unsimulated),
    /// The balance of a sender that spent more than it has was needed.
    OverdrawnBalance(Address),
    /// Output that the rules before RSKIP-150 write far behind a caller's memory, for nothing.
    UnpaidMemory,
    /// A creation at an address that has code or a nonce, which the reference lets a transaction
    /// take over.
    TakenAddress(Address),
    /// Balances beyond 2^256 wei, possible only through state overrides.
    BalanceOverflow,
}

/// State as the machine reads it. It never fails: what is missing is noted by the implementation
/// and read as zero.
pub(super) trait EvmDatabase: Database<Error = Infallible> {
    /// Length in bytes of the code with this hash, without loading the code.
    fn code_size(&mut self, code_hash: B256) -> usize;
    /// Whether the account has the storage-root marker that every contract has.
    fn is_contract(&mut self, address: Address) -> bool;
    /// Whether a state override gave the account its code.
    fn code_overridden(&self, address: Address) -> bool;
    /// All storage words of an account, where they can be listed.
    fn whole_storage(&mut self, address: Address) -> Option<BTreeMap<U256, U256>>;
    /// Raw bytes of a cell of a native contract.
    fn cell(&mut self, contract: Address, slot: U256) -> Bytes;
    /// The ancestor of the block at a height.
    fn header(&mut self, number: u64) -> Option<SealedHeader>;
    /// Its uncles.
    fn uncles(&mut self, number: u64) -> Option<Vec<Header>>;
    /// Total difficulty up to it.
    fn total_difficulty(&mut self, number: u64) -> Option<U256>;
    /// Notes what an operation touches, if anybody wants to know.
    fn touch(&mut self, touch: Touch);
    /// Wei by which the account's balance lies below zero.
    fn debt(&self, address: Address) -> U256;
    /// Contracts that earlier transactions of the block destroyed.
    fn destroyed_before(&self) -> Option<&BTreeSet<Address>>;
    /// Whether the run should end: its result would be thrown away.
    fn exhausted(&self) -> bool;
}

pub(super) type EvmContext<'a, DB> = Context<BlockEnv, TxEnv, CfgEnv<Spec>, DB, Journal<DB>, RunContext<'a>>;

/// Argument of every instruction written here.
pub(super) type Step<'i, 'a, DB> = InstructionContext<'i, EvmContext<'a, DB>, EthInterpreter>;

pub(super) type StepResult<T = ()> = Result<T, InstructionResult>;

/// Charges gas or ends the frame.
pub(super) fn charge(interpreter: &mut Interpreter, cost: u64) -> StepResult {
    if interpreter.gas.record_regular_cost(cost) {
        Ok(())
    } else {
        Err(InstructionResult::OutOfGas)
    }
}

/// Pushes a word or ends the frame.
pub(super) fn push(interpreter: &mut Interpreter, word: U256) -> StepResult {
    if interpreter.stack.push(word) {
        Ok(())
    } else {
        Err(InstructionResult::StackOverflow)
    }
}

/// Pops `N` words, the top one first, or ends the frame.
pub(super) fn pop<const N: usize>(interpreter: &mut Interpreter) -> StepResult<[U256; N]> {
    interpreter.stack.popn().ok_or(InstructionResult::StackUnderflow)
}

/// Ends the run: the instruction result is only a way out, the frame loop looks at the reason.
pub(super) fn abort<DB: EvmDatabase>(context: &mut EvmContext<'_, DB>, reason: Abort) -> InstructionResult {
    context.chain.abort = Some(reason);
    InstructionResult::FatalExternalError
}
