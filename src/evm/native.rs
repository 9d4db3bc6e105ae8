//! Calls of native contracts (contracts that the node implements itself): by contracts, in the frame loop, or directly by a transaction.
//! Also the results of calls that opened no frame.

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
use super::frame::ImmediateResult;
use super::machine::Machine;
use super::precompiles::{
    CallType, NativeBlock, NativeCall, NativeFailure, NativeHost, Precompile, Unsimulated,
};
use super::run::FirstFrame;
use super::touches::Touch;
use crate::consensus::Rule;
use crate::types::{Header, SealedHeader};

/// Most bytes to which the output of a native contract can grow memory without a charge (before RSKIP-150). Beyond, the run is aborted,
/// so that a call cannot take any amount of memory.
const MAX_UNPAID_MEMORY: usize = 1 << 22;

impl<S: EvmState> Machine<'_, S> {
    /// Calls a native contract from a contract. The value is transferred first. If the contract fails, value
    /// and state are reverted, but the logs that it wrote stay: the reference node passes it the log list of
    /// the calling frame, which the rollback does not cover. The logs are lost if the caller fails too.
    pub(super) fn call_native(
        &mut self,
        precompile: Precompile,
        init: FrameInit,
    ) -> Result<FrameResult, Abort> {
        // `open` passes calls only.
        let FrameInput::Call(inputs) = &init.frame_input else { return Err(Abort::Stopped) };
        let input = match inputs.input.is_empty() {
            // An empty range can lie beyond the end of memory and must not be read.
            true => Bytes::new(),
            false => Bytes::copy_from_slice(&inputs.input.as_bytes_memory(&init.memory)),
        };
        let checkpoint = self.evm.ctx.journaled_state.checkpoint();
        self.move_value(inputs)?;
        let returned = self.run_native(precompile, &input, inputs, init.depth)?;
        let journal = &mut self.evm.ctx.journaled_state;
        if returned.result.is_ok() {
            journal.checkpoint_commit();
        } else {
            let logs = journal.inner.logs.split_off(checkpoint.log_i.min(journal.inner.logs.len()));
            journal.checkpoint_revert(checkpoint);
            journal.inner.logs.extend(logs);
        }
        Ok(FrameResult::Call(CallOutcome::new(returned, inputs.return_memory_offset.clone())))
    }

    /// Transfers the value. Native contracts exist since RSKIP-126, so a transfer of zero needs neither
    /// account.
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

    /// Charges the price and runs the contract. A price above the gas uses up all gas. A failure costs only the price (RSKIP-197);
    /// before, it also made the caller fail.
    fn run_native(
        &mut self,
        precompile: Precompile,
        input: &[u8],
        inputs: &CallInputs,
        depth: usize,
    ) -> Result<InterpreterResult, Abort> {
        let rules = self.evm.ctx.chain.rules;
        let mut gas = Gas::new(inputs.gas_limit);
        // A failure is a revert for `revm`, because the gas above the price is not used up.
        let reverted = |gas| InterpreterResult::new(InstructionResult::Revert, Bytes::new(), gas);
        let call = native_call(&self.evm.ctx, input, inputs, depth);
        let mut host = RunHost::new(&mut self.evm.ctx);
        // The first check is before the price, because the Bridge reads many cells to compute some prices.
        super::inline_run::refuse_long(&host.context.chain, precompile, 0)?;
        let price = match precompile.price(&call, &mut host) {
            Ok(price) => price,
            // If the price cannot be computed, nothing is charged.
            Err(failure) => {
                self.fail_native(precompile, failure)?;
                return Ok(reverted(gas));
            }
        };
        super::inline_run::refuse_long(&host.context.chain, precompile, price.gas)?;
        if !gas.record_regular_cost(price.gas) {
            gas.spend_all();
            return Ok(InterpreterResult::new(InstructionResult::PrecompileOOG, Bytes::new(), gas));
        }
        match precompile.run(&call, &mut host, price) {
            Ok(output) => Ok(InterpreterResult::new(InstructionResult::Return, output, gas)),
            // Before RSKIP-150 the reference node cannot write an empty output to memory, and fails.
            Err(NativeFailure::Nothing) if rules.has(Rule::Rskip150) && !rules.has(Rule::Rskip197) => {
                Ok(InterpreterResult::new(InstructionResult::Return, Bytes::new(), gas))
            }
            Err(failure) => {
                self.fail_native(precompile, failure)?;
                Ok(reverted(gas))
            }
        }
    }

    /// Records an unsimulated method. Before RSKIP-197 the caller fails together with the contract.
    fn fail_native(&mut self, precompile: Precompile, failure: NativeFailure) -> Result<(), Abort> {
        self.record_unsimulated(precompile, failure)?;
        let chain = &mut self.evm.ctx.chain;
        chain.fail_caller = !chain.rules.has(Rule::Rskip197);
        Ok(())
    }

    /// If a method failed because it is not simulated, records the method, or aborts the run where this is demanded
    /// ([`RunContext::fail_unsimulated`](super::RunContext::fail_unsimulated)). An interruption aborts the run too.
    fn record_unsimulated(&mut self, precompile: Precompile, failure: NativeFailure) -> Result<(), Abort> {
        let method = match failure {
            NativeFailure::NotSimulated(method) => method,
            NativeFailure::Interrupted => return Err(Abort::Stopped),
            NativeFailure::Failed | NativeFailure::Nothing => return Ok(()),
        };
        let unsimulated = Unsimulated { contract: precompile.address(), method };
        if !self.evm.ctx.chain.fail_unsimulated {
            return Err(Abort::NotSimulated(unsimulated));
        }
        self.evm.ctx.chain.unsimulated.push(unsimulated);
        Ok(())
    }

    /// Calls a native contract directly, for a transaction or local call to its address. There is no frame, so a failure
    /// reverts nothing. The value is transferred after success, and only in transactions, because no code
    /// reads the balances of a local call afterwards.
    pub fn run_direct(
        &mut self,
        precompile: Precompile,
        first: &FirstFrame,
    ) -> Result<DirectCallResult, Abort> {
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
        let mut host = RunHost::new(context);
        // As in `run_native`, also before the price.
        super::inline_run::refuse_long(&host.context.chain, precompile, 0)?;
        let price = match precompile.price(&call, &mut host) {
            Ok(price) => price,
            Err(failure) => {
                self.record_unsimulated(precompile, failure)?;
                return Ok(self.direct_end(0, DirectOutcome::Failed, Vec::new()));
            }
        };
        let gas = price.gas;
        super::inline_run::refuse_long(&host.context.chain, precompile, gas)?;
        if gas > first.gas {
            return Ok(self.direct_end(gas, DirectOutcome::TooExpensive, Vec::new()));
        }
        let output = match precompile.run(&call, &mut host, price) {
            Ok(output) => output,
            Err(NativeFailure::Nothing) => Bytes::new(),
            Err(failure) => {
                self.record_unsimulated(precompile, failure)?;
                return Ok(self.direct_end(gas, DirectOutcome::Failed, Vec::new()));
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
        Ok(self.direct_end(gas, DirectOutcome::Done(output), payments))
    }

    /// The result of a direct call, with the logs written so far.
    fn direct_end(
        &mut self,
        price: u64,
        outcome: DirectOutcome,
        payments: Vec<(Address, U256)>,
    ) -> DirectCallResult {
        DirectCallResult { price, outcome, logs: self.evm.ctx.journaled_state.take_logs(), payments }
    }

    /// Cells of native contracts that the run wrote, with their final contents: contract, slot, bytes. Empty
    /// bytes remove a cell. Must be called before the run is finished.
    pub fn written_cells(&self) -> Vec<(Address, U256, Bytes)> {
        let rules = self.evm.ctx.chain.rules;
        let mut written = Vec::new();
        for (contract, slots) in &*self.evm.ctx.journaled_state.transient_storage {
            if Precompile::at(contract, rules).is_none() {
                continue;
            }
            for (slot, cell) in slots {
                let bytes = written_bytes(&self.evm.ctx.chain.cells, *cell);
                written.extend(bytes.map(|bytes| (*contract, *slot, bytes)));
            }
        }
        written.sort_unstable_by_key(|(contract, slot, _)| (*contract, *slot));
        written
    }

    /// Methods of native contracts that failed because this version does not implement them.
    pub fn unsimulated(&self) -> &[Unsimulated] {
        &self.evm.ctx.chain.unsimulated
    }

    /// Passes the result of a call that opened no frame to the caller's frame. Before RSKIP-171, only a successful native
    /// contract replaced the return buffer.
    pub(super) fn hand_back_immediate(
        &mut self,
        ImmediateResult { result, native }: ImmediateResult,
    ) -> Result<Option<FrameResult>, Abort> {
        let rules = self.evm.ctx.chain.rules;
        let returned_natively = native && result.instruction_result().is_ok();
        if returned_natively && !rules.has(Rule::Rskip150) {
            return self.hand_back_unsized(result);
        }
        // A creation opens no frame only if its address is taken. The return buffer then stays in every era.
        let collided = matches!(result, FrameResult::Create(_));
        if !collided && (rules.has(Rule::Rskip171) || returned_natively) {
            return self.hand_back(result);
        }
        let buffer = self.evm.frame_stack.get().interpreter.return_data.buffer().clone();
        let last = self.hand_back(result)?;
        self.evm.frame_stack.get().interpreter.return_data.set_buffer(buffer);
        Ok(last)
    }

    /// Passes a native contract's result to the caller's frame under the rules before RSKIP-150. The whole output is written to memory,
    /// even if the caller reserved less.
    fn hand_back_unsized(&mut self, mut result: FrameResult) -> Result<Option<FrameResult>, Abort> {
        // Native contracts give results of calls only.
        let FrameResult::Call(outcome) = &mut result else { return self.hand_back(result) };
        let at = outcome.memory_offset.start;
        let output = outcome.result.output.clone();
        // `revm` writes the output to this range, so it writes nothing; `write_unpaid` writes all of it.
        outcome.memory_offset = at..at;
        let last = self.hand_back(result)?;
        self.write_unpaid(at, &output)?;
        Ok(last)
    }

    /// Writes output to the memory of the top frame, which grows without a charge.
    fn write_unpaid(&mut self, at: usize, output: &[u8]) -> Result<(), Abort> {
        if output.is_empty() {
            return Ok(());
        }
        let end = at.checked_add(output.len()).filter(|end| *end <= MAX_UNPAID_MEMORY);
        let words = end.ok_or(Abort::UnpaidMemory)?.div_ceil(32);
        let cost = self.evm.ctx.cfg.gas_params.memory_cost(words);
        let interpreter = &mut self.evm.frame_stack.get().interpreter;
        if words > interpreter.gas.memory().words_num {
            // The returned cost is not charged: this call only records the new size.
            let _ = interpreter.gas.memory_mut().set_words_num(words, cost);
            interpreter.memory.resize(words.saturating_mul(32));
        }
        interpreter.memory.set(at, output);
        Ok(())
    }
}

/// The result of a direct call of a native contract.
#[derive(Debug)]
pub struct DirectCallResult {
    /// Price in gas.
    pub price: u64,
    /// The outcome.
    pub outcome: DirectOutcome,
    /// Logs, including those written before a failure.
    pub logs: Vec<Log>,
    /// Payments of the contract made with [`NativeHost::pay`]: payee and wei. Empty after a failure.
    pub payments: Vec<(Address, U256)>,
}

/// The outcome of a direct call of a native contract. The cells that the contract wrote stay written in every case.
#[derive(Debug)]
pub enum DirectOutcome {
    /// The contract returned this output.
    Done(Bytes),
    /// The contract failed; no value was transferred.
    Failed,
    /// The price exceeded the gas, so the contract did not run.
    TooExpensive,
}

/// The call as a native contract sees it.
fn native_call<'c, 'a: 'c, DB: EvmDatabase>(
    context: &EvmContext<'a, DB>,
    input: &'c [u8],
    inputs: &CallInputs,
    depth: usize,
) -> NativeCall<'c> {
    let is_delegate = inputs.scheme == CallScheme::DelegateCall;
    NativeCall {
        input,
        caller: Some(if is_delegate { inputs.target_address } else { inputs.caller }),
        value: if is_delegate { U256::ZERO } else { inputs.value.get() },
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

/// The block as a native contract sees it.
fn native_block<DB: EvmDatabase>(context: &EvmContext<'_, DB>) -> NativeBlock {
    NativeBlock {
        number: context.block.number.saturating_to(),
        timestamp: context.block.timestamp.saturating_to(),
        minimum_gas_price: context.chain.minimum_gas_price,
    }
}

/// The contents of a written cell; `None` if the run has not written it. `cell` is the index in `cells` plus one, or zero.
fn written_bytes(cells: &[Bytes], cell: U256) -> Option<Bytes> {
    cells.get(usize::try_from(cell).ok()?.checked_sub(1)?).cloned()
}

/// The interface of a run to native contracts.
struct RunHost<'h, 'a, DB: EvmDatabase> {
    context: &'h mut EvmContext<'a, DB>,
    /// Payments of the call, at most one: payee and wei.
    payments: Vec<(Address, U256)>,
}

impl<'h, 'a, DB: EvmDatabase> RunHost<'h, 'a, DB> {
    fn new(context: &'h mut EvmContext<'a, DB>) -> Self {
        Self { context, payments: Vec::new() }
    }
}

impl<DB: EvmDatabase> NativeHost for RunHost<'_, '_, DB> {
    fn interrupted(&self) -> bool {
        (self.context.chain.interrupt)()
    }

    fn cell(&mut self, contract: Address, slot: U256) -> Bytes {
        self.context.journaled_state.database.touch(Touch::CellRead(contract, slot));
        let cell = self.context.journaled_state.tload(contract, slot);
        match written_bytes(&self.context.chain.cells, cell) {
            Some(bytes) => bytes,
            None => self.context.journaled_state.database.cell(contract, slot),
        }
    }

    fn set_cell(&mut self, contract: Address, slot: U256, bytes: Bytes) {
        self.context.journaled_state.database.touch(Touch::CellWritten(contract, slot));
        self.context.chain.cells.push(bytes);
        let cell = U256::from(self.context.chain.cells.len());
        self.context.journaled_state.tstore(contract, slot, cell);
    }

    fn balance(&mut self, account: Address) -> U256 {
        self.context.journaled_state.database.touch(Touch::Inspected(account));
        let Ok(loaded) = self.context.journaled_state.load_account(account);
        loaded.data.info.balance
    }

    fn transfer(&mut self, from: Address, to: Address, amount: U256) -> bool {
        // A transfer creates a missing account, as in the reference node.
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
