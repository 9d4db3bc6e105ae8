//! Reports from the machine to its inspector ([`super::inspect::Inspector`]). The frame loop calls `report_frame` at the start of a
//! frame and `report_frame_end` at its end; with an inspector it calls `watched_steps` instead of its own loop over instructions.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, U256};
use revm::bytecode::opcode as op;
use revm::context_interface::{CreateScheme, JournalTr as _};
use revm::handler::FrameResult;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::interpreter_types::{InputsTr as _, Jumps as _, LegacyBytecode as _, ReturnData as _};
use revm::interpreter::{
    CallInput, CallInputs, CallScheme, CreateInputs, GasTable, InstructionResult, InstructionTable,
    Interpreter,
};

use super::accounts::{code_size, to_address};
use super::context::{EvmContext, EvmDatabase};
use super::database::EvmState;
use super::halt::HaltReason;
use super::inspect::{FrameClose, FrameKind, FrameStart, StepEnd, StepStart};
use super::machine::Machine;
use super::precompiles::Precompile;

impl<S: EvmState> Machine<'_, S> {
    /// Reports a call or creation before it starts; `native` says that a native contract is called.
    pub(super) fn report_frame(&mut self, init: &FrameInit, native: bool) {
        let Some(inspector) = self.evm.ctx.chain.inspector.as_deref() else { return };
        let wants_storage = inspector.wants_storage();
        let mut start = match &init.frame_input {
            FrameInput::Call(inputs) => call_start(inputs, init),
            FrameInput::Create(inputs) => create_start(inputs),
            FrameInput::Empty => return,
        };
        start.depth = init.depth;
        start.native = native;
        if let (true, Some(context)) = (wants_storage, start.context) {
            start.storage = self.whole_storage(context);
        }
        if let Some(inspector) = self.evm.ctx.chain.inspector.as_deref_mut() {
            inspector.frame(start);
        }
    }

    /// Current storage words of an account: those of the state with the changes of the run.
    fn whole_storage(&mut self, address: Address) -> Option<BTreeMap<U256, U256>> {
        let journal = &mut self.evm.ctx.journaled_state;
        let mut words = journal.database.whole_storage(address)?;
        if let Some(account) = journal.state.get(&address) {
            for (slot, value) in &account.storage {
                words.insert(*slot, value.present_value);
            }
        }
        words.retain(|_, value| !value.is_zero());
        Some(words)
    }

    /// Reports the result of the innermost open frame.
    pub(super) fn report_frame_end(&mut self, result: &FrameResult) {
        let Some(inspector) = self.evm.ctx.chain.inspector.as_deref_mut() else { return };
        let created = match result {
            FrameResult::Call(_) => None,
            FrameResult::Create(outcome) => outcome.address,
        };
        let result = result.interpreter_result();
        let failure = match result.result {
            InstructionResult::Revert => Some(None),
            end if end.is_ok() => None,
            end => Some(Some(HaltReason::from_result(end))),
        };
        let halted = matches!(failure, Some(Some(_)));
        inspector.frame_end(FrameClose {
            failure,
            output: if halted { Bytes::new() } else { result.output.clone() },
            gas_used: if halted { result.gas.limit() } else { result.gas.total_gas_spent() },
            created,
        });
    }
}

/// The report of a call; the caller sets its depth and whether it is native.
fn call_start(inputs: &CallInputs, init: &FrameInit) -> FrameStart {
    let kind = match inputs.scheme {
        CallScheme::Call => FrameKind::Call,
        CallScheme::CallCode => FrameKind::CallCode,
        CallScheme::DelegateCall => FrameKind::DelegateCall,
        CallScheme::StaticCall => FrameKind::StaticCall,
    };
    let input = match &inputs.input {
        CallInput::Bytes(bytes) => bytes.clone(),
        // An empty range can lie beyond the end of memory and must not be read.
        CallInput::SharedBuffer(range) if range.is_empty() => Bytes::new(),
        CallInput::SharedBuffer(_) => Bytes::copy_from_slice(&inputs.input.as_bytes_memory(&init.memory)),
    };
    // In a DELEGATECALL `caller` is the caller of the contract that executes the instruction; the contract itself is the target.
    let own = kind == FrameKind::DelegateCall;
    FrameStart {
        kind,
        depth: 0,
        from: if own { inputs.target_address } else { inputs.caller },
        to: Some(inputs.bytecode_address),
        context: Some(inputs.target_address),
        gas: inputs.gas_limit,
        value: inputs.value.get(),
        input,
        native: false,
        has_code: !inputs.known_bytecode.1.is_empty(),
        storage: None,
    }
}

