//! The frame loop: opens frames, runs them with regular interrupt checks and returns their results. A frame is one call or creation;
//! `run.rs` opens the outermost one.

use core::convert::Infallible;

use alloy_primitives::{Address, Bytes};
use revm::context_interface::JournalTr as _;
use revm::context_interface::context::ContextError;
use revm::context_interface::journaled_state::account::JournaledAccountTr as _;
use revm::handler::{EvmTr as _, FrameData, FrameResult, ItemOrResult};
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::interpreter_types::LoopControl as _;
use revm::interpreter::{InstructionResult, InterpreterAction, InterpreterResult};

use super::code::skip_header;
use super::context::{Abort, EvmContext, EvmDatabase};
use super::database::EvmState;
use super::gas::MAX_CODE;
use super::inline_run;
use super::inspect::Inspector;
use super::inspect_hooks::watched_steps;
use super::machine::Machine;
use super::precompiles::Precompile;
use super::touches::Touch;
use crate::consensus::Rule;

/// Number of instructions between two calls of the interrupt callback; this many take well under a millisecond.
const PIECE: usize = 4_096;

/// The result of a call or creation that did not open a frame.
pub(super) struct ImmediateResult {
    pub(super) result: FrameResult,
    /// Whether a native contract was called.
    pub(super) native: bool,
}

impl<S: EvmState> Machine<'_, S> {
    /// Runs the frames on the stack to the end of the outermost one.
    pub(super) fn run_frames(&mut self) -> Result<FrameResult, Abort> {
        loop {
            let ended = match self.run_frame()? {
                ItemOrResult::Result(result) => self.hand_back(result)?,
                ItemOrResult::Item(init) => match self.open(init)? {
                    None => None,
                    Some(immediate) => self.hand_back_immediate(immediate)?,
                },
            };
            if let Some(last) = ended {
                return Ok(last);
            }
        }
    }

    /// Opens a frame, or returns a result at once for native contracts, accounts without code and collisions.
    /// `None` means that a frame was opened.
    pub(super) fn open(&mut self, init: FrameInit) -> Result<Option<ImmediateResult>, Abort> {
        let depth = init.depth;
        let rules = self.evm.ctx.chain.rules;
        if let FrameInput::Call(inputs) = &init.frame_input
            && let Some(precompile) = Precompile::at(&inputs.bytecode_address, rules)
        {
            self.report_frame(&init, true);
            let result = self.call_native(precompile, init)?;
            return Ok(Some(ImmediateResult { result, native: true }));
        }
        self.report_frame(&init, false);
        if let Some(result) = self.refuse_destroyed(&init) {
            return Ok(Some(ImmediateResult { result, native: false }));
        }
        let opened = match self.evm.frame_init(init).map_err(unexpected)? {
            ItemOrResult::Result(result)
                if result.instruction_result() == InstructionResult::OverflowPayment =>
            {
                return Err(Abort::BalanceOverflow);
            }
            ItemOrResult::Result(result) => return Ok(Some(ImmediateResult { result, native: false })),
            ItemOrResult::Item(frame) => frame,
        };
        let created = match &opened.data {
            FrameData::Create(frame) => Some(frame.created_address),
            FrameData::Call(_) => None,
        };
        let whole_code = skip_header(&mut opened.interpreter.bytecode);
        let codes = &mut self.evm.ctx.chain.codes_with_header;
        // The codes of frames that have ended are dropped.
        codes.resize(depth, None);
        codes.push(whole_code);
        // A contract created by a transaction starts with nonce 0. One created by a contract starts with
        // nonce 1 (RSKIP-125).
        if let Some(address) = created {
            self.evm.ctx.journaled_state.database.touch(Touch::Created(address));
            if depth > 0 {
                self.evm.ctx.chain.inner_creations = self.evm.ctx.chain.inner_creations.saturating_add(1);
            }
        }
        if let Some(address) = created.filter(|_| depth == 0 || !rules.has(Rule::Rskip125)) {
            self.clear_nonce(address);
        }
        Ok(None)
    }

    /// Sets the nonce of a new contract to 0; `revm` has set it to 1.
    fn clear_nonce(&mut self, address: Address) {
        let Ok(mut account) = self.evm.ctx.journaled_state.load_account_mut(address);
        account.data.set_nonce(0);
    }

    /// Runs the top frame until it ends or opens another frame.
    fn run_frame(&mut self) -> Result<ItemOrResult<FrameInit, FrameResult>, Abort> {
        let frame = self.evm.frame_stack.get();
        let context = &mut self.evm.ctx;
        let table = self.evm.instruction.instruction_table();
        let gas_table = self.evm.instruction.gas_table();
        let interpreter = &mut frame.interpreter;
        let end = 'run: loop {
            // A native contract that this frame called has failed, which makes the frame fail before RSKIP-197.
            if context.chain.fail_caller {
                context.chain.fail_caller = false;
                break InstructionResult::PrecompileError;
            }
            if (context.chain.interrupt)() || context.journaled_state.database.exhausted() {
                return Err(Abort::Stopped);
            }
            if context.chain.inspector.as_deref().is_some_and(Inspector::wants_steps) {
                match watched_steps(PIECE, interpreter, table, gas_table, context) {
                    Ok(()) => continue,
                    Err(end) => break end,
                }
            }
            if context.chain.is_inline {
                match inline_run::steps(interpreter, table, gas_table, context) {
                    Ok(()) => continue,
                    Err(end) => break end,
                }
            }
            for _ in 0..PIECE {
                if let Err(end) = interpreter.step(table, gas_table, context) {
                    break 'run end;
                }
            }
        };
        // The limit of inline runs, not that of a run: the call runs again with more memory.
        if context.chain.is_inline && end == InstructionResult::MemoryLimitOOG {
            return Err(Abort::Stopped);
        }
        if let Some(reason) = context.chain.abort {
            return Err(reason);
        }
        if interpreter.bytecode.action().is_none() {
            interpreter.halt(end);
        }
        let mut action = interpreter.take_next_action();
        if let (InterpreterAction::Return(result), FrameData::Create(_)) = (&mut action, &frame.data) {
            check_new_code(result, frame.depth, context);
        }
        let next = frame.process_next_action::<_, ContextError<Infallible>>(context, action);
        next.map_err(unexpected).inspect(|next| frame.set_finished(next.is_result()))
    }

    /// Passes a result to the frame below; the result of the outermost frame is returned.
    pub(super) fn hand_back(&mut self, mut result: FrameResult) -> Result<Option<FrameResult>, Abort> {
        self.report_frame_end(&result);
        let finished = self.evm.frame_stack.get().is_finished();
        let inner = self.evm.frame_stack.index().is_some_and(|index| index > 0);
        // If the top frame is not finished, the result is of a call or creation that it made without opening a frame.
        let nested = !finished || inner;
        if finished && inner && matches!(result, FrameResult::Create(_)) {
            self.evm.ctx.chain.inner_creations = self.evm.ctx.chain.inner_creations.saturating_sub(1);
        }
        if let (FrameResult::Create(outcome), true) = (&mut result, nested) {
            // The reference node drops the revert data and the refunds of an inner creation.
            if outcome.result.result == InstructionResult::Revert {
                outcome.result.output = Bytes::new();
            }
            outcome.result.gas.set_refund(0);
        }
        self.evm.frame_return_result(result).map_err(unexpected)
    }
}

