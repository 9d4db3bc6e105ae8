//! The trace of one run, by one or several tracers: [`Tracer`] chooses them, [`RunTracer`] passes all reports of the run to each.

use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Log as EvmLog, U256};

use super::TraceBudget;
use super::calls::{CallTrace, CallTracer};
use super::selectors::{SelectorTracer, Selectors};
use super::state::{StateTrace, UsedAccount};
use super::steps::{StepOptions, StepTrace, StepTracer};
use super::validation::{OpcodeSet, ValidationTrace, ValidationTracer};
use super::vm::{VmTrace, VmTracer};
use crate::evm::{AccountValues, FrameClose, FrameStart, Inspector, StepEnd, StepStart};
use crate::exec::Executed;
use crate::types::{Log, Transaction};

/// The parts of a transaction's run to collect. Several tracers can share one run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tracer {
    /// Calls.
    pub calls: Option<CallOptions>,
    /// Instructions.
    pub steps: Option<StepOptions>,
    /// The state that is read and changed.
    pub state: bool,
    /// The selectors of methods that are called.
    pub selectors: bool,
    /// The uses of opcodes by each call, for validation in account abstraction, without these opcodes. Needs [`Self::calls`] with inner
    /// calls.
    pub validation: Option<OpcodeSet>,
    /// The changes of each instruction.
    pub vm: bool,
}

impl Tracer {
    /// Calls without logs.
    pub const CALLS: Self = Self {
        calls: Some(CallOptions { with_logs: false, only_top: false }),
        steps: None,
        state: false,
        selectors: false,
        validation: None,
        vm: false,
    };
}

/// Whether [`Tracer::vm`] has an effect. Browser modules leave the tracer out to stay small.
pub const HAS_VM_TRACES: bool = cfg!(feature = "catalogue");

/// Parts of a trace of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallOptions {
    /// Whether logs are collected too.
    pub with_logs: bool,
    /// Whether inner calls are left out.
    pub only_top: bool,
}

/// The trace of one transaction: the parts that its [`Tracer`] names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionTrace {
    /// Index of the transaction in the block.
    pub index: usize,
    /// The transaction.
    pub transaction: Transaction,
    /// Sender of the transaction; the zero address for REMASC.
    pub sender: Address,
    /// Whether the transaction succeeded.
    pub success: bool,
    /// Gas used by the transaction.
    pub gas_used: u64,
    /// Logs of the transaction, if its calls are traced with their logs.
    pub logs: Vec<Log>,
    /// Number of logs in the block before its own.
    pub first_log: usize,
    /// Calls of the transaction, if traced.
    pub calls: Option<CallTrace>,
    /// Instructions of the transaction, if traced.
    pub steps: Option<StepTrace>,
    /// The state that the transaction read and changed, if traced.
    pub state: Option<StateTrace>,
    /// The selectors that the transaction called, if traced.
    pub selectors: Option<Selectors>,
    /// The uses of opcodes by each call, if traced.
    pub validation: Option<ValidationTrace>,
    /// The changes of each instruction, if traced.
    pub vm: Option<VmTrace>,
}

impl TransactionTrace {
    /// Hash of the transaction.
    pub fn hash(&self) -> B256 {
        self.transaction.hash()
    }
}

/// Traces one run.
#[derive(Clone, Debug)]
pub struct RunTracer {
    calls: Option<CallTracer>,
    steps: Option<StepTracer>,
    selectors: Option<SelectorTracer>,
    validation: Option<ValidationTracer>,
    vm: Option<VmTracer>,
    state: Option<StateTrace>,
    /// The bytes that are left for the state.
    budget: TraceBudget,
    /// The bytes that each tracer started with.
    share: TraceBudget,
}

impl RunTracer {
    /// Traces a run within this budget, which the tracers share in equal parts.
    pub fn new(tracer: &Tracer, budget: TraceBudget) -> Self {
        let Tracer { calls, steps, state, selectors, validation, vm } = *tracer;
        let vm = HAS_VM_TRACES && vm;
        let parts = [calls.is_some(), steps.is_some(), state, selectors, validation.is_some(), vm];
        let share = budget.share(parts.into_iter().filter(|part| *part).count());
        let calls = calls.map(|CallOptions { with_logs, only_top }| {
            let mut tracer = CallTracer::new(with_logs);
            tracer.budget = share;
            if only_top { tracer.only_top() } else { tracer }
        });
        let steps = steps.map(|options| {
            let mut tracer = StepTracer::new(options);
            tracer.budget = share;
            tracer
        });
        Self {
            calls,
            steps,
            selectors: selectors.then(|| SelectorTracer::new(share)),
            validation: validation.map(|ignored| ValidationTracer::new(ignored, share)),
            vm: vm.then(|| VmTracer::new(share)),
            state: state.then(StateTrace::new),
            budget: share,
            share,
        }
    }

    /// The tracer of the changes of instructions, if there is one.
    fn vm(&mut self) -> Option<&mut VmTracer> {
        if HAS_VM_TRACES { self.vm.as_mut() } else { None }
    }

