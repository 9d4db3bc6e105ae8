//! The changes of each executed instruction: the trace that the node Parity (OpenEthereum) calls `vmTrace`.

use alloc::vec;
use alloc::vec::Vec;

use alloy_primitives::{Bytes, U256};

use super::TraceBudget;
use crate::evm::{FrameClose, FrameStart, StepEnd, StepStart};

// Opcodes.
const MLOAD: u8 = 0x51;
const MSTORE: u8 = 0x52;
const MSTORE8: u8 = 0x53;
const SSTORE: u8 = 0x55;
const MCOPY: u8 = 0x5e;
const CALLDATACOPY: u8 = 0x37;
const CODECOPY: u8 = 0x39;
const EXTCODECOPY: u8 = 0x3c;
const RETURNDATACOPY: u8 = 0x3e;
const CREATE: u8 = 0xf0;
const CALL: u8 = 0xf1;
const CALLCODE: u8 = 0xf2;
const DELEGATECALL: u8 = 0xf4;
const CREATE2: u8 = 0xf5;
const STATICCALL: u8 = 0xfa;

// Bytes in JSON, as estimates.

/// Bytes of a call, without code and instructions.
const CALL_BYTES: usize = 30;
/// Bytes of an instruction, without words and memory.
const STEP_BYTES: usize = 100;
/// Bytes of a pushed word.
const WORD_BYTES: usize = 70;
/// Bytes of a written slot.
const SLOT_BYTES: usize = 150;
/// Bytes of a range of memory, without its contents.
const MEMORY_BYTES: usize = 40;

/// The calls of a transaction with the changes of their instructions. The first call is the transaction itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmTrace {
    /// The calls, each before its inner calls.
    pub calls: Vec<VmCall>,
}

/// The instructions of one call or creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmCall {
    /// The code that runs; empty if no instruction ran.
    pub code: Bytes,
    /// The instructions of the call in order, without those of inner calls.
    pub steps: Vec<VmStep>,
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmStep {
    /// Position in the code.
    pub pc: usize,
    /// Gas charged, forwarded gas included; 0 if the instruction failed.
    pub cost: u64,
    /// The changes of the instruction; `None` if it failed.
    pub effect: Option<VmEffect>,
    /// Index in [`VmTrace::calls`] of the call or creation that the instruction started.
    pub inner: Option<usize>,
}

/// The changes of an instruction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmEffect {
    /// Gas left after the instruction, and after the call that it started.
    pub left: u64,
    /// The words that the instruction wrote to the stack, the top one last. DUP and SWAP show all words down to the one that they use.
    pub pushed: Vec<U256>,
    /// The range of the memory that the instruction wrote, or read by MLOAD: its offset, and its contents afterwards.
    pub memory: Option<(usize, Bytes)>,
    /// The slot that the instruction wrote, and the word.
    pub stored: Option<(U256, U256)>,
}

/// A range of the memory: offset and length.
type MemoryRange = (usize, usize);

/// The instruction that runs at present.
#[derive(Clone, Debug)]
struct Running {
    opcode: u8,
    /// Gas left before the instruction.
    gas: u64,
    /// The range of the memory that it uses ([`memory_range`]).
    memory: Option<MemoryRange>,
    /// The slot and the word of SSTORE.
    stored: Option<(U256, U256)>,
}

/// A call that has not ended yet.
#[derive(Clone, Debug)]
struct OpenCall {
    /// Index in [`VmTrace::calls`].
    index: usize,
    /// Gas passed to the call.
    gas: u64,
    /// Set by an instruction that starts an inner call, until the next instruction shows its result: the range of memory that receives
    /// the output, if any.
    calling: Option<Option<MemoryRange>>,
    /// The word that the inner call pushes.
    result: U256,
}

/// Collects the changes of the instructions of one transaction.
#[derive(Clone, Debug)]
pub(super) struct VmTracer {
    trace: VmTrace,
    open: Vec<OpenCall>,
    running: Option<Running>,
    /// The bytes that are left.
    pub(super) budget: TraceBudget,
}

impl VmTracer {
    /// Creates a tracer with this budget.
    pub(super) fn new(budget: TraceBudget) -> Self {
        Self { trace: VmTrace { calls: vec![VmCall::default()] }, open: Vec::new(), running: None, budget }
    }

    /// Returns the trace.
    pub(super) fn finish(self) -> VmTrace {
        self.trace
    }

    /// The last instruction of the innermost open call.
    fn last(&mut self) -> Option<&mut VmStep> {
        let index = self.open.last()?.index;
        self.trace.calls.get_mut(index)?.steps.last_mut()
    }

    /// A call or creation starts.
    pub(super) fn frame(&mut self, start: &FrameStart) {
        // The outermost call has the entry that `new` has made.
        let mut index = 0;
        if !self.open.is_empty() {
            index = self.trace.calls.len();
            if self.budget.take(CALL_BYTES) {
                self.trace.calls.push(VmCall::default());
                if let Some(step) = self.last() {
                    step.inner = Some(index);
                }
            }
        }
        self.open.push(OpenCall { index, gas: start.gas, calling: None, result: U256::ZERO });
    }

    /// The innermost open call ends.
    pub(super) fn frame_end(&mut self, close: &FrameClose) {
        // Code that ends with a call shows no instruction after it.
        let left = self.open.last().map_or(0, |open| open.gas.saturating_sub(close.gas_used));
        self.complete_call(left, None, &[]);
        self.open.pop();
        let result = match (close.failure, close.created) {
            (None, Some(created)) => U256::from_be_slice(created.as_slice()),
            (None, None) => U256::ONE,
            (Some(_), _) => U256::ZERO,
        };
        if let Some(around) = self.open.last_mut() {
            around.result = result;
        }
    }

