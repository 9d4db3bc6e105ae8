//! Every instruction of a transaction.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::Room;
use crate::evm::{FrameClose, FrameStart, HaltReason, Inspector, Step, StepEnd};
use crate::exec::Executed;

/// SLOAD and SSTORE, after which a slot shows up in the trace.
const SLOAD: u8 = 0x54;
const SSTORE: u8 = 0x55;
/// Bytes of an entry without memory, stack and storage, as JSON shows it.
const STEP_BYTES: usize = 120;
/// Bytes of a stack word and of a storage entry, as JSON shows them.
const WORD_BYTES: usize = 67;
const SLOT_BYTES: usize = 134;

/// What to leave out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepOptions {
    /// No storage with each instruction.
    pub disable_storage: bool,
    /// No memory.
    pub disable_memory: bool,
    /// No stack.
    pub disable_stack: bool,
}

/// One instruction; memory, stack and storage are those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepLog {
    /// Opcode.
    pub opcode: u8,
    /// Depth of its frame, 0 for the outermost one.
    pub depth: usize,
    /// Place in the code.
    pub pc: usize,
    /// Gas left before it.
    pub gas: u64,
    /// Gas it took, what it forwarded included; 0 where it failed.
    pub gas_cost: u64,
    /// Memory, a whole number of words.
    pub memory: Bytes,
    /// Stack, bottom first.
    pub stack: Vec<U256>,
    /// Storage of the running contract as far as known: all of it where the state can list it, and
    /// else what the frame has touched.
    pub storage: Arc<BTreeMap<U256, U256>>,
}

/// Every instruction of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StepTrace {
    /// The outermost contract; `None` where no code ran.
    pub contract: Option<Address>,
    /// Its storage before the transaction, where the state can list it.
    pub first_storage: BTreeMap<U256, U256>,
    /// Its storage after it.
    pub last_storage: Arc<BTreeMap<U256, U256>>,
    /// The instructions in the order they ran.
    pub steps: Vec<StepLog>,
    /// Return data, revert data, or the new contract's code.
    pub output: Bytes,
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on a halt.
    pub failure: Option<Option<HaltReason>>,
}

/// Storage of an open frame.
#[derive(Clone, Debug, Default)]
struct Open {
    storage: Arc<BTreeMap<U256, U256>>,
}

/// Collects the instructions of one transaction.
#[derive(Clone, Debug, Default)]
pub struct StepTracer {
    options: StepOptions,
    trace: StepTrace,
    open: Vec<Open>,
    /// Slot that the running SLOAD or SSTORE names, and the word SSTORE writes.
    touched: Option<(U256, Option<U256>)>,
    /// Room left.
    pub room: Room,
}

impl StepTracer {
    /// A tracer that leaves out what `options` say.
    pub fn new(options: StepOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The finished trace.
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

    /// Takes up the slot that the instruction before read or wrote.
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

    fn kept_bytes(&self, step: &Step<'_>, storage: usize) -> usize {
        let memory = if self.options.disable_memory { 0 } else { step.memory.len().saturating_mul(3) };
        let stack = if self.options.disable_stack { 0 } else { step.stack.len().saturating_mul(WORD_BYTES) };
        let slots = if self.options.disable_storage { 0 } else { storage.saturating_mul(SLOT_BYTES) };
        STEP_BYTES.saturating_add(memory).saturating_add(stack).saturating_add(slots)
    }
}

impl Inspector for StepTracer {
    fn wants_steps(&self) -> bool {
        !self.room.exceeded()
    }

    fn wants_storage(&self) -> bool {
        // The outermost contract's storage is shown apart, too.
        !self.room.exceeded() && (self.open.is_empty() || !self.options.disable_storage)
    }

    fn frame(&mut self, start: FrameStart) {
        let storage = start.storage.unwrap_or_default();
        if self.open.is_empty() {
            self.trace.contract = start.to.filter(|_| !start.native && start.has_code);
            self.trace.first_storage = storage.clone();
        }
        self.open.push(Open { storage: Arc::new(storage) });
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

    fn step(&mut self, step: Step<'_>) {
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
