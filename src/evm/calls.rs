//! CALL, CALLCODE, DELEGATECALL, STATICCALL.
//!
//! Differences from Ethereum:
//! - The callee gets the gas requested, up to all remaining gas (no 63/64 rule).
//! - The caller pays for the stipend.
//! - A CALL to an account that does not exist costs 25,000 gas, whatever the value.
//! - Memory is charged for input and output, but grows only as far as the reference node uses it.

use alloc::boxed::Box;
use core::ops::Range;

use alloy_primitives::{Address, B256, U256};
use revm::bytecode::{Bytecode, opcode as op};
use revm::interpreter::interpreter_action::FrameInput;
use revm::interpreter::interpreter_types::{
    InputsTr as _, LoopControl as _, MemoryTr as _, ReturnData as _, RuntimeFlag as _,
};
use revm::interpreter::{
    CallInput, CallInputs, CallScheme, CallValue, Host as _, InstructionResult, InterpreterAction,
};

use super::accounts::{balance_of, to_address};
use super::context::{
    EvmContext, EvmDatabase, NativeCallRecord, OpcodeContext, OpcodeResult, charge, pop, push,
};
use super::gas::{CALL, MAX_MEMORY, NEW_ACCOUNT, STIPEND, VALUE_TRANSFER};
use super::precompiles::Precompile;
use super::touches::Touch;
use crate::consensus::Rule;

/// A range of a frame's memory that a call names, in bytes.
#[derive(Clone, Copy)]
struct MemoryRange {
    offset: usize,
    len: usize,
}

impl MemoryRange {
    /// Reads a range from the stack arguments; an error if it ends beyond the largest memory.
    fn new(offset: U256, len: U256) -> OpcodeResult<Self> {
        if len.is_zero() {
            // Before RSKIP-150 a native contract writes its output at this offset even if the range is empty (`native.rs`).
            return Ok(Self { offset: usize::try_from(offset).unwrap_or(usize::MAX), len: 0 });
        }
        let offset = usize::try_from(offset).map_err(|_| InstructionResult::MemoryOOG)?;
        let len = usize::try_from(len).map_err(|_| InstructionResult::MemoryOOG)?;
        match offset.checked_add(len) {
            Some(end) if end as u64 <= MAX_MEMORY => Ok(Self { offset, len }),
            _ => Err(InstructionResult::MemoryOOG),
        }
    }

    /// The end of the range; 0 for an empty range, which needs no memory.
    fn end(self) -> usize {
        if self.len == 0 { 0 } else { self.offset.saturating_add(self.len) }
    }

    /// The bytes of the range, for the output.
    fn range(self) -> Range<usize> {
        self.offset..self.offset.saturating_add(self.len)
    }

    /// The range in the memory that all frames share, in which this frame begins at `base`, for the input. Out of bounds if empty, so
    /// that `revm` reads nothing.
    fn shared_range(self, base: usize) -> Range<usize> {
        if self.len == 0 {
            return usize::MAX..usize::MAX;
        }
        base.saturating_add(self.offset)..base.saturating_add(self.end())
    }
}

/// The stack arguments of a call.
struct CallArguments {
    gas: U256,
    to: Address,
    value: U256,
    input: MemoryRange,
    output: MemoryRange,
}

/// The account whose code is called.
struct Callee {
    exists: bool,
    code: Bytecode,
    code_hash: B256,
}

