//! The executed instructions of a transaction, with memory, stack and storage, as geth's struct logger and the reference node show them.

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::TraceBudget;
use crate::evm::{FrameClose, FrameStart, HaltReason, Inspector, StepEnd, StepStart};
use crate::exec::Executed;

// The opcodes whose slots the trace shows.
const SLOAD: u8 = 0x54;
const SSTORE: u8 = 0x55;

/// Bytes of an entry in JSON, without memory, stack, storage and return data.
const STEP_BYTES: usize = 58;
/// Bytes of each of these four parts in JSON while it is empty.
const PART_BYTES: usize = 13;
/// Bytes of a word of stack or memory in JSON.
const WORD_BYTES: usize = 67;
/// Bytes of a storage entry in JSON.
const SLOT_BYTES: usize = 134;

/// Fewest bytes of an entry in any form of JSON, by which a trace that must exceed the limit of its size ends early.
const LEAST_STEP_BYTES: usize = 48;

/// The parts that a trace of instructions has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepOptions {
    /// Leave out storage.
    pub disable_storage: bool,
    /// Leave out memory.
    pub disable_memory: bool,
    /// Leave out the stack.
    pub disable_stack: bool,
    /// Store the output of the last call with each instruction.
    pub return_data: bool,
    /// Show storage only with SLOAD and SSTORE, and of it only the slots that the contract has used, zero or not.
    /// Otherwise every instruction shows the storage of its contract, the whole of it if the state can list it.
    pub used_storage: bool,
    /// Bytes of JSON after which no more instructions are stored; 0 stores all.
    pub limit: usize,
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
    /// Output of the last call or creation of the frame, if [`StepOptions::return_data`] is set.
    pub return_data: Bytes,
    /// Gas that the transaction will be refunded, of all frames that are open.
    pub refund: u64,
    /// Why the instruction failed.
    pub failure: Option<HaltReason>,
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

/// State of a call frame that has not ended yet.
#[derive(Clone, Debug, Default)]
struct OpenFrame {
    /// Known storage of the contract, without slots whose word is zero.
    storage: Arc<BTreeMap<U256, U256>>,
    /// Gas to be refunded for the frames around this one.
    outer_refund: u64,
    /// Gas to be refunded for this frame, without the last instruction.
    own_refund: u64,
}

/// The slot of a running SLOAD or SSTORE.
#[derive(Clone, Copy, Debug)]
struct UsedSlot {
    contract: Address,
    slot: U256,
    /// The word that SSTORE writes.
    written: Option<U256>,
}

/// Collects the instructions of one transaction.
#[derive(Clone, Debug, Default)]
pub struct StepTracer {
    options: StepOptions,
    trace: StepTrace,
    /// The open frames, the outermost first.
    open: Vec<OpenFrame>,
    /// The slot of the instruction that runs.
    used: Option<UsedSlot>,
    /// Used slots of each contract, for [`StepOptions::used_storage`].
    contracts: BTreeMap<Address, Arc<BTreeMap<U256, U256>>>,
    /// The bytes that are left.
    pub budget: TraceBudget,
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
        if executed.success {
            trace.failure = None;
        }
        trace
    }

    /// Whether the size limit of the request is reached.
    fn is_full(&self) -> bool {
        let StepOptions { limit, .. } = self.options;
        limit != 0 && self.trace.steps.len().saturating_mul(LEAST_STEP_BYTES) > limit
    }

    /// Records the slot that the last instruction read or wrote.
    fn record_slot(&mut self, stack: &[U256]) {
        let Some(UsedSlot { contract, slot, written }) = self.used.take() else { return };
        let Some(value) = written.or_else(|| stack.last().copied()) else { return };
        if self.options.used_storage {
            return self.show_used_slots(contract, slot, value);
        }
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

    /// Shows the used slots of the contract with the last instruction.
    fn show_used_slots(&mut self, contract: Address, slot: U256, value: U256) {
        let storage = self.contracts.entry(contract).or_default();
        if storage.get(&slot) != Some(&value) {
            Arc::make_mut(storage).insert(slot, value);
        }
        if self.options.disable_storage || !self.budget.take(storage.len().saturating_mul(SLOT_BYTES)) {
            return;
        }
        if let Some(step) = self.trace.steps.last_mut() {
            step.storage = storage.clone();
        }
    }

    /// Bytes of an entry in JSON, whose storage has this number of slots.
    fn kept_bytes(&self, step: &StepStart<'_>, storage: usize) -> usize {
        let part = |left_out: bool, count: usize, bytes: usize| match left_out {
            true => 0,
            false => count.saturating_mul(bytes).saturating_add(PART_BYTES),
        };
        let StepOptions { disable_storage, disable_memory, disable_stack, return_data, .. } = self.options;
        STEP_BYTES
            .saturating_add(part(!return_data, step.return_data.len(), 2))
            .saturating_add(part(disable_memory, step.memory.len().div_ceil(32), WORD_BYTES))
            .saturating_add(part(disable_stack, step.stack.len(), WORD_BYTES))
            .saturating_add(part(disable_storage, storage, SLOT_BYTES))
    }
}