    /// If the last instruction has started a call that has ended now, sets its changes. `left` is the gas left, `top` the top of the stack
    /// if it is known.
    fn complete_call(&mut self, left: u64, top: Option<U256>, memory: &[u8]) {
        let Some(open) = self.open.last_mut() else { return };
        let Some(range) = open.calling.take() else { return };
        let result = top.unwrap_or(open.result);
        let shown = range.and_then(|range| self.shown_memory(range, memory));
        let Some(effect) = self.last().and_then(|step| step.effect.as_mut()) else { return };
        *effect = VmEffect { left, pushed: vec![result], memory: shown, stored: None };
    }

    /// A range of the memory with its contents; `None` if the range is empty or not in the memory, or if the budget does not suffice.
    fn shown_memory(&mut self, (offset, len): MemoryRange, memory: &[u8]) -> Option<(usize, Bytes)> {
        let bytes = memory.get(offset..offset.checked_add(len)?).filter(|bytes| !bytes.is_empty())?;
        let size = bytes.len().saturating_mul(2).saturating_add(MEMORY_BYTES);
        self.budget.take(size).then(|| (offset, Bytes::copy_from_slice(bytes)))
    }

    /// An instruction is about to run.
    pub(super) fn step(&mut self, step: &StepStart<'_>) {
        self.complete_call(step.gas, step.stack.last().copied(), step.memory);
        let Some(call) = self.open.last().and_then(|open| self.trace.calls.get_mut(open.index)) else {
            return;
        };
        if call.steps.is_empty() {
            if !self.budget.take(step.code.len().saturating_mul(2)) {
                return;
            }
            call.code = Bytes::copy_from_slice(step.code);
        }
        let words = pushed(step.opcode).min(step.stack.len().saturating_add(1));
        if !self.budget.take(words.saturating_mul(WORD_BYTES).saturating_add(STEP_BYTES)) {
            return;
        }
        call.steps.push(VmStep { pc: step.pc, cost: 0, effect: None, inner: None });
        let word = |below: usize| step.stack.iter().rev().nth(below).copied();
        let stored = if step.opcode == SSTORE { word(0).zip(word(1)) } else { None };
        if stored.is_some() {
            self.budget.take(SLOT_BYTES);
        }
        let memory = memory_range(step.opcode, &word);
        self.running = Some(Running { opcode: step.opcode, gas: step.gas, memory, stored });
    }

    /// The instruction reported last has run.
    pub(super) fn step_end(&mut self, end: &StepEnd<'_>) {
        let Some(Running { opcode, gas, memory, stored }) = self.running.take() else { return };
        let mut effect = VmEffect { left: gas.saturating_sub(end.gas_cost), stored, ..VmEffect::default() };
        if end.failure.is_none() && starts_call(opcode) {
            if let Some(open) = self.open.last_mut() {
                (open.calling, open.result) = (Some(memory), U256::ZERO);
            }
        } else if end.failure.is_none() {
            let first = end.stack.len().saturating_sub(pushed(opcode));
            effect.pushed = end.stack.get(first..).unwrap_or_default().to_vec();
            effect.memory = memory.and_then(|range| self.shown_memory(range, end.memory));
        }
        if let Some(step) = self.last() {
            step.cost = end.gas_cost;
            step.effect = Some(effect).filter(|_| end.failure.is_none());
        }
    }
}

/// Whether an instruction calls an account or creates a contract.
fn starts_call(opcode: u8) -> bool {
    matches!(opcode, CREATE | CALL | CALLCODE | DELEGATECALL | CREATE2 | STATICCALL)
}

/// How many words an instruction writes to the stack, as Parity counts them.
fn pushed(opcode: u8) -> usize {
    match opcode {
        // Copies to memory push nothing. They are in the middle of the next range: arithmetic, comparisons, hashes, environment, block.
        CALLDATACOPY | CODECOPY | EXTCODECOPY | RETURNDATACOPY => 0,
        // From 0x54 on: SLOAD; PC, MSIZE and GAS; TLOAD; PUSH0 to PUSH32.
        0x01..=0x4f | MLOAD | 0x54 | 0x58..=0x5a | 0x5c | 0x5f..=0x7f => 1,
        // DUP1 to SWAP16.
        0x80..=0x9f => usize::from(opcode & 0xf).saturating_add(2),
        // The opcodes that only Rootstock had: DUPN, SWAPN and TXINDEX.
        0xa8..=0xaa => 1,
        _ => 0,
    }
}

/// The range of the memory that an instruction uses; for calls the range that receives the output. `word` returns a word of the stack by
/// its position below the top.
fn memory_range(opcode: u8, word: &dyn Fn(usize) -> Option<U256>) -> Option<MemoryRange> {
    let number = |below: usize| word(below).and_then(|word| usize::try_from(word).ok());
    let (offset, len) = match opcode {
        MLOAD | MSTORE => (number(0)?, 32),
        MSTORE8 => (number(0)?, 1),
        CALLDATACOPY | CODECOPY | RETURNDATACOPY | MCOPY => (number(0)?, number(2)?),
        EXTCODECOPY => (number(1)?, number(3)?),
        DELEGATECALL | STATICCALL => (number(4)?, number(5)?),
        CALL | CALLCODE => (number(5)?, number(6)?),
        _ => return None,
    };
    Some((offset, len))
}