/// CALL, CALLCODE, DELEGATECALL and STATICCALL; `KIND` is the opcode.
pub(super) fn call<const KIND: u8, DB: EvmDatabase>(mut context: OpcodeContext<'_, '_, DB>) -> OpcodeResult {
    let mut request = pop_request::<KIND, DB>(&mut context)?;
    let precompile = Precompile::at(&request.to, context.host.chain.rules);
    charge_memory(&mut context, &request)?;
    if let Some(limit) = precompile.and_then(|p| p.max_input(context.host.chain.rules)) {
        // Memory is charged for the whole input, of which the native contract reads no more than `limit` bytes.
        request.input.len = request.input.len.min(limit);
    }
    if !request.value.is_zero() {
        charge(context.interpreter, VALUE_TRANSFER)?;
    }
    let callee = load_callee(context.host, request.to, precompile)?;
    if KIND == op::CALL && !callee.exists {
        charge(context.interpreter, NEW_ACCOUNT)?;
    }
    let gas_limit = forwarded_gas(&context, &request)?;
    if let Some(native) = precompile {
        record_native_call(context.host, native);
    }

    let too_deep = context.interpreter.input.depth() >= context.host.chain.max_depth();
    let own = context.interpreter.input.target_address();
    let lacks_value = !request.value.is_zero() && balance_of(context.host, own)? < request.value;
    let runs = !too_deep && !lacks_value;
    // The reference node reads the input of a contract before it checks the balance, and that of a native contract after.
    grow_memory(&mut context, &request, runs || (!too_deep && precompile.is_none()));
    if !runs {
        return end_without_frame(context, too_deep);
    }
    charge(context.interpreter, gas_limit)?;
    touch_callee::<KIND, DB>(context.host, own, &request, precompile.is_none(), callee.exists);
    let inputs = call_inputs::<KIND, DB>(&context, request, callee, gas_limit);
    let action = InterpreterAction::NewFrame(FrameInput::Call(Box::new(inputs)));
    context.interpreter.bytecode.set_action(action);
    Err(InstructionResult::Suspend)
}

/// Records a call of a native contract, whatever its result.
fn record_native_call<DB: EvmDatabase>(context: &mut EvmContext<'_, DB>, native: Precompile) {
    let call = NativeCallRecord { contract: native, outside_creations: context.chain.inner_creations == 0 };
    if !context.chain.natives.contains(&call) {
        context.chain.natives.push(call);
    }
}

/// Reports the code that a call runs and the accounts between which it transfers value as touches.
fn touch_callee<const KIND: u8, DB: EvmDatabase>(
    context: &mut EvmContext<'_, DB>,
    own: Address,
    request: &CallArguments,
    has_code: bool,
    exists: bool,
) {
    let database = &mut context.journaled_state.database;
    if has_code {
        database.touch(Touch::CallCode(request.to));
    }
    let borrows_code = KIND == op::CALLCODE || KIND == op::DELEGATECALL;
    let to = if borrows_code { own } else { request.to };
    let exists = borrows_code || exists;
    database.touch(Touch::Transfer { from: own, to, value: request.value, exists });
}

/// Pops the arguments and charges the base price of the call.
fn pop_request<const KIND: u8, DB: EvmDatabase>(
    context: &mut OpcodeContext<'_, '_, DB>,
) -> OpcodeResult<CallArguments> {
    let [gas, to] = pop(context.interpreter)?;
    let value = if KIND == op::CALL || KIND == op::CALLCODE {
        let [value] = pop(context.interpreter)?;
        value
    } else {
        U256::ZERO
    };
    let [in_offset, in_len, out_offset, out_len] = pop(context.interpreter)?;
    if KIND == op::CALL && context.interpreter.runtime_flag.is_static() && !value.is_zero() {
        return Err(InstructionResult::CallNotAllowedInsideStatic);
    }
    let to = to_address(to);
    if KIND == op::CALL {
        context.host.journaled_state.database.touch(Touch::CallPrice(to));
    }
    charge(context.interpreter, CALL)?;
    Ok(CallArguments {
        gas,
        to,
        value,
        input: MemoryRange::new(in_offset, in_len)?,
        output: MemoryRange::new(out_offset, out_len)?,
    })
}

/// Charges memory for the longer of input and output, even if memory will not grow that far.
fn charge_memory<DB: EvmDatabase>(
    context: &mut OpcodeContext<'_, '_, DB>,
    request: &CallArguments,
) -> OpcodeResult {
    let current = context.interpreter.gas.memory().words_num;
    let wanted = request.input.end().max(request.output.end()).div_ceil(32);
    if wanted <= current {
        return Ok(());
    }
    let params = &context.host.cfg.gas_params;
    let cost = params.memory_cost(wanted).saturating_sub(params.memory_cost(current));
    charge(context.interpreter, cost)
}