/// Checks the code of a new contract, which must not start with `0xEF` (RSKIP-544). Before RSKIP-453, an inner
/// creation whose code is too long or not paid for succeeds without code.
fn check_new_code<DB: EvmDatabase>(
    result: &mut InterpreterResult,
    depth: usize,
    context: &EvmContext<'_, DB>,
) {
    if !result.result.is_ok() {
        return;
    }
    let rules = context.chain.rules;
    let len = result.output.len();
    let unpaid = context.cfg.gas_params.code_deposit_cost(len) > result.gas.remaining();
    let too_long = len > MAX_CODE;
    if rules.has(Rule::Rskip544) && result.output.first() == Some(&0xef) {
        result.result = InstructionResult::CreateContractStartingWithEF;
    } else if depth > 0 && !rules.has(Rule::Rskip453) && (unpaid || too_long) {
        result.output = Bytes::new();
    } else if unpaid && too_long {
        // If both apply, the reference node reports out of gas. `revm` fails the creation if only one applies.
        result.result = InstructionResult::OutOfGas;
    }
}

/// Not reached: the database cannot fail, and no code here sets a custom error. The run is aborted in any
/// case.
fn unexpected(error: ContextError<Infallible>) -> Abort {
    match error {
        ContextError::Db(never) => match never {},
        ContextError::Custom(_) => Abort::Stopped,
    }
}