/// The report of a creation; the caller sets its depth.
fn create_start(inputs: &CreateInputs) -> FrameStart {
    let kind = match inputs.scheme() {
        CreateScheme::Create2 { .. } => FrameKind::Create2,
        CreateScheme::Create | CreateScheme::Custom { .. } => FrameKind::Create,
    };
    FrameStart {
        kind,
        depth: 0,
        from: inputs.caller(),
        to: None,
        context: None,
        gas: inputs.gas_limit(),
        value: inputs.value(),
        input: inputs.init_code().clone(),
        native: false,
        has_code: !inputs.init_code().is_empty(),
        storage: None,
    }
}

/// Runs up to `count` instructions and reports each. Returns the result that ended the frame or opened
/// another one, as the frame loop without inspector does.
pub(super) fn watched_steps<'a, DB: EvmDatabase>(
    count: usize,
    interpreter: &mut Interpreter<EthInterpreter>,
    table: &InstructionTable<EthInterpreter, EvmContext<'a, DB>>,
    gas_table: &GasTable,
    context: &mut EvmContext<'a, DB>,
) -> Result<(), InstructionResult> {
    for _ in 0..count {
        let gas = interpreter.gas.remaining();
        let pc = interpreter.bytecode.pc();
        // The interpreter has a STOP after the last byte, which is not part of the code.
        let in_code = pc < interpreter.bytecode.bytecode_len();
        let code_size = named_code_size(interpreter, context);
        if let (true, Some(inspector)) = (in_code, context.chain.inspector.as_deref_mut()) {
            inspector.step(StepStart {
                depth: interpreter.input.depth(),
                contract: interpreter.input.target_address(),
                pc,
                opcode: interpreter.bytecode.opcode(),
                code: whole_code(&context.chain.codes_with_header, interpreter),
                gas,
                memory: &interpreter.memory.context_memory(),
                stack: interpreter.stack.data(),
                return_data: interpreter.return_data.buffer(),
                refund: u64::try_from(interpreter.gas.refunded()).unwrap_or(0),
                code_size,
            });
        }
        // For tracers in JavaScript (`live.rs`): they get an instruction with its cost, which is known only now that it has run, and
        // read the state before it. Browser modules, which lack `catalogue`, have no such tracers.
        #[cfg(feature = "catalogue")]
        let values_before = super::live::ValuesBefore::before(interpreter, context);
        let logs = context.journaled_state.logs().len();
        let ended = interpreter.step(table, gas_table, context);
        let failure = ended.err().filter(|end| !ends_well(*end)).map(HaltReason::from_result);
        if let (true, Some(inspector)) = (in_code, context.chain.inspector.as_deref_mut()) {
            for log in context.journaled_state.inner.logs.iter().skip(logs) {
                inspector.log(log);
            }
            let spent = gas.saturating_sub(interpreter.gas.remaining());
            let gas_cost = if failure.is_some() { 0 } else { spent };
            let memory = &interpreter.memory.context_memory();
            inspector.step_end(StepEnd { gas_cost, failure, stack: interpreter.stack.data(), memory });
            #[cfg(feature = "catalogue")]
            if let Some(values_before) = values_before {
                inspector.step_state(&mut values_before.state(&mut context.journaled_state));
            }
        }
        ended?;
    }
    Ok(())
}

/// The code that runs. Code that starts with `0xfc` begins with a header, which the interpreter does not have (`code.rs`);
/// `codes_with_header` has such codes whole, by call depth.
fn whole_code<'a>(
    codes_with_header: &'a [Option<Bytes>],
    interpreter: &'a Interpreter<EthInterpreter>,
) -> &'a [u8] {
    let with_header = codes_with_header.get(interpreter.input.depth()).and_then(Option::as_ref);
    with_header.map_or_else(|| interpreter.bytecode.bytecode_slice(), |code| &code[..])
}

/// Number of bytes of code at the address that the next instruction names, if the inspector wants it.
fn named_code_size<DB: EvmDatabase>(
    interpreter: &Interpreter<EthInterpreter>,
    context: &mut EvmContext<'_, DB>,
) -> Option<usize> {
    context.chain.inspector.as_deref().filter(|inspector| inspector.wants_code_size())?;
    // The position of the address on the stack, below the top.
    let below_top = match interpreter.bytecode.opcode() {
        op::EXTCODESIZE | op::EXTCODECOPY | op::EXTCODEHASH => 0,
        op::CALL | op::CALLCODE | op::DELEGATECALL | op::STATICCALL => 1,
        _ => return None,
    };
    let address = to_address(*interpreter.stack.data().iter().nth_back(below_top)?);
    match Precompile::at(&address, context.chain.rules) {
        Some(_) => Some(0),
        None => code_size(context, address).ok(),
    }
}

/// Whether an instruction did not fail, also if it has ended the frame or opened another one.
fn ends_well(end: InstructionResult) -> bool {
    end.is_ok() || matches!(end, InstructionResult::Suspend | InstructionResult::Revert)
}
