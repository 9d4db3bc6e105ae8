//! The frame loop: opens frames, runs them in interruptible pieces, hands results back.

use alloc::boxed::Box;
use core::convert::Infallible;

use alloy_primitives::{Address, Bytes, Log, U256};
use revm::context::{BlockEnv, CfgEnv, Context, Evm, Journal, LocalContext, TxEnv};
use revm::context_interface::context::ContextError;
use revm::context_interface::journaled_state::account::JournaledAccountTr as _;
use revm::context_interface::{CreateScheme, JournalTr as _, LocalContextTr as _};
use revm::handler::{EthFrame, EvmTr as _, FrameData, FrameResult, ItemOrResult};
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::interpreter_types::LoopControl as _;
use revm::interpreter::{
    CallInput, CallInputs, CallOutcome, CallScheme, CallValue, CreateInputs, Gas, InstructionResult,
    InterpreterAction, InterpreterResult, SharedMemory,
};
use revm::primitives::hardfork::SpecId;

use super::code::skip_header;
use super::context::{Abort, EvmContext, EvmDatabase, RunContext, Spec};
use super::database::{Adapter, EvmState};
use super::gas::{gas_params, MAX_CODE};
use super::halt::HaltReason;
use super::opcodes::{instructions, Instructions};
use super::precompiles::{NoPrecompiles, Precompile, Refusal};
use crate::evm::rules::Rule;

/// Instructions between two looks at the interrupt callback: well under a millisecond.
const PIECE: usize = 4_096;

type Inner<'a, DB> =
    Evm<EvmContext<'a, DB>, (), Instructions<'a, DB>, NoPrecompiles, EthFrame<EthInterpreter>>;

type Opened = ItemOrResult<(), FrameResult>;

/// One machine for one message.
pub struct Machine<'a, S: EvmState> {
    evm: Inner<'a, Adapter<S>>,
}

/// Block and sender as the instructions see them; the rest is in [`RunContext`].
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Chain id (RSKIP-152).
    pub chain_id: u64,
    /// Height of the block.
    pub number: u64,
    /// Its time in seconds since 1970.
    pub timestamp: u64,
    /// Its miner.
    pub coinbase: Address,
    /// Its own difficulty.
    pub difficulty: U256,
    /// What ORIGIN pushes.
    pub origin: Address,
}

/// The outermost frame of a run.
pub struct FirstFrame {
    /// Sender; `None` is the reference's null sender, which is no account at all.
    pub from: Option<Address>,
    /// Callee, or `None` for a creation.
    pub to: Option<Address>,
    /// Value in wei. A sender that has less is overdrawn, as in the reference's local calls.
    pub value: U256,
    /// Call data, or initialisation code.
    pub data: Bytes,
    /// Gas left after the intrinsic price.
    pub gas: u64,
}

/// How the outermost frame ended.
#[derive(Debug)]
pub struct FrameEnd {
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on a halt.
    pub failure: Option<Option<HaltReason>>,
    /// Return data, revert data, or the code of the new contract.
    pub output: Bytes,
    /// Gas left; 0 after a halt.
    pub gas_left: u64,
    /// Refund earned, not capped yet; 0 after a failure.
    pub refund: u64,
    /// Logs in order; none after a failure.
    pub logs: alloc::vec::Vec<Log>,
}

