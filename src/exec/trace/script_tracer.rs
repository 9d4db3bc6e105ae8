//! Reports runs to a script ([`ScriptRun`]): an inspector and observer that turns the reports of the machine into those that
//! geth's tracers in JavaScript get.

use alloc::{borrow::Cow, boxed::Box, format, string::String, vec::Vec};

use alloy_primitives::{Address, B256, Bytes, U256};
use serde_json::value::RawValue;

use super::TraceBudget;
use super::script::{ScriptContext, ScriptError, ScriptFrame, ScriptHooks, ScriptRun, ScriptStep};
use crate::consensus::RuleSet;
use crate::evm::{FrameClose, FrameKind, FrameStart, HaltReason, Inspector, LiveState, StepEnd, StepStart};
use crate::exec::{BlockObserver, Executed};

// Opcodes that are reported in a way of their own.
const CREATE: u8 = 0xf0;
const REVERT: u8 = 0xfd;
/// The error of REVERT, in geth's words.
const REVERTED: &str = "execution reverted";

/// The block of the transactions that a script traces.
#[derive(Clone, Copy, Debug)]
pub struct ScriptBlock {
    /// The number of the block.
    pub number: u64,
    /// The hash of the block; `None` for calls, which are in no block.
    pub hash: Option<B256>,
    /// The rules of the network at the block.
    pub rules: RuleSet,
}

/// An open call.
#[derive(Clone, Debug)]
struct OpenFrame {
    /// The account that CALLER returns in the frame.
    caller: Address,
    /// Value in wei.
    value: U256,
    input: Bytes,
    /// Gas to be refunded for the calls around this one.
    outer_refund: u64,
    /// Gas to be refunded for this call, without the last instruction.
    own_refund: u64,
}

impl OpenFrame {
    /// Gas to be refunded for this call and those around it.
    fn refund(&self) -> u64 {
        self.outer_refund.saturating_add(self.own_refund)
    }
}

/// A copy of the instruction that is running.
#[derive(Clone, Debug, Default)]
struct LastStep {
    opcode: u8,
    pc: usize,
    depth: usize,
    gas: u64,
    contract: Address,
    stack: Vec<U256>,
    memory: Vec<u8>,
    /// Cost and failure, once it has run.
    end: Option<(u64, Option<HaltReason>)>,
    /// If it is CREATE, the nonce of the creator.
    nonce: Option<u64>,
    /// The destruction that the instruction makes: contract, beneficiary and balance.
    destroys: Option<(Address, Address, U256)>,
}

impl LastStep {
    /// The address of the contract that the instruction creates.
    fn created(&self, start: &FrameStart) -> Option<Address> {
        match start.kind {
            FrameKind::Create => Some(start.from.create(self.nonce?)),
            // The salt is below value, offset and length on the stack.
            FrameKind::Create2 => {
                let salt = self.stack.iter().nth_back(3)?;
                Some(start.from.create2_from_code(B256::from(*salt), &start.input))
            }
            _ => None,
        }
    }
}

/// The trace of one transaction, by its hash.
pub type ScriptTrace = (B256, Box<RawValue>);

/// Traces transactions, or those of a block, by a script.
pub struct ScriptTracer {
    run: Box<dyn ScriptRun>,
    block: ScriptBlock,
    /// Index of the only transaction that is traced.
    only: Option<usize>,
    /// Returns the name of an opcode.
    name: fn(u8) -> Cow<'static, str>,
    hooks: ScriptHooks,
    /// Whether a transaction runs that is traced.
    running: bool,
    /// The open frames, the outermost first.
    open: Vec<OpenFrame>,
    last: LastStep,
    budget: TraceBudget,
    traces: Vec<ScriptTrace>,
    /// The first error of the script, after which it gets no reports.
    failure: Option<ScriptError>,
}

impl ScriptTracer {
    /// Traces the transactions of a block, or the one at the index `only`; `name` gives the names of opcodes.
    pub fn new(
        run: Box<dyn ScriptRun>,
        block: ScriptBlock,
        only: Option<usize>,
        name: fn(u8) -> Cow<'static, str>,
    ) -> Self {
        Self {
            run,
            block,
            only,
            name,
            hooks: ScriptHooks::default(),
            running: false,
            open: Vec::new(),
            last: LastStep::default(),
            budget: TraceBudget::default(),
            traces: Vec::new(),
            failure: None,
        }
    }

