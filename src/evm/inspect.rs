//! Watching a run: frames, instructions, destructions and logs as they happen.
//!
//! A run without an [`Inspector`] pays one look at an empty slot per frame and per few thousand
//! instructions. Frames come in pairs of [`Inspector::frame`] and [`Inspector::frame_end`], well
//! nested; a run that is given up (see [`Abort`](super::Abort)) leaves its open frames open.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, Log, U256};

use super::halt::HaltReason;

/// How a frame came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// CALL, or a transaction to an account.
    Call,
    /// CALLCODE: foreign code on the caller's own storage.
    CallCode,
    /// DELEGATECALL: as CALLCODE, with the caller's own sender and value.
    DelegateCall,
    /// STATICCALL (RSKIP-91).
    StaticCall,
    /// CREATE, or a transaction that creates a contract.
    Create,
    /// CREATE2 (RSKIP-125).
    Create2,
}

impl FrameKind {
    /// Whether the frame makes a contract.
    pub fn creates(self) -> bool {
        matches!(self, Self::Create | Self::Create2)
    }
}

/// A call or creation about to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameStart {
    /// What it is.
    pub kind: FrameKind,
    /// Depth: 0 for the outermost frame.
    pub depth: usize,
    /// The contract (or sender) that makes it; for DELEGATECALL the contract itself, not its caller.
    pub from: Address,
    /// Whose code runs; `None` for a creation.
    pub to: Option<Address>,
    /// Whose storage the code works on; `None` for a creation.
    pub context: Option<Address>,
    /// Gas it gets.
    pub gas: u64,
    /// Value in wei; for DELEGATECALL the one its caller was sent.
    pub value: U256,
    /// Call data, or initialisation code.
    pub input: Bytes,
    /// A native contract answers: no instruction will be seen.
    pub native: bool,
    /// Whether there is code to run.
    pub has_code: bool,
    /// All storage words of [`Self::context`], where [`Inspector::wants_storage`] asked for them and
    /// the state can list them.
    pub storage: Option<BTreeMap<U256, U256>>,
}

/// How a frame ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameClose {
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on a halt.
    pub failure: Option<Option<HaltReason>>,
    /// Return data, revert data, or the code of the new contract; nothing after a halt.
    pub output: Bytes,
    /// Gas used, refunds not taken off; all of it after a halt.
    pub gas_used: u64,
    /// Address of the new contract, where a creation got as far as having one.
    pub created: Option<Address>,
}

/// An instruction about to run.
#[derive(Debug)]
pub struct Step<'a> {
    /// Depth of its frame, 0 for the outermost one.
    pub depth: usize,
    /// Place in the code.
    pub pc: usize,
    /// The opcode.
    pub opcode: u8,
    /// Gas left before it.
    pub gas: u64,
    /// The frame's memory, a whole number of words.
    pub memory: &'a [u8],
    /// The stack, bottom first.
    pub stack: &'a [U256],
}

/// An instruction that has run; calls and creations are only about to open their frame.
#[derive(Debug)]
pub struct StepEnd<'a> {
    /// Gas it took, forwarded gas included; 0 where it failed.
    pub gas_cost: u64,
    /// Whether it failed. REVERT does not.
    pub failed: bool,
    /// The stack, bottom first.
    pub stack: &'a [U256],
}

/// Someone who watches a run. Every method does nothing unless written otherwise.
pub trait Inspector {
    /// Whether [`Self::step`], [`Self::step_end`] and [`Self::log`] are wanted; asked often.
    fn wants_steps(&self) -> bool {
        false
    }

    /// Whether [`FrameStart::storage`] is wanted; listing it costs time.
    fn wants_storage(&self) -> bool {
        false
    }

    /// A call or creation starts, or fails or succeeds at once without running anything.
    fn frame(&mut self, _: FrameStart) {}

    /// The newest open frame ends.
    fn frame_end(&mut self, _: FrameClose) {}

    /// A contract destroys itself and leaves this balance (wei) to the beneficiary.
    fn self_destruct(&mut self, _contract: Address, _beneficiary: Address, _balance: U256) {}

    /// A native contract that a transaction calls directly, REMASC among them, pays an account
    /// (wei) outside every frame. Traces show it as a call without gas.
    fn payment(&mut self, _from: Address, _to: Address, _value: U256) {}

    /// An instruction is about to run.
    fn step(&mut self, _: Step<'_>) {}

    /// It has run.
    fn step_end(&mut self, _: StepEnd<'_>) {}

    /// A contract wrote a log: one that runs code, where steps are wanted, or a native one.
    fn log(&mut self, _: &Log) {}
}