    /// Ends the trace of the transaction at this index of a block, which has `first_log` logs before the transaction. Takes the bytes that
    /// the trace used from `budget`.
    pub fn finish(
        self,
        (index, first_log): (usize, usize),
        executed: &Executed<'_>,
        budget: &mut TraceBudget,
    ) -> TransactionTrace {
        let Self { calls, steps, selectors, validation, vm, state, budget: left, share } = self;
        let with_logs = calls.as_ref().is_some_and(CallTracer::with_logs);
        let lefts = [
            calls.as_ref().map(|tracer| tracer.budget),
            steps.as_ref().map(|tracer| tracer.budget),
            selectors.as_ref().map(|tracer| tracer.budget),
            validation.as_ref().map(|tracer| tracer.budget),
            vm.as_ref().map(|tracer| tracer.budget),
            state.as_ref().map(|_| left),
        ];
        lefts.into_iter().flatten().for_each(|left| budget.spend(share, left));
        TransactionTrace {
            index,
            transaction: executed.transaction.clone(),
            sender: executed.sender,
            success: executed.success,
            gas_used: executed.gas_used,
            logs: if with_logs { executed.logs.to_vec() } else { Vec::new() },
            first_log,
            calls: calls.map(|tracer| tracer.finish(executed)),
            steps: steps.map(|tracer| tracer.finish(executed)),
            state,
            selectors: selectors.map(|tracer| tracer.finish(executed)),
            validation: validation.map(ValidationTracer::finish),
            vm: vm.filter(|_| HAS_VM_TRACES).map(VmTracer::finish),
        }
    }
}

impl Inspector for RunTracer {
    fn wants_steps(&self) -> bool {
        self.calls.as_ref().is_some_and(Inspector::wants_steps)
            || self.steps.as_ref().is_some_and(Inspector::wants_steps)
            || self.validation.as_ref().is_some_and(|tracer| !tracer.budget.exceeded())
            || HAS_VM_TRACES && self.vm.as_ref().is_some_and(|tracer| !tracer.budget.exceeded())
    }

    fn wants_storage(&self) -> bool {
        self.steps.as_ref().is_some_and(Inspector::wants_storage)
    }

    fn wants_code_size(&self) -> bool {
        self.validation.is_some()
    }

    fn wants_accounts(&self) -> bool {
        self.state.is_some()
    }

    fn frame(&mut self, start: FrameStart) {
        if let Some(tracer) = &mut self.selectors {
            tracer.frame(&start);
        }
        if let Some(tracer) = &mut self.validation {
            tracer.frame();
        }
        if let Some(tracer) = self.vm() {
            tracer.frame(&start);
        }
        match (&mut self.calls, &mut self.steps) {
            (Some(calls), None) => calls.frame(start),
            (Some(calls), Some(steps)) => {
                calls.frame(FrameStart { storage: None, ..start.clone() });
                steps.frame(start);
            }
            (None, Some(steps)) => steps.frame(start),
            (None, None) => {}
        }
    }

    fn frame_end(&mut self, close: FrameClose) {
        if let Some(tracer) = &mut self.validation {
            tracer.frame_end(&close);
        }
        if let Some(tracer) = self.vm() {
            tracer.frame_end(&close);
        }
        match (&mut self.calls, &mut self.steps) {
            (Some(calls), None) => calls.frame_end(close),
            (Some(calls), Some(steps)) => {
                calls.frame_end(close.clone());
                steps.frame_end(close);
            }
            (None, Some(steps)) => steps.frame_end(close),
            (None, None) => {}
        }
    }

    fn self_destruct(&mut self, contract: Address, beneficiary: Address, balance: U256) {
        if let Some(tracer) = &mut self.validation {
            tracer.entry();
        }
        if let Some(tracer) = &mut self.calls {
            tracer.self_destruct(contract, beneficiary, balance);
        }
    }

    fn payment(&mut self, from: Address, to: Address, value: U256) {
        if let Some(tracer) = &mut self.calls {
            tracer.payment(from, to, value);
        }
    }

    fn step(&mut self, step: StepStart<'_>) {
        if let Some(tracer) = &mut self.validation {
            tracer.step(&step);
        }
        if let Some(tracer) = self.vm() {
            tracer.step(&step);
        }
        if let Some(tracer) = &mut self.steps {
            tracer.step(step);
        }
    }

    fn step_end(&mut self, end: StepEnd<'_>) {
        if let Some(tracer) = &mut self.validation {
            tracer.step_end(&end);
        }
        if let Some(tracer) = self.vm() {
            tracer.step_end(&end);
        }
        if let Some(tracer) = &mut self.steps {
            tracer.step_end(end);
        }
    }

    fn log(&mut self, log: &EvmLog) {
        if let Some(tracer) = &mut self.calls {
            tracer.log(log);
        }
    }

    fn account(
        &mut self,
        address: Address,
        before: Option<AccountValues>,
        after: Option<AccountValues>,
        words: &mut dyn Iterator<Item = (U256, U256, U256)>,
    ) {
        let Some(state) = &mut self.state else { return };
        let bytes = |word: U256| word.to_be_bytes_trimmed_vec().into();
        let cells = words.map(|(slot, before, after)| (slot, (bytes(before), bytes(after)))).collect();
        let account = UsedAccount { before, after, cells };
        if self.budget.take(account.weight()) {
            state.insert(address, account);
        }
    }
}
