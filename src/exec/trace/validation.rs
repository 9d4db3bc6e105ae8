//! Uses of opcodes, storage and code by each call, for the validation rules of account abstraction (ERC-7562), as geth's `erc7562Tracer`
//! collects them.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use alloy_primitives::{Address, B256, Bytes, U256};

use super::TraceBudget;
use crate::evm::{FrameClose, HaltReason, StepEnd, StepStart};

// Opcodes.
const ISZERO: u8 = 0x15;
const KECCAK256: u8 = 0x20;
const EXTCODESIZE: u8 = 0x3b;
const EXTCODECOPY: u8 = 0x3c;
const EXTCODEHASH: u8 = 0x3f;
const SLOAD: u8 = 0x54;
const SSTORE: u8 = 0x55;
const GAS: u8 = 0x5a;
const TLOAD: u8 = 0x5c;
const TSTORE: u8 = 0x5d;
const CALL: u8 = 0xf1;
const CALLCODE: u8 = 0xf2;
const RETURN: u8 = 0xf3;
const DELEGATECALL: u8 = 0xf4;
const STATICCALL: u8 = 0xfa;
const REVERT: u8 = 0xfd;

/// Bytes of an entry of any list in JSON as an estimate: two words.
const ENTRY_BYTES: usize = 150;
/// Bytes beyond the memory up to which a hashed range is padded with zeros, as in geth. A longer range is left out.
const MAX_PADDING: usize = 1 << 20;

/// A set of opcodes, with a bit for each: those below 0x80 in the first number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeSet([u128; 2]);

impl Default for OpcodeSet {
    /// The opcodes that geth's tracer ignores by default.
    fn default() -> Self {
        // POP; ADD, SUB, MUL, DIV; EQ, LT, GT, SLT, SGT; SHL, SHR; AND, OR, NOT; ISZERO. The range is PUSH0 to SWAP16.
        let single =
            [0x50, 0x01, 0x03, 0x02, 0x04, 0x14, 0x10, 0x11, 0x12, 0x13, 0x1b, 0x1c, 0x16, 0x17, 0x19, 0x15];
        (0x5f..=0x9f).chain(single).collect()
    }
}

impl FromIterator<u8> for OpcodeSet {
    fn from_iter<T: IntoIterator<Item = u8>>(opcodes: T) -> Self {
        let [mut low, mut high] = [0_u128; 2];
        for opcode in opcodes {
            let bit = 1 << (opcode & 0x7f);
            if opcode < 0x80 { low |= bit } else { high |= bit }
        }
        Self([low, high])
    }
}

impl OpcodeSet {
    /// Whether an opcode is in the set.
    fn has(self, opcode: u8) -> bool {
        let Self([low, high]) = self;
        (if opcode < 0x80 { low } else { high }) >> (opcode & 0x7f) & 1 == 1
    }
}

/// The opcodes, storage and code that one call uses, without its inner calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallAccess {
    /// The first value of each slot that is read before it is written.
    pub reads: BTreeMap<U256, U256>,
    /// How often each slot is written.
    pub writes: BTreeMap<U256, u64>,
    /// How often each transient slot is read.
    pub transient_reads: BTreeMap<U256, u64>,
    /// How often each transient slot is written.
    pub transient_writes: BTreeMap<U256, u64>,
    /// The accounts whose code is read; EXTCODESIZE before ISZERO only tests whether there is code, and is left out.
    pub code_reads: Vec<Address>,
    /// How often each opcode runs. GAS counts unless a call follows.
    pub opcodes: BTreeMap<u8, u64>,
    /// The number of bytes of code of each account that is called or whose code is read, with the first opcode that does so.
    pub code_sizes: BTreeMap<Address, (usize, u8)>,
    /// Whether an inner call ran out of gas.
    pub out_of_gas: bool,
}

/// The uses of all calls of a transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValidationTrace {
    /// The uses of each call, by the index of the call's entry in [`CallTrace::nodes`](super::CallTrace::nodes).
    pub calls: BTreeMap<usize, CallAccess>,
    /// The bytes that KECCAK256 hashes.
    pub hashed: BTreeSet<Bytes>,
}

/// Collects the uses of opcodes, storage and code by the calls of one transaction. A [`CallTracer`](super::CallTracer) collects the calls
/// themselves at the same time, and both count entries alike.
#[derive(Clone, Debug, Default)]
pub(super) struct ValidationTracer {
    ignored: OpcodeSet,
    trace: ValidationTrace,
    /// Indices of the open entries.
    open: Vec<usize>,
    /// Number of entries so far.
    count: usize,
    /// The opcode that ran last, and the account that it names if it is a call or reads code.
    last: Option<(u8, Option<Address>)>,
    /// The slot of a running SLOAD whose value is to be stored.
    reading: Option<U256>,
    /// The bytes that are left.
    pub(super) budget: TraceBudget,
}

impl ValidationTracer {
    /// Creates a tracer with this budget that does not count the opcodes `ignored`.
    pub(super) fn new(ignored: OpcodeSet, budget: TraceBudget) -> Self {
        Self { ignored, budget, ..Self::default() }
    }

    /// A call or creation starts. Payments of native contracts are not reported here: only transactions that run no code make them.
    pub(super) fn frame(&mut self) {
        self.open.push(self.count);
        self.entry();
    }

