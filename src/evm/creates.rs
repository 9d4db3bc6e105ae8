//! CREATE and CREATE2. Unlike in Ethereum, the constructor gets all remaining gas, and `frame.rs` has the rules about the new contract.

use alloc::boxed::Box;

use alloy_primitives::{Bytes, U256};
use revm::context_interface::CreateScheme;
use revm::interpreter::interpreter_action::FrameInput;
use revm::interpreter::interpreter_types::{InputsTr as _, LoopControl as _, RuntimeFlag as _};
use revm::interpreter::{CreateInputs, InstructionResult, InterpreterAction};

use super::accounts::balance_of;
use super::context::{EvmDatabase, OpcodeContext, OpcodeResult, charge, pop, push};
use super::gas::MAX_INIT_CODE;
use super::touches::Touch;
use crate::consensus::Rule;

/// CREATE, or CREATE2 (RSKIP-125) if `TWO`.
pub(super) fn create<const TWO: bool, DB: EvmDatabase>(
    mut context: OpcodeContext<'_, '_, DB>,
) -> OpcodeResult {
    if context.interpreter.runtime_flag.is_static() {
        return Err(InstructionResult::StateChangeDuringStaticCall);
    }
    let [value, offset, len] = pop(context.interpreter)?;
    let scheme = if TWO {
        let [salt] = pop(context.interpreter)?;
        CreateScheme::Create2 { salt }
    } else {
        CreateScheme::Create
    };
    let len = usize::try_from(len).map_err(|_| InstructionResult::InvalidOperandOOG)?;
    let rules = context.host.chain.rules;
    if rules.has(Rule::Rskip438) && len > MAX_INIT_CODE {
        return Err(InstructionResult::CreateInitCodeSizeLimit);
    }
    let params = &context.host.cfg.gas_params;
    let price = if TWO { params.create2_cost(len) } else { params.create_cost() };
    charge(context.interpreter, price.saturating_add(params.initcode_cost(len)))?;
    let init_code = read_memory(&mut context, offset, len)?;

    let own = context.interpreter.input.target_address();
    let too_deep = context.interpreter.input.depth() >= context.host.chain.max_depth();
    if too_deep || (!value.is_zero() && balance_of(context.host, own)? < value) {
        // No frame is opened. Besides the price, no gas is charged; nonce and return buffer stay unchanged.
        return push(context.interpreter, U256::ZERO);
    }
    context.host.journaled_state.database.touch(Touch::Creator(own));
    let gas = context.interpreter.gas.remaining();
    charge(context.interpreter, gas)?;
    let reservoir = context.interpreter.gas.reservoir();
    let inputs = CreateInputs::new(own, scheme, value, init_code, gas, reservoir);
    let action = InterpreterAction::NewFrame(FrameInput::Create(Box::new(inputs)));
    context.interpreter.bytecode.set_action(action);
    Err(InstructionResult::Suspend)
}

/// Grows memory to the range, which costs gas, and reads it.
fn read_memory<DB: EvmDatabase>(
    context: &mut OpcodeContext<'_, '_, DB>,
    offset: U256,
    len: usize,
) -> OpcodeResult<Bytes> {
    if len == 0 {
        return Ok(Bytes::new());
    }
    let offset = usize::try_from(offset).map_err(|_| InstructionResult::InvalidOperandOOG)?;
    context.interpreter.resize_memory(&context.host.cfg.gas_params, offset, len)?;
    let code = context.interpreter.memory.slice_len(offset, len).to_vec();
    Ok(code.into())
}
