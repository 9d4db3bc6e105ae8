//! Calls of native contracts from contracts, and what a call without a frame leaves behind.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, Log, U256};
use revm::context_interface::JournalTr as _;
use revm::handler::FrameResult;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::interpreter_types::ReturnData as _;
use revm::interpreter::{
    CallInputs, CallOutcome, CallScheme, CallValue, Gas, InstructionResult, InterpreterResult,
};

use super::context::{Abort, EvmContext, EvmDatabase};
use super::database::EvmState;
use super::frame::Answer;
use super::machine::{FirstFrame, Machine};
use super::precompiles::{CallType, NativeBlock, NativeCall, NativeHost, Precompile, Refusal, Unsimulated};
use super::touches::Touch;
use crate::consensus::Rule;
use crate::types::{Header, SealedHeader};

/// Memory in bytes that output may grow to where nobody pays for it (before RSKIP-150).
const MAX_UNPAID_MEMORY: usize = 1 << 22;

impl<S: EvmState> Machine<'_, S> {
    /// Calls a native contract: the value moves first. If the contract fails, value and state go
    /// back, but the logs that it wrote stay: the reference hands it the calling frame's own list
    /// of logs, which its rollback does not cover. A caller that fails too loses them.
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
        let journal = &mut self.evm.ctx.journaled_state;
        if answer.result.is_ok() {
            journal.checkpoint_commit();
        } else {
            let logs = journal.inner.logs.split_off(checkpoint.log_i.min(journal.inner.logs.len()));
            journal.checkpoint_revert(checkpoint);
            journal.inner.logs.extend(logs);
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
        let refused = |gas| InterpreterResult::new(InstructionResult::Revert, Bytes::new(), gas);
        let call = native_call(&self.evm.ctx, input, inputs, depth);
        let mut host = Host::new(&mut self.evm.ctx);
        let price = match precompile.price(&call, &mut host) {
            Ok(price) => price,
            // Nothing is paid for a price that cannot be found.
            Err(refusal) => {
                self.fail_native(precompile, refusal)?;
                return Ok(refused(gas));
            }
        };
        if !gas.record_regular_cost(price.gas) {
            gas.spend_all();
            return Ok(InterpreterResult::new(InstructionResult::PrecompileOOG, Bytes::new(), gas));
        }
        match precompile.run(&call, &mut host, price) {
            Ok(output) => Ok(InterpreterResult::new(InstructionResult::Return, output, gas)),
            // Before RSKIP-150 the reference cannot write nothing to memory, and fails.
            Err(Refusal::Nothing) if rules.has(Rule::Rskip150) && !rules.has(Rule::Rskip197) => {
                Ok(InterpreterResult::new(InstructionResult::Return, Bytes::new(), gas))
            }
            Err(refusal) => {
                self.fail_native(precompile, refusal)?;
                Ok(refused(gas))
            }
        }
    }

    /// Notes what is not simulated; before RSKIP-197 the caller fails with the contract.
    fn fail_native(&mut self, precompile: Precompile, refusal: Refusal) -> Result<(), Abort> {
        self.note_unsimulated(precompile, refusal)?;
        let chain = &mut self.evm.ctx.chain;
        chain.fail_caller = !chain.rules.has(Rule::Rskip197);
        Ok(())
    }

    fn note_unsimulated(&mut self, precompile: Precompile, refusal: Refusal) -> Result<(), Abort> {
        let method = match refusal {
            Refusal::NotSimulated(method) => method,
            Refusal::Interrupted => return Err(Abort::Stopped),
            Refusal::Failed | Refusal::Nothing => return Ok(()),
        };
        let unsimulated = Unsimulated { contract: precompile.address(), method };
        if !self.evm.ctx.chain.fail_unsimulated {
            return Err(Abort::NotSimulated(unsimulated));
        }
        self.evm.ctx.chain.unsimulated.push(unsimulated);
        Ok(())
    }

    /// Calls a native contract as a transaction or local call does, without a frame: nothing rolls
    /// back when it fails. The value moves after success, in transactions only (nothing reads the
    /// balances of a local call afterwards).
    pub fn run_direct(&mut self, precompile: Precompile, first: &FirstFrame) -> Result<DirectEnd, Abort> {
        let context = &mut self.evm.ctx;
        let caller = first.from.unwrap_or(Address::ZERO);
        let call = NativeCall {
            input: &first.data,
            caller: first.from,
            value: first.value,
            kind: CallType::Call,
            depth: 0,
            transaction: context.chain.transaction,
            block: native_block(context),
            rules: context.chain.rules,
            chain_id: context.cfg.chain_id,
        };
        let mut host = Host::new(context);
        let price = match precompile.price(&call, &mut host) {
            Ok(price) => price,
            Err(refusal) => {
                self.note_unsimulated(precompile, refusal)?;
                return Ok(self.direct_end(0, Direct::Failed, Vec::new()));
            }
        };
        let gas = price.gas;
        if gas > first.gas {
            return Ok(self.direct_end(gas, Direct::TooExpensive, Vec::new()));
        }
        let output = match precompile.run(&call, &mut host, price) {
            Ok(output) => output,
            Err(Refusal::Nothing) => Bytes::new(),
            Err(refusal) => {
                self.note_unsimulated(precompile, refusal)?;
                return Ok(self.direct_end(gas, Direct::Failed, Vec::new()));
            }
        };
        let payments = host.payments;
        if call.transaction.is_some() {
            match self.evm.ctx.journaled_state.transfer(caller, precompile.address(), first.value) {
                Ok(None) => {}
                Ok(Some(_)) => return Err(Abort::BalanceOverflow),
                Err(never) => match never {},
            }
        }
        Ok(self.direct_end(gas, Direct::Done(output), payments))
    }

    fn direct_end(&mut self, price: u64, outcome: Direct, payments: Vec<(Address, U256)>) -> DirectEnd {
        DirectEnd { price, outcome, logs: self.evm.ctx.journaled_state.take_logs(), payments }
    }

    /// Cells of native contracts as the run leaves them, those it wrote: contract, slot, bytes. No
    /// bytes remove a cell. To be asked for before the run is finished.
    pub fn written_cells(&self) -> Vec<(Address, U256, Bytes)> {
        let rules = self.evm.ctx.chain.rules;
        let mut written = Vec::new();
        for (contract, slots) in &*self.evm.ctx.journaled_state.transient_storage {
            if Precompile::at(contract, rules).is_none() {
                continue;
            }
            for (slot, place) in slots {
                let bytes = written_bytes(&self.evm.ctx.chain.cells, *place);
                written.extend(bytes.map(|bytes| (*contract, *slot, bytes)));
            }
        }
        written.sort_unstable_by_key(|(contract, slot, _)| (*contract, *slot));
        written
    }

    /// Methods of native contracts that failed because this version does not execute them.
    pub fn unsimulated(&self) -> &[Unsimulated] {
        &self.evm.ctx.chain.unsimulated
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
        // A creation without a frame hit a taken address: the buffer outlives that in every era.
        let collided = matches!(result, FrameResult::Create(_));
        if !collided && (rules.has(Rule::Rskip171) || answered) {
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

/// How a native contract's direct call ended.
#[derive(Debug)]
pub struct DirectEnd {
    /// Its price in gas.
    pub price: u64,
    /// The end.
    pub outcome: Direct,
    /// Logs, also those written before a failure.
    pub logs: Vec<Log>,
    /// What the contract paid, with [`NativeHost::pay`]: payee and wei. None after a failure.
    pub payments: Vec<(Address, U256)>,
}

/// How a native contract's direct call ended. Cells it wrote stay in every case.
#[derive(Debug)]
pub enum Direct {
    /// It returned this.
    Done(Bytes),
    /// It failed: no value moved.
    Failed,
    /// The price was above the gas, so it did not run.
    TooExpensive,
}

fn native_call<'c, 'a: 'c, DB: EvmDatabase>(
    context: &EvmContext<'a, DB>,
    input: &'c [u8],
    inputs: &CallInputs,
    depth: usize,
) -> NativeCall<'c> {
    let delegate = inputs.scheme == CallScheme::DelegateCall;
    NativeCall {
        input,
        caller: Some(if delegate { inputs.target_address } else { inputs.caller }),
        value: if delegate { U256::ZERO } else { inputs.value.get() },
        kind: match inputs.scheme {
            CallScheme::Call => CallType::Call,
            CallScheme::CallCode => CallType::CallCode,
            CallScheme::DelegateCall => CallType::DelegateCall,
            CallScheme::StaticCall => CallType::StaticCall,
        },
        depth,
        transaction: context.chain.transaction,
        block: native_block(context),
        rules: context.chain.rules,
        chain_id: context.cfg.chain_id,
    }
}