/// Grows memory for the output, and for the input if the reference node reads it. If memory stays smaller
/// than charged, the next instruction that needs it is charged again, as in the reference node.
fn grow_memory<DB: EvmDatabase>(
    context: &mut OpcodeContext<'_, '_, DB>,
    request: &CallArguments,
    reads_input: bool,
) {
    let input_end = if reads_input { request.input.end() } else { 0 };
    let words = request.output.end().max(input_end).div_ceil(32);
    if words <= context.interpreter.gas.memory().words_num {
        return;
    }
    let cost = context.host.cfg.gas_params.memory_cost(words);
    // `charge_memory` has charged the cost: the call only records the new size, and its result is the cost.
    let _ = context.interpreter.gas.memory_mut().set_words_num(words, cost);
    context.interpreter.memory.resize(words.saturating_mul(32));
}

/// Loads existence and code of the callee. Native contracts exist since RSKIP-126 and have no code, so no
/// state is read for them.
fn load_callee<DB: EvmDatabase>(
    context: &mut EvmContext<'_, DB>,
    to: Address,
    precompile: Option<Precompile>,
) -> OpcodeResult<Callee> {
    if precompile.is_some() && context.chain.rules.has(Rule::Rskip126) {
        return Ok(Callee { exists: true, code: Bytecode::default(), code_hash: B256::ZERO });
    }
    // With the code, unless it is a native contract's (`accounts.rs` explains the flags).
    let loaded = context.load_account_info_skip_cold_load(to, precompile.is_none(), false)?;
    Ok(Callee {
        exists: !loaded.is_empty,
        code: loaded.account.code.clone().unwrap_or_default(),
        code_hash: loaded.account.code_hash,
    })
}

/// Gas of the callee: the gas requested plus the stipend, at most all remaining gas.
fn forwarded_gas<DB: EvmDatabase>(
    context: &OpcodeContext<'_, '_, DB>,
    request: &CallArguments,
) -> OpcodeResult<u64> {
    let stipend = if request.value.is_zero() { 0 } else { STIPEND };
    let left = context.interpreter.gas.remaining();
    if left < stipend {
        return Err(InstructionResult::OutOfGas);
    }
    let requested = u64::try_from(request.gas).unwrap_or(u64::MAX).min(i64::MAX as u64);
    if !context.host.chain.rules.has(Rule::Rskip150) && requested.saturating_add(stipend) > i64::MAX as u64 {
        // At that time the reference node added the stipend in 63 bits, and the overflow made the call fail.
        return Err(InstructionResult::OutOfGas);
    }
    Ok(requested.saturating_add(stipend).min(left))
}

/// Ends a call that opens no frame, because it is too deep or the caller lacks the value.
fn end_without_frame<DB: EvmDatabase>(context: OpcodeContext<'_, '_, DB>, too_deep: bool) -> OpcodeResult {
    // In the reference node a call that is too deep leaves the return data as they are, and so does a call without the value before
    // RSKIP-171.
    if !too_deep && context.host.chain.rules.has(Rule::Rskip171) {
        context.interpreter.return_data.clear();
    }
    push(context.interpreter, U256::ZERO)
}

/// The call in the form in which `revm` opens a frame for it.
fn call_inputs<const KIND: u8, DB: EvmDatabase>(
    context: &OpcodeContext<'_, '_, DB>,
    request: CallArguments,
    callee: Callee,
    gas_limit: u64,
) -> CallInputs {
    let interpreter = &context.interpreter;
    let own = interpreter.input.target_address();
    let is_delegate = KIND == op::DELEGATECALL;
    CallInputs {
        input: CallInput::SharedBuffer(request.input.shared_range(interpreter.memory.local_memory_offset())),
        return_memory_offset: request.output.range(),
        gas_limit,
        bytecode_address: request.to,
        known_bytecode: (callee.code_hash, callee.code),
        target_address: if is_delegate || KIND == op::CALLCODE { own } else { request.to },
        caller: if is_delegate { interpreter.input.caller_address() } else { own },
        value: if is_delegate {
            CallValue::Apparent(interpreter.input.call_value())
        } else {
            CallValue::Transfer(request.value)
        },
        scheme: match KIND {
            op::CALL => CallScheme::Call,
            op::CALLCODE => CallScheme::CallCode,
            op::DELEGATECALL => CallScheme::DelegateCall,
            _ => CallScheme::StaticCall,
        },
        is_static: interpreter.runtime_flag.is_static() || KIND == op::STATICCALL,
        // This field and the next one are for EIP-8037, which Rootstock does not have.
        reservoir: interpreter.gas.reservoir(),
        charged_new_account_state_gas: false,
    }
}