impl<'a, S: EvmState> Machine<'a, S> {
    /// A machine over this state, for one block and one rule set.
    pub fn new(state: S, setting: Setting, run: RunContext<'a>) -> Self {
        let rules = run.rules;
        let mut cfg = CfgEnv::new_with_spec(Spec(rules));
        cfg.chain_id = setting.chain_id;
        cfg.limit_contract_code_size = Some(MAX_CODE);
        cfg.set_gas_params(gas_params(rules));
        let mut context: EvmContext<'a, Adapter<S>> = Context {
            block: BlockEnv {
                number: U256::from(setting.number),
                timestamp: U256::from(setting.timestamp),
                beneficiary: setting.coinbase,
                difficulty: setting.difficulty,
                ..BlockEnv::default()
            },
            tx: TxEnv { caller: setting.origin, ..TxEnv::default() },
            cfg,
            journaled_state: Journal::new(Adapter(state)),
            chain: run,
            local: LocalContext::default(),
            error: Ok(()),
        };
        // A journal from before EIP-161 knows existence, not emptiness, and clears nothing.
        context.journaled_state.set_spec_id(SpecId::TANGERINE);
        Self { evm: Evm::new(context, instructions(rules), NoPrecompiles::default()) }
    }

    /// The state as the run left it behind, with its notes.
    pub fn state(&self) -> &S {
        &self.evm.ctx.journaled_state.database.0
    }

    /// Runs to the end of the outermost frame.
    pub fn run(&mut self, first: FirstFrame) -> Result<FrameEnd, Abort> {
        self.fund(&first);
        let from = first.from;
        let creates = first.to.is_none();
        let init = self.first_init(first);
        let result = match self.open(init)? {
            ItemOrResult::Result(result) => result,
            ItemOrResult::Item(()) => {
                self.after_first_open(from, creates);
                self.run_frames()?
            }
        };
        Ok(self.end(result))
    }

    /// Makes sure the value can be moved: a local call does not check the balance. The null
    /// sender gets the value from nowhere; a real one that has less is overdrawn.
    fn fund(&mut self, first: &FirstFrame) {
        if first.value.is_zero() && first.to.is_some() {
            return;
        }
        let journal = &mut self.evm.ctx.journaled_state;
        let address = first.from.unwrap_or(Address::ZERO);
        let Ok(loaded) = journal.load_account(address);
        let balance = loaded.data.info.balance;
        let funded =
            if first.from.is_none() { balance.saturating_add(first.value) } else { balance.max(first.value) };
        if first.from.is_some() && funded != balance {
            self.evm.ctx.chain.overdrawn = first.from;
        }
        if let Some(account) = journal.state.get_mut(&address) {
            account.info.balance = funded;
        }
    }

    fn first_init(&mut self, first: FirstFrame) -> FrameInit {
        let caller = first.from.unwrap_or(Address::ZERO);
        let frame_input = match first.to {
            None => {
                let inputs =
                    CreateInputs::new(caller, CreateScheme::Create, first.value, first.data, first.gas, 0);
                FrameInput::Create(Box::new(inputs))
            }
            Some(to) => {
                let (code_hash, code) = match self.evm.ctx.journaled_state.load_account_with_code(to) {
                    Ok(loaded) => {
                        (loaded.data.info.code_hash, loaded.data.info.code.clone().unwrap_or_default())
                    }
                    Err(never) => match never {},
                };
                FrameInput::Call(Box::new(CallInputs {
                    input: CallInput::Bytes(first.data),
                    return_memory_offset: 0..0,
                    gas_limit: first.gas,
                    bytecode_address: to,
                    known_bytecode: (code_hash, code),
                    target_address: to,
                    caller,
                    value: CallValue::Transfer(first.value),
                    scheme: CallScheme::Call,
                    is_static: false,
                    reservoir: 0,
                    charged_new_account_state_gas: false,
                }))
            }
        };
        let memory = SharedMemory::new_with_buffer(self.evm.ctx.local.shared_memory_buffer().clone());
        FrameInit { depth: 0, memory, frame_input }
    }

    /// A local call leaves its sender alone: no nonce step, and the null sender stays no account.
    fn after_first_open(&mut self, from: Option<Address>, creates: bool) {
        let caller = from.unwrap_or(Address::ZERO);
        let state = &mut self.evm.ctx.journaled_state.state;
        if let Some(account) = state.get_mut(&caller) {
            if creates {
                account.info.nonce = account.info.nonce.saturating_sub(1);
            }
            if from.is_none() {
                account.unmark_touch();
            }
        }
    }

    fn run_frames(&mut self) -> Result<FrameResult, Abort> {
        loop {
            let result = match self.run_frame()? {
                ItemOrResult::Item(init) => match self.open(init)? {
                    ItemOrResult::Item(()) => continue,
                    ItemOrResult::Result(result) => result,
                },
                ItemOrResult::Result(result) => result,
            };
            if let Some(last) = self.hand_back(result)? {
                return Ok(last);
            }
        }
    }

    /// Opens a frame, or answers at once: native contracts, accounts without code, collisions.
    fn open(&mut self, init: FrameInit) -> Result<Opened, Abort> {
        let depth = init.depth;
        let mut inner_nonce = None;
        match &init.frame_input {
            FrameInput::Call(inputs) => {
                if let Some(precompile) = Precompile::at(&inputs.bytecode_address, self.evm.ctx.chain.rules) {
                    return self.call_precompile(precompile, init).map(ItemOrResult::Result);
                }
            }
            // A contract created by a transaction starts with nonce 0, one created by a
            // contract with 1 (RSKIP-125).
            FrameInput::Create(_) if depth == 0 || !self.evm.ctx.chain.rules.has(Rule::Rskip125) => {
                inner_nonce = Some(0);
            }
            _ => {}
        }
        let opened = match self.evm.frame_init(init).map_err(unexpected)? {
            ItemOrResult::Result(result) => {
                if result.instruction_result() == InstructionResult::OverflowPayment {
                    return Err(Abort::BalanceOverflow);
                }
                return Ok(ItemOrResult::Result(result));
            }
            ItemOrResult::Item(frame) => frame,
        };
        let created = match (&opened.data, inner_nonce) {
            (FrameData::Create(frame), Some(nonce)) => Some((frame.created_address, nonce)),
            _ => None,
        };
        let header = skip_header(&mut opened.interpreter.bytecode);
        let context = &mut self.evm.ctx;
        match header {
            Some(code) => context.chain.headed_codes.insert(depth, code),
            None => context.chain.headed_codes.remove(&depth),
        };
        if let Some((address, nonce)) = created {
            let Ok(mut account) = context.journaled_state.load_account_mut(address);
            account.data.set_nonce(nonce);
        }
        Ok(ItemOrResult::Item(()))
    }

    /// Runs the top frame until it ends or opens another one.
    fn run_frame(&mut self) -> Result<ItemOrResult<FrameInit, FrameResult>, Abort> {
        let frame = self.evm.frame_stack.get();
        let context = &mut self.evm.ctx;
        let table = self.evm.instruction.instruction_table();
        let gas_table = self.evm.instruction.gas_table();
        let interpreter = &mut frame.interpreter;
        let end = 'run: loop {
            if context.chain.fail_caller {
                context.chain.fail_caller = false;
                break InstructionResult::PrecompileError;
            }
            if (context.chain.interrupt)() || context.journaled_state.database.exhausted() {
                return Err(Abort::Stopped);
            }
            for _ in 0..PIECE {
                if let Err(end) = interpreter.step(table, gas_table, context) {
                    break 'run end;
                }
            }
        };
        if let Some(reason) = context.chain.abort {
            return Err(reason);
        }
        if interpreter.bytecode.action().is_none() {
            interpreter.halt(end);
        }
        let mut action = interpreter.take_next_action();
        if let (InterpreterAction::Return(result), FrameData::Create(_)) = (&mut action, &frame.data) {
            check_new_code(result, context);
        }
        let next = frame.process_next_action::<_, ContextError<Infallible>>(context, action);
        next.map_err(unexpected).inspect(|next| frame.set_finished(next.is_result()))
    }

    /// Gives a result to the frame below; the last one comes back.
    fn hand_back(&mut self, mut result: FrameResult) -> Result<Option<FrameResult>, Abort> {
        let finished = self.evm.frame_stack.get().is_finished();
        let nested = !finished || self.evm.frame_stack.index().is_some_and(|index| index > 0);
        if let (FrameResult::Create(outcome), true) = (&mut result, nested) {
            // The reference keeps neither the revert data nor the refunds of an inner creation.
            if outcome.result.result == InstructionResult::Revert {
                outcome.result.output = Bytes::new();
            }
            outcome.result.gas.set_refund(0);
        }
        self.evm.frame_return_result(result).map_err(unexpected)
    }

    /// Calls a native contract: value first, then its price, then its work. A refused call
    /// costs the price alone (RSKIP-197); before, it took its caller with it.
    fn call_precompile(&mut self, precompile: Precompile, init: FrameInit) -> Result<FrameResult, Abort> {
        let depth = init.depth;
        let FrameInput::Call(inputs) = &init.frame_input else { return Err(Abort::Stopped) };
        let context = &mut self.evm.ctx;
        let rules = context.chain.rules;
        let checkpoint = context.journaled_state.checkpoint();
        let moves = matches!(inputs.value, CallValue::Transfer(value) if !value.is_zero());
        if moves || !rules.has(Rule::Rskip126) {
            let value = inputs.value.transfer().unwrap_or_default();
            let Ok(failed) = context.journaled_state.transfer(inputs.caller, inputs.target_address, value);
            if failed.is_some() {
                return Err(Abort::BalanceOverflow);
            }
        }
        let input = match inputs.input.is_empty() {
            // An empty stretch lies behind the end of memory and must not be looked up.
            true => Bytes::new(),
            false => Bytes::copy_from_slice(&inputs.input.as_bytes_memory(&init.memory)),
        };
        let mut gas = Gas::new(inputs.gas_limit);
        let price = precompile.price(&input);
        let answer = if price > inputs.gas_limit {
            gas.spend_all();
            InterpreterResult::new(InstructionResult::PrecompileOOG, Bytes::new(), gas)
        } else {
            let _ = gas.record_regular_cost(price);
            match precompile.run(&input, depth, rules) {
                Ok(output) => InterpreterResult::new(InstructionResult::Return, output, gas),
                Err(Refusal::NotSimulated) => {
                    return Err(Abort::NotSimulated(inputs.bytecode_address));
                }
                Err(Refusal::Failed) => {
                    context.chain.fail_caller = !rules.has(Rule::Rskip197);
                    InterpreterResult::new(InstructionResult::Revert, Bytes::new(), gas)
                }
            }
        };
        if answer.result.is_ok() {
            context.journaled_state.checkpoint_commit();
        } else {
            context.journaled_state.checkpoint_revert(checkpoint);
        }
        Ok(FrameResult::Call(CallOutcome::new(answer, inputs.return_memory_offset.clone())))
    }

    fn end(&mut self, result: FrameResult) -> FrameEnd {
        let result = result.into_interpreter_result();
        let logs = self.evm.ctx.journaled_state.take_logs();
        if result.result.is_ok() {
            let refund = u64::try_from(result.gas.refunded()).unwrap_or(0);
            let gas_left = result.gas.remaining();
            return FrameEnd { failure: None, output: result.output, gas_left, refund, logs };
        }
        let reverted = result.result == InstructionResult::Revert;
        FrameEnd {
            failure: Some((!reverted).then(|| HaltReason::from_result(result.result))),
            output: if reverted { result.output } else { Bytes::new() },
            gas_left: if reverted { result.gas.remaining() } else { 0 },
            refund: 0,
            logs: alloc::vec::Vec::new(),
        }
    }
}

/// RSKIP-544: new code must not start with `0xEF`.
fn check_new_code<DB: EvmDatabase>(result: &mut InterpreterResult, context: &EvmContext<'_, DB>) {
    let marked = result.output.first() == Some(&0xef);
    if result.result.is_ok() && marked && context.chain.rules.has(Rule::Rskip544) {
        result.result = InstructionResult::CreateContractStartingWithEF;
    }
}

/// The database cannot fail and nothing here sets a text error, so this is not reached; the run
/// is given up all the same.
fn unexpected(error: ContextError<Infallible>) -> Abort {
    match error {
        ContextError::Db(never) => match never {},
        ContextError::Custom(_) => Abort::Stopped,
    }
}