fn native_block<DB: EvmDatabase>(context: &EvmContext<'_, DB>) -> NativeBlock {
    NativeBlock {
        number: context.block.number.saturating_to(),
        timestamp: context.block.timestamp.saturating_to(),
        minimum_gas_price: context.chain.minimum_gas_price,
    }
}

fn written_bytes(cells: &[Bytes], place: U256) -> Option<Bytes> {
    cells.get(usize::try_from(place).ok()?.checked_sub(1)?).cloned()
}

/// The run, as native contracts see it.
struct Host<'h, 'a, DB: EvmDatabase> {
    context: &'h mut EvmContext<'a, DB>,
    /// Payees and wei; a call makes one payment at most.
    payments: Vec<(Address, U256)>,
}

impl<'h, 'a, DB: EvmDatabase> Host<'h, 'a, DB> {
    fn new(context: &'h mut EvmContext<'a, DB>) -> Self {
        Self { context, payments: Vec::new() }
    }
}

impl<DB: EvmDatabase> NativeHost for Host<'_, '_, DB> {
    fn interrupted(&self) -> bool {
        (self.context.chain.interrupt)()
    }

    fn cell(&mut self, contract: Address, slot: U256) -> Bytes {
        self.context.journaled_state.database.touch(Touch::CellRead(contract, slot));
        let place = self.context.journaled_state.tload(contract, slot);
        match written_bytes(&self.context.chain.cells, place) {
            Some(bytes) => bytes,
            None => self.context.journaled_state.database.cell(contract, slot),
        }
    }