impl Inspector for StepTracer {
    fn wants_steps(&self) -> bool {
        !self.budget.exceeded() && !self.is_full()
    }

    fn wants_storage(&self) -> bool {
        // The storage of the outermost contract is also shown separately.
        let shown = self.open.is_empty() || !self.options.disable_storage;
        shown && !self.budget.exceeded() && !self.options.used_storage
    }

    fn frame(&mut self, start: FrameStart) {
        let storage = start.storage.unwrap_or_default();
        if self.open.is_empty() {
            self.trace.contract = start.to.filter(|_| !start.native && start.has_code);
            self.trace.first_storage = storage.clone();
        }
        let outer_refund =
            self.open.last().map_or(0, |open| open.outer_refund.saturating_add(open.own_refund));
        self.open.push(OpenFrame { storage: Arc::new(storage), outer_refund, own_refund: 0 });
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
        if self.is_full() {
            return;
        }
        let StepOptions { disable_storage, disable_memory, disable_stack, return_data, used_storage, .. } =
            self.options;
        let (storage, refund) = match self.open.last_mut() {
            Some(open) => {
                open.own_refund = step.refund;
                (open.storage.clone(), open.outer_refund.saturating_add(step.refund))
            }
            None => Default::default(),
        };
        if !self.budget.take(self.kept_bytes(&step, storage.len())) {
            return;
        }
        let mut words = step.stack.iter().rev().copied();
        let mut used = |writes: bool| {
            let slot = words.next()?;
            let written = if writes { Some(words.next()?) } else { None };
            Some(UsedSlot { contract: step.contract, slot, written })
        };
        self.used = match step.opcode {
            SLOAD => used(false),
            SSTORE => used(true),
            _ => None,
        };
        self.trace.steps.push(StepLog {
            opcode: step.opcode,
            depth: step.depth,
            pc: step.pc,
            gas: step.gas,
            gas_cost: 0,
            memory: if disable_memory { Bytes::new() } else { Bytes::copy_from_slice(step.memory) },
            stack: if disable_stack { Vec::new() } else { step.stack.to_vec() },
            storage: if disable_storage || used_storage { Arc::default() } else { storage },
            return_data: if return_data { Bytes::copy_from_slice(step.return_data) } else { Bytes::new() },
            refund,
            failure: None,
        });
    }

    fn step_end(&mut self, end: StepEnd<'_>) {
        if self.budget.exceeded() || self.is_full() {
            return;
        }
        if let Some(step) = self.trace.steps.last_mut() {
            step.gas_cost = end.gas_cost;
            step.failure = end.failure;
        }
        if end.failure.is_some() {
            self.used = None;
        }
        self.record_slot(end.stack);
    }
}