    /// Returns the traces, each with the hash of its transaction; `None` if they exceed the size limit.
    ///
    /// # Errors
    /// The script failed.
    pub fn finish(self) -> Result<Option<Vec<ScriptTrace>>, ScriptError> {
        match self.failure {
            Some(failure) => Err(failure),
            None => Ok((!self.budget.exceeded()).then_some(self.traces)),
        }
    }

    /// A transaction or call begins, in this block.
    pub fn start(&mut self, block: ScriptBlock) {
        (self.block, self.running) = (block, true);
        self.open.clear();
        self.last = LastStep::default();
        let rules = self.block.rules;
        if let Some(hooks) = self.call_script(|run| run.start(rules)) {
            self.hooks = hooks;
        }
    }

    /// The transaction or call has ended, and its script with it.
    pub fn end(&mut self, index: usize, executed: &Executed<'_>, state: &mut dyn LiveState) {
        self.running = false;
        let Executed { transaction, sender, success, gas_used, output, failure, .. } = *executed;
        let created = transaction.contract_address(&sender);
        let hash = transaction.hash();
        let error = (!success).then(|| text(failure.unwrap_or(Some(HaltReason::Other))));
        let context = ScriptContext {
            creates: transaction.to.is_none(),
            from: sender,
            to: transaction.to.or(created).unwrap_or_default(),
            input: &transaction.data,
            gas: u64::try_from(transaction.gas_limit.value()).unwrap_or(u64::MAX),
            gas_used,
            gas_price: transaction.gas_price.value(),
            value: transaction.value,
            block: self.block.number,
            mined_at: self.block.hash.map(|block| (block, index, hash)),
            output,
            error,
        };
        let Some(trace) = self.call_script(|run| run.result(&context, state)) else { return };
        if self.budget.take(trace.get().len()) {
            self.traces.push((hash, trace));
        }
    }

    /// Whether the transaction at this index is traced.
    fn wants(&self, index: usize) -> bool {
        self.only.is_none_or(|only| only == index) && !self.is_over()
    }

    /// Whether the script gets no more reports.
    fn is_over(&self) -> bool {
        self.failure.is_some() || self.budget.exceeded()
    }

    /// Calls the script unless it has failed, and stores its first error.
    fn call_script<T>(
        &mut self,
        call: impl FnOnce(&mut dyn ScriptRun) -> Result<T, ScriptError>,
    ) -> Option<T> {
        if self.is_over() {
            return None;
        }
        call(&mut *self.run).map_err(|error| self.failure = Some(error)).ok()
    }

    /// Reports the start of an inner call, creation or destruction.
    fn enter(&mut self, frame: &ScriptFrame<'_>) {
        if self.hooks.frames {
            self.call_script(|run| run.enter(frame));
        }
    }

    /// Reports the end of an inner call, creation or destruction.
    fn exit(&mut self, close: &FrameClose) {
        if self.hooks.frames {
            self.call_script(|run| run.exit(close));
        }
    }

    /// Reports a frame that ends at once.
    fn leaf(&mut self, kind: &'static str, from: Address, to: Address, value: U256) {
        self.enter(&ScriptFrame { kind, from, to: Some(to), input: &[], gas: 0, value: Some(value) });
        self.exit(&FrameClose { failure: None, output: Bytes::new(), gas_used: 0, created: None });
    }

