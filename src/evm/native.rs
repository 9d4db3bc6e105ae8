//! Calls of native contracts from contracts, and what a call without a frame leaves behind.

use alloy_primitives::Bytes;
use revm::context_interface::JournalTr as _;
use revm::handler::FrameResult;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::interpreter_types::ReturnData as _;
use revm::interpreter::{CallInputs, CallOutcome, CallValue, Gas, InstructionResult, InterpreterResult};

use super::context::Abort;
use super::database::EvmState;
use super::frame::Answer;
use super::machine::Machine;
use super::precompiles::{Precompile, Refusal};
use crate::consensus::Rule;

/// Memory in bytes that output may grow to where nobody pays for it (before RSKIP-150).
const MAX_UNPAID_MEMORY: usize = 1 << 22;

impl<S: EvmState> Machine<'_, S> {
    /// Calls a native contract: the value moves first and comes back if it fails.
    pub(super) fn call_native(
        &mut self,
        precompile: Precompile,
        init: FrameInit,
    ) -> Result<FrameResult, Abort> {
        let FrameInput::Call(inputs) = &init.frame_input else { return Err(Abort::Stopped) };
        let input = match inputs.input.is_empty() {
            // An empty stretch lies behind the end of memory and must not be looked up.
            true => Bytes::new(),
            false => Bytes::copy_from_slice(&inputs.input.as_bytes_memory(&init.memory)),
        };
        let checkpoint = self.evm.ctx.journaled_state.checkpoint();
        self.move_value(inputs)?;
        let answer = self.run_native(precompile, &input, inputs, init.depth)?;
        if answer.result.is_ok() {
            self.evm.ctx.journaled_state.checkpoint_commit();
        } else {
            self.evm.ctx.journaled_state.checkpoint_revert(checkpoint);
        }
        Ok(FrameResult::Call(CallOutcome::new(answer, inputs.return_memory_offset.clone())))
    }

    /// Moves the value. Since RSKIP-126 a native contract exists whatever it is sent, so moving
    /// nothing needs neither account.
    fn move_value(&mut self, inputs: &CallInputs) -> Result<(), Abort> {
        let CallValue::Transfer(value) = inputs.value else { return Ok(()) };
        if value.is_zero() && self.evm.ctx.chain.rules.has(Rule::Rskip126) {
            return Ok(());
        }
        let journal = &mut self.evm.ctx.journaled_state;
        match journal.transfer(inputs.caller, inputs.target_address, value) {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(Abort::BalanceOverflow),
            Err(never) => match never {},
        }
    }

    /// A price above the gas takes all of it. A refused input costs the price alone (RSKIP-197);
    /// before, it took the caller with it.
    fn run_native(
        &mut self,
        precompile: Precompile,
        input: &[u8],
        inputs: &CallInputs,
        depth: usize,
    ) -> Result<InterpreterResult, Abort> {
        let rules = self.evm.ctx.chain.rules;
        let mut gas = Gas::new(inputs.gas_limit);
        if !gas.record_regular_cost(precompile.price(input)) {
            gas.spend_all();
            return Ok(InterpreterResult::new(InstructionResult::PrecompileOOG, Bytes::new(), gas));
        }
        match precompile.run(input, depth, rules) {
            Ok(output) => Ok(InterpreterResult::new(InstructionResult::Return, output, gas)),
            Err(Refusal::NotSimulated) => Err(Abort::NotSimulated(inputs.bytecode_address)),
            Err(Refusal::Failed) => {
                self.evm.ctx.chain.fail_caller = !rules.has(Rule::Rskip197);
                Ok(InterpreterResult::new(InstructionResult::Revert, Bytes::new(), gas))
            }
        }
    }

    /// Hands back the answer of a call that opened no frame. Before RSKIP-171 only a native contract's
    /// success replaced the return buffer.
    pub(super) fn hand_back_answer(
        &mut self,
        Answer { result, native }: Answer,
    ) -> Result<Option<FrameResult>, Abort> {
        let rules = self.evm.ctx.chain.rules;
        let answered = native && result.instruction_result().is_ok();
        if answered && !rules.has(Rule::Rskip150) {
            return self.hand_back_unsized(result);
        }
        if rules.has(Rule::Rskip171) || answered || matches!(result, FrameResult::Create(_)) {
            return self.hand_back(result);
        }
        let buffer = self.evm.frame_stack.get().interpreter.return_data.buffer().clone();
        let last = self.hand_back(result)?;
        self.evm.frame_stack.get().interpreter.return_data.set_buffer(buffer);
        Ok(last)
    }

    /// Before RSKIP-150 a native contract's whole output went to memory, whatever room its caller
    /// gave.
    fn hand_back_unsized(&mut self, mut result: FrameResult) -> Result<Option<FrameResult>, Abort> {
        let FrameResult::Call(outcome) = &mut result else { return self.hand_back(result) };
        let at = outcome.memory_offset.start;
        let output = outcome.result.output.clone();
        outcome.memory_offset = at..at;
        let last = self.hand_back(result)?;
        self.write_unpaid(at, &output)?;
        Ok(last)
    }

    /// Writes output to the top frame's memory, which grows for nothing.
    fn write_unpaid(&mut self, at: usize, output: &[u8]) -> Result<(), Abort> {
        if output.is_empty() {
            return Ok(());
        }
        let end = at.checked_add(output.len()).filter(|end| *end <= MAX_UNPAID_MEMORY);
        let words = end.ok_or(Abort::UnpaidMemory)?.div_ceil(32);
        let cost = self.evm.ctx.cfg.gas_params.memory_cost(words);
        let interpreter = &mut self.evm.frame_stack.get().interpreter;
        if words > interpreter.gas.memory().words_num {
            let _ = interpreter.gas.memory_mut().set_words_num(words, cost);
            interpreter.memory.resize(words.saturating_mul(32));
        }
        interpreter.memory.set(at, output);
        Ok(())
    }
}
