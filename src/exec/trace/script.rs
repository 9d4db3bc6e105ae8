//! The interface to a host's engine for tracers that callers write as scripts (in JavaScript, as geth has them): the reports that the
//! engine gets of a run, and the trace that it returns. `script_tracer.rs` makes the reports.

use alloc::{borrow::Cow, boxed::Box, string::String, sync::Arc};
use core::fmt;

use alloy_primitives::{Address, B256, U256};
use serde_json::value::RawValue;

use crate::consensus::RuleSet;
use crate::evm::{FrameClose, LiveState};

/// A host's engine for scripts.
pub trait ScriptEngine: fmt::Debug + Send + Sync {
    /// The same engine for one message, whose scripts have one time limit together: also if the message runs several times because state
    /// was missing.
    fn for_message(&self) -> Arc<dyn ScriptEngine>;

    /// Reads a script, which then traces the transactions of one request.
    ///
    /// # Errors
    /// The script is not a valid tracer.
    fn begin(&self, script: &Script) -> Result<Box<dyn ScriptRun>, ScriptError>;
}

/// A tracer as a caller gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// The source: an expression that is an object with functions.
    pub source: String,
    /// The options, in JSON.
    pub config: String,
}

/// Why a script gives no trace: the script's own error, or a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScriptError(pub String);

/// The reports that a script takes, besides faults and the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScriptHooks {
    /// Instructions.
    pub steps: bool,
    /// Inner calls and creations.
    pub frames: bool,
}

/// A script that traces one transaction after the other. After an error, nothing more is reported.
pub trait ScriptRun {
    /// A transaction begins, in a block with these rules. Returns the reports that the script takes.
    ///
    /// # Errors
    /// As in all methods: the script failed, or a limit was reached.
    fn start(&mut self, rules: RuleSet) -> Result<ScriptHooks, ScriptError>;

    /// An instruction, with the state before it.
    ///
    /// # Errors
    /// See [`Self::start`].
    fn step(&mut self, step: &ScriptStep<'_>, state: &mut dyn LiveState) -> Result<(), ScriptError>;

    /// The instruction reported last failed in the middle, or was REVERT; [`ScriptStep::error`] says why.
    ///
    /// # Errors
    /// See [`Self::start`].
    fn fault(&mut self, step: &ScriptStep<'_>, state: &mut dyn LiveState) -> Result<(), ScriptError>;

    /// An inner call or creation, or a destruction, which ends at once.
    ///
    /// # Errors
    /// See [`Self::start`].
    fn enter(&mut self, frame: &ScriptFrame<'_>) -> Result<(), ScriptError>;

    /// The innermost call or creation ends.
    ///
    /// # Errors
    /// See [`Self::start`].
    fn exit(&mut self, close: &FrameClose) -> Result<(), ScriptError>;

    /// The transaction has ended. Returns the trace, in JSON.
    ///
    /// # Errors
    /// See [`Self::start`].
    fn result(
        &mut self,
        context: &ScriptContext<'_>,
        state: &mut dyn LiveState,
    ) -> Result<Box<RawValue>, ScriptError>;
}

/// An instruction. Memory and stack are those before it.
#[derive(Clone, Debug)]
pub struct ScriptStep<'a> {
    /// The opcode.
    pub opcode: u8,
    /// The name of the opcode.
    pub name: Cow<'static, str>,
    /// Position in the code.
    pub pc: usize,
    /// Gas left before the instruction.
    pub gas: u64,
    /// Gas charged, forwarded gas included; one more than [`Self::gas`] if the gas did not suffice, 0 if the instruction failed otherwise.
    pub cost: u64,
    /// Depth of its call, 1 for the outermost one.
    pub depth: usize,
    /// Gas that the transaction will be refunded.
    pub refund: u64,
    /// Why the instruction failed.
    pub error: Option<String>,
    /// The stack, bottom first.
    pub stack: &'a [U256],
    /// The memory.
    pub memory: &'a [u8],
    /// The account that called the running code.
    pub caller: Address,
    /// The account whose storage the code uses.
    pub contract: Address,
    /// Value of the call in wei.
    pub value: U256,
    /// Call data, or initialisation code.
    pub input: &'a [u8],
}

/// A call, creation or destruction.
#[derive(Clone, Debug)]
pub struct ScriptFrame<'a> {
    /// Name of its instruction.
    pub kind: &'static str,
    /// The account that starts it.
    pub from: Address,
    /// The account whose code runs, which is created, or which receives the balance.
    pub to: Option<Address>,
    /// Call data, or initialisation code.
    pub input: &'a [u8],
    /// Gas passed to it.
    pub gas: u64,
    /// Value in wei; `None` where the instruction has none.
    pub value: Option<U256>,
}

/// A transaction or call that has ended.
#[derive(Clone, Debug)]
pub struct ScriptContext<'a> {
    /// Whether the transaction or call creates a contract.
    pub creates: bool,
    /// The sender of the transaction or call.
    pub from: Address,
    /// The callee, or the contract that is created.
    pub to: Address,
    /// Call data, or initialisation code.
    pub input: &'a [u8],
    /// Gas limit.
    pub gas: u64,
    /// Gas used.
    pub gas_used: u64,
    /// Price of gas in wei.
    pub gas_price: U256,
    /// Value in wei.
    pub value: U256,
    /// Number of the block.
    pub block: u64,
    /// Hash of the block, and index and hash of the transaction; `None` for a call.
    pub mined_at: Option<(B256, usize, B256)>,
    /// Return data, revert data, or the code of the new contract.
    pub output: &'a [u8],
    /// Why the transaction or call failed.
    pub error: Option<String>,
}