    /// An entry without a frame starts and ends.
    pub(super) fn entry(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// The innermost open frame ends.
    pub(super) fn frame_end(&mut self, close: &FrameClose) {
        let out_of_gas = close.failure == Some(Some(HaltReason::OutOfGas));
        let index = self.open.pop();
        if let Some(index) = index.filter(|_| out_of_gas && !self.open.is_empty()) {
            self.trace.calls.entry(index).or_default().out_of_gas = true;
        }
    }

    /// Returns the trace.
    pub(super) fn finish(self) -> ValidationTrace {
        self.trace
    }

    /// An instruction is about to run.
    pub(super) fn step(&mut self, step: &StepStart<'_>) {
        let opcode = step.opcode;
        let word = |below: usize| step.stack.iter().rev().nth(below).copied();
        let address = |below: usize| word(below).map(|word| Address::from_word(B256::from(word)));
        // As in geth, GAS or a read of code directly before the end of a call does not count.
        if matches!(opcode, REVERT | RETURN) {
            self.last = None;
        }
        let last = self.last.take();
        let named = address(usize::from(is_call(opcode))).filter(|_| is_call(opcode) || reads_code(opcode));
        self.last = Some((opcode, named));
        let Some(index) = self.open.last().copied() else { return };
        let access = self.trace.calls.entry(index).or_default();
        let mut added = access.note_code(step, last, named);
        if matches!(last, Some((GAS, _))) && !is_call(opcode) {
            added = added.saturating_add(count(&mut access.opcodes, GAS));
        }
        if opcode != GAS && !self.ignored.has(opcode) {
            added = added.saturating_add(count(&mut access.opcodes, opcode));
        }
        let slot = word(0).unwrap_or_default();
        let accesses = match opcode {
            SSTORE => Some(&mut access.writes),
            TLOAD => Some(&mut access.transient_reads),
            TSTORE => Some(&mut access.transient_writes),
            _ => None,
        };
        if let Some(accesses) = accesses {
            added = added.saturating_add(count(accesses, slot));
        }
        match opcode {
            SLOAD if !access.reads.contains_key(&slot) && !access.writes.contains_key(&slot) => {
                self.reading = Some(slot);
            }
            KECCAK256 => self.keep_hashed(step.memory, slot, word(1).unwrap_or_default()),
            _ => {}
        }
        self.budget.take(added.saturating_mul(ENTRY_BYTES));
    }

    /// The instruction reported last has run.
    pub(super) fn step_end(&mut self, end: &StepEnd<'_>) {
        let Some(slot) = self.reading.take().filter(|_| end.failure.is_none()) else { return };
        let (Some(index), Some(value)) = (self.open.last(), end.stack.last()) else { return };
        if self.budget.take(ENTRY_BYTES) {
            self.trace.calls.entry(*index).or_default().reads.insert(slot, *value);
        }
    }

    /// Stores a range of memory that is hashed, padded with zeros.
    fn keep_hashed(&mut self, memory: &[u8], offset: U256, len: U256) {
        let range = usize::try_from(offset).ok().zip(usize::try_from(len).ok());
        let Some((start, len)) = range else { return };
        let Some(end) = start.checked_add(len).filter(|end| *end <= memory.len().saturating_add(MAX_PADDING))
        else {
            return;
        };
        let in_memory = memory.get(start.min(memory.len())..end.min(memory.len())).unwrap_or_default();
        let mut hashed = in_memory.to_vec();
        hashed.resize(len, 0);
        let known = self.trace.hashed.contains(hashed.as_slice());
        if !known && self.budget.take(len.saturating_mul(2).saturating_add(ENTRY_BYTES)) {
            self.trace.hashed.insert(hashed.into());
        }
    }
}

impl CallAccess {
    /// Notes the accounts whose code is read or called. Returns the number of new entries.
    fn note_code(
        &mut self,
        step: &StepStart<'_>,
        last: Option<(u8, Option<Address>)>,
        named: Option<Address>,
    ) -> usize {
        let mut added: usize = 0;
        match last {
            Some((EXTCODESIZE, _)) if step.opcode == ISZERO => {}
            Some((before, Some(account))) if reads_code(before) => {
                self.code_reads.push(account);
                added = 1;
            }
            _ => {}
        }
        if let (Some(account), Some(size)) = (named, step.code_size)
            && let Entry::Vacant(free) = self.code_sizes.entry(account)
        {
            free.insert((size, step.opcode));
            added = added.saturating_add(1);
        }
        added
    }
}

/// Counts the key. Returns the number of new entries.
fn count<K: Ord>(counts: &mut BTreeMap<K, u64>, key: K) -> usize {
    let count = counts.entry(key).or_default();
    *count = count.saturating_add(1);
    usize::from(*count == 1)
}

/// Whether an instruction calls an account.
fn is_call(opcode: u8) -> bool {
    matches!(opcode, CALL | CALLCODE | DELEGATECALL | STATICCALL)
}

/// Whether an instruction reads the code of an account that it names.
fn reads_code(opcode: u8) -> bool {
    matches!(opcode, EXTCODESIZE | EXTCODECOPY | EXTCODEHASH)
}
