//! The executed instructions of a transaction.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::TraceBudget;
use crate::evm::{FrameClose, FrameStart, HaltReason, Inspector, StepEnd, StepStart};
use crate::exec::Executed;

/// SLOAD and SSTORE. After them the trace shows their slot.
const SLOAD: u8 = 0x54;
const SSTORE: u8 = 0x55;
/// Bytes of an entry in JSON, without memory, stack and storage, and of each of these while it is empty.
const STEP_BYTES: usize = 58;
const PART_BYTES: usize = 13;
/// Bytes of a stack word and of a storage entry in JSON.
const WORD_BYTES: usize = 67;
const SLOT_BYTES: usize = 134;

/// Parts to leave out of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepOptions {
    /// Leave out storage.
    pub disable_storage: bool,
    /// Leave out memory.
    pub disable_memory: bool,
    /// Leave out the stack.
    pub disable_stack: bool,
}

/// One instruction. Memory, stack and storage are those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepLog {
    /// Opcode.
    pub opcode: u8,
    /// Depth of the frame, 0 for the outermost one.
    pub depth: usize,
    /// Position in the code.
    pub pc: usize,
    /// Gas left before the instruction.
    pub gas: u64,
    /// Gas charged, forwarded gas included; 0 if the instruction failed.
    pub gas_cost: u64,
    /// Memory, a whole number of words.
    pub memory: Bytes,
    /// Stack, bottom first.
    pub stack: Vec<U256>,
    /// Known storage of the running contract: the whole storage if the state can list it, otherwise the slots
    /// that the frame has touched.
    pub storage: Arc<BTreeMap<U256, U256>>,
}

/// The executed instructions of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepTrace {
    /// The outermost contract; `None` if no code ran.
    pub contract: Option<Address>,
    /// Storage of that contract before the transaction, if the state can list it.
    pub first_storage: BTreeMap<U256, U256>,
    /// Storage of that contract after the transaction.
    pub last_storage: Arc<BTreeMap<U256, U256>>,
    /// The instructions in order of execution.
    pub steps: Vec<StepLog>,
    /// Return data, revert data, or the code of the new contract.
    pub output: Bytes,
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on an exceptional halt.
    pub failure: Option<Option<HaltReason>>,
}

/// Storage of an open frame.
#[derive(Clone, Debug, Default)]
struct FrameStorage {
    storage: Arc<BTreeMap<U256, U256>>,
}

/// Collects the instructions of one transaction.
#[derive(Clone, Debug, Default)]
pub struct StepTracer {
    options: StepOptions,
    trace: StepTrace,
    open: Vec<FrameStorage>,
    /// Slot of the running SLOAD or SSTORE, and the word that SSTORE writes.
    touched: Option<(U256, Option<U256>)>,
    /// Remaining space.
    pub room: TraceBudget,
}

impl StepTracer {
    /// Creates a tracer that leaves out the parts named in `options`.
    pub fn new(options: StepOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// Finishes the trace.
    pub fn finish(self, executed: &Executed<'_>) -> StepTrace {
        let mut trace = self.trace;
        if trace.contract.is_none() && !trace.steps.is_empty() {
            trace.contract = executed.transaction.contract_address(&executed.sender);
        }
        if executed.receipt.success {
            trace.failure = None;
        }
        trace
    }

    /// Records the slot that the last instruction read or wrote.
    fn settle(&mut self, stack: &[U256]) {
        let Some((slot, written)) = self.touched.take() else { return };
        let Some(value) = written.or_else(|| stack.last().copied()) else { return };
        let Some(open) = self.open.last_mut() else { return };
        let known = open.storage.get(&slot).copied().unwrap_or_default();
        if known == value {
            return;
        }
        let storage = Arc::make_mut(&mut open.storage);
        if value.is_zero() {
            storage.remove(&slot);
        } else {
            storage.insert(slot, value);
        }
    }

    fn kept_bytes(&self, step: &StepStart<'_>, storage: usize) -> usize {
        let part = |left_out: bool, count: usize, bytes: usize| match left_out {
            true => 0,
            false => count.saturating_mul(bytes).saturating_add(PART_BYTES),
        };
        let StepOptions { disable_storage, disable_memory, disable_stack } = self.options;
        STEP_BYTES
            .saturating_add(part(disable_memory, step.memory.len().div_ceil(32), WORD_BYTES))
            .saturating_add(part(disable_stack, step.stack.len(), WORD_BYTES))
            .saturating_add(part(disable_storage, storage, SLOT_BYTES))
    }
}

impl Inspector for StepTracer {
    fn wants_steps(&self) -> bool {
        !self.room.exceeded()
    }

    fn wants_storage(&self) -> bool {
        // The storage of the outermost contract is also shown separately.
        !self.room.exceeded() && (self.open.is_empty() || !self.options.disable_storage)
    }

    fn frame(&mut self, start: FrameStart) {
        let storage = start.storage.unwrap_or_default();
        if self.open.is_empty() {
            self.trace.contract = start.to.filter(|_| !start.native && start.has_code);
            self.trace.first_storage = storage.clone();
        }
        self.open.push(FrameStorage { storage: Arc::new(storage) });
    }

    fn frame_end(&mut self, close: FrameClose) {
        let Some(open) = self.open.pop() else { return };
        if !self.open.is_empty() {
            return;
        }
        self.trace.last_storage = open.storage;
        self.trace.output = close.output;
        self.trace.failure = close.failure;
    }

    fn step(&mut self, step: StepStart<'_>) {
        let storage = self.open.last().map(|open| open.storage.clone()).unwrap_or_default();
        if !self.room.take(self.kept_bytes(&step, storage.len())) {
            return;
        }
        let mut words = step.stack.iter().rev().copied();
        self.touched = match step.opcode {
            SLOAD => words.next().map(|slot| (slot, None)),
            SSTORE => words.next().zip(words.next()).map(|(slot, value)| (slot, Some(value))),
            _ => None,
        };
        let StepOptions { disable_storage, disable_memory, disable_stack } = self.options;
        self.trace.steps.push(StepLog {
            opcode: step.opcode,
            depth: step.depth,
            pc: step.pc,
            gas: step.gas,
            gas_cost: 0,
            memory: if disable_memory { Bytes::new() } else { Bytes::copy_from_slice(step.memory) },
            stack: if disable_stack { Vec::new() } else { step.stack.to_vec() },
            storage: if disable_storage { Arc::default() } else { storage },
        });
    }

    fn step_end(&mut self, end: StepEnd<'_>) {
        if self.room.exceeded() {
            return;
        }
        if let Some(step) = self.trace.steps.last_mut() {
            step.gas_cost = end.gas_cost;
        }
        if end.failed {
            self.touched = None;
        }
        self.settle(end.stack);
    }
}