    fn set_cell(&mut self, contract: Address, slot: U256, bytes: Bytes) {
        self.context.journaled_state.database.touch(Touch::CellWritten(contract, slot));
        self.context.chain.cells.push(bytes);
        let place = U256::from(self.context.chain.cells.len());
        self.context.journaled_state.tstore(contract, slot, place);
    }

    fn balance(&mut self, account: Address) -> U256 {
        self.context.journaled_state.database.touch(Touch::Inspected(account));
        let Ok(loaded) = self.context.journaled_state.load_account(account);
        loaded.data.info.balance
    }

    fn transfer(&mut self, from: Address, to: Address, amount: U256) -> bool {
        // The reference's transfers make a missing account, so does this one.
        self.context.journaled_state.database.touch(Touch::Transfer {
            from,
            to,
            value: amount,
            exists: false,
        });
        let Ok(failure) = self.context.journaled_state.transfer(from, to, amount);
        failure.is_none()
    }

    fn pay(&mut self, from: Address, to: Address, amount: U256) -> bool {
        let paid = self.transfer(from, to, amount);
        if paid {
            self.payments.push((to, amount));
        }
        paid
    }

    fn log(&mut self, log: Log) {
        if let Some(inspector) = self.context.chain.inspector.as_deref_mut() {
            inspector.log(&log);
        }
        self.context.journaled_state.log(log);
    }

    fn header(&mut self, number: u64) -> Option<SealedHeader> {
        self.context.journaled_state.database.header(number)
    }

    fn uncles(&mut self, number: u64) -> Option<Vec<Header>> {
        self.context.journaled_state.database.uncles(number)
    }

    fn total_difficulty(&mut self, number: u64) -> Option<U256> {
        self.context.journaled_state.database.total_difficulty(number)
    }
}