    /// Reports the instruction that has run.
    fn report(&mut self, last: &LastStep, state: &mut dyn LiveState) {
        let Some(((cost, failure), open)) = last.end.zip(self.open.last().cloned()) else { return };
        let fault = match failure {
            // These failures are found before the instruction runs, so geth reports them with the step, not as a fault.
            Some(HaltReason::OutOfGas | HaltReason::StackUnderflow | HaltReason::StackOverflow) => None,
            Some(reason) => Some(format!("{reason}")),
            None => (last.opcode == REVERT).then(|| REVERTED.into()),
        };
        let mut step = ScriptStep {
            opcode: last.opcode,
            name: (self.name)(last.opcode),
            pc: last.pc,
            gas: last.gas,
            // An instruction that ran out of gas costs more than there was, at least one more.
            cost: if failure == Some(HaltReason::OutOfGas) { last.gas.saturating_add(1) } else { cost },
            depth: last.depth.saturating_add(1),
            refund: open.refund(),
            error: failure.filter(|_| fault.is_none()).map(|reason| format!("{reason}")),
            stack: &last.stack,
            memory: &last.memory,
            caller: open.caller,
            contract: last.contract,
            value: open.value,
            input: &open.input,
        };
        if self.hooks.steps {
            self.call_script(|run| run.step(&step, state));
        }
        if let Some(fault) = fault {
            step.error = Some(fault);
            self.call_script(|run| run.fault(&step, state));
        }
    }
}

/// A failure in words.
fn text(failure: Option<HaltReason>) -> String {
    failure.map_or_else(|| REVERTED.into(), |reason| format!("{reason}"))
}

impl Inspector for ScriptTracer {
    fn wants_steps(&self) -> bool {
        !self.is_over()
    }

    fn wants_state(&self) -> bool {
        !self.is_over()
    }

    fn frame(&mut self, start: FrameStart) {
        let around = self.open.last();
        let outer_refund = around.map_or(0, |open| open.refund());
        let caller = match around.filter(|_| start.kind == FrameKind::DelegateCall) {
            Some(open) => open.caller,
            None => start.from,
        };
        if around.is_some() {
            // The value of a DELEGATECALL is that of the caller's own frame.
            let value = (start.kind != FrameKind::DelegateCall).then_some(start.value);
            let kind = start.kind.opcode_name();
            let (from, input, gas) = (start.from, &start.input[..], start.gas);
            let to = start.to.or_else(|| self.last.created(&start));
            self.enter(&ScriptFrame { kind, from, to, input, gas, value });
        }
        self.open.push(OpenFrame {
            caller,
            value: start.value,
            input: start.input,
            outer_refund,
            own_refund: 0,
        });
    }

    fn frame_end(&mut self, close: FrameClose) {
        self.open.pop();
        if !self.open.is_empty() {
            self.exit(&close);
        }
    }

    fn self_destruct(&mut self, contract: Address, beneficiary: Address, balance: U256) {
        self.last.destroys = Some((contract, beneficiary, balance));
    }

    fn payment(&mut self, from: Address, to: Address, value: U256) {
        self.leaf(FrameKind::Call.opcode_name(), from, to, value);
    }

    fn step(&mut self, step: StepStart<'_>) {
        if let Some(open) = self.open.last_mut() {
            open.own_refund = step.refund;
        }
        let last = &mut self.last;
        (last.opcode, last.pc, last.depth) = (step.opcode, step.pc, step.depth);
        (last.gas, last.contract, last.end) = (step.gas, step.contract, None);
        last.stack.clear();
        last.stack.extend_from_slice(step.stack);
        last.memory.clear();
        last.memory.extend_from_slice(step.memory);
    }

    fn step_end(&mut self, end: StepEnd<'_>) {
        self.last.end = Some((end.gas_cost, end.failure));
    }

    fn step_state(&mut self, state: &mut dyn LiveState) {
        let mut last = core::mem::take(&mut self.last);
        self.report(&last, state);
        if last.opcode == CREATE && self.hooks.frames {
            last.nonce = state.account(last.contract).map(|(nonce, _)| nonce);
        }
        if let Some((contract, beneficiary, balance)) = last.destroys.take() {
            self.leaf("SELFDESTRUCT", contract, beneficiary, balance);
        }
        self.last = last;
    }
}

impl BlockObserver for ScriptTracer {
    fn inspector(&mut self, index: usize) -> Option<&mut dyn Inspector> {
        if !self.wants(index) {
            return None;
        }
        self.start(self.block);
        Some(self)
    }

    fn remasc_payment(&mut self, to: Address, value: U256) {
        if self.running {
            self.payment(crate::types::REMASC_ADDRESS, to, value);
        }
    }

    fn ended(&mut self, index: usize, executed: &Executed<'_>, state: &mut dyn LiveState) {
        if self.wants(index) {
            self.end(index, executed, state);
        }
    }
}
