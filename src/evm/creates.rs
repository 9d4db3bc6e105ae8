//! CREATE and CREATE2.

use alloc::boxed::Box;

use alloy_primitives::{Bytes, U256};
use revm::context_interface::journaled_state::account::JournaledAccountTr as _;
use revm::context_interface::{CreateScheme, JournalTr as _};
use revm::handler::FrameResult;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::interpreter_types::{InputsTr as _, LoopControl as _, RuntimeFlag as _};
use revm::interpreter::{
    CreateInputs, CreateOutcome, Gas, InstructionResult, InterpreterAction, InterpreterResult,
};

use super::accounts::balance_of;
use super::context::{charge, pop, push, EvmDatabase, Step, StepResult};
use super::database::EvmState;
use super::gas::MAX_INIT_CODE;
use super::machine::Machine;
use super::touches::Touch;
use crate::consensus::Rule;

/// CREATE, or CREATE2 (RSKIP-125). The constructor gets all remaining gas.
pub(super) fn create<const TWO: bool, DB: EvmDatabase>(mut step: Step<'_, '_, DB>) -> StepResult {
    if step.interpreter.runtime_flag.is_static() {
        return Err(InstructionResult::StateChangeDuringStaticCall);
    }
    let [value, offset, len] = pop(step.interpreter)?;
    let scheme = if TWO {
        let [salt] = pop(step.interpreter)?;
        CreateScheme::Create2 { salt }
    } else {
        CreateScheme::Create
    };
    let len = usize::try_from(len).map_err(|_| InstructionResult::InvalidOperandOOG)?;
    let rules = step.host.chain.rules;
    if rules.has(Rule::Rskip438) && len > MAX_INIT_CODE {
        return Err(InstructionResult::CreateInitCodeSizeLimit);
    }
    let params = &step.host.cfg.gas_params;
    let price = if TWO { params.create2_cost(len) } else { params.create_cost() };
    charge(step.interpreter, price.saturating_add(params.initcode_cost(len)))?;
    let init_code = read_memory(&mut step, offset, len)?;

    let own = step.interpreter.input.target_address();
    let too_deep = step.interpreter.input.depth() >= step.host.chain.max_depth();
    if too_deep || (!value.is_zero() && balance_of(step.host, own)? < value) {
        // No frame is opened. Gas, nonce and return buffer stay unchanged.
        return push(step.interpreter, U256::ZERO);
    }
    step.host.journaled_state.database.touch(Touch::Creator(own));
    let gas = step.interpreter.gas.remaining();
    charge(step.interpreter, gas)?;
    let reservoir = step.interpreter.gas.reservoir();
    let inputs = CreateInputs::new(own, scheme, value, init_code, gas, reservoir);
    let action = InterpreterAction::NewFrame(FrameInput::Create(Box::new(inputs)));
    step.interpreter.bytecode.set_action(action);
    Err(InstructionResult::Suspend)
}

impl<S: EvmState> Machine<'_, S> {
    /// Refuses to create a contract at the address of one that an earlier transaction of the block destroyed
    /// (RSKIP-125). The creation uses up all its gas, and the creator's nonce is incremented.
    pub(super) fn refuse_destroyed(&mut self, init: &FrameInit) -> Option<FrameResult> {
        let FrameInput::Create(inputs) = &init.frame_input else { return None };
        let journal = &mut self.evm.ctx.journaled_state;
        let Ok(creator) = journal.load_account(inputs.caller());
        let nonce = creator.data.info.nonce;
        let address = inputs.created_address(nonce);
        journal.database.touch(Touch::CreationAddress(address));
        let bound = self.evm.ctx.chain.rules.has(Rule::Rskip125) && init.depth > 0;
        if !bound || !journal.database.destroyed_before()?.contains(&address) {
            return None;
        }
        let Ok(mut creator) = journal.load_account_mut(inputs.caller());
        creator.data.set_nonce(nonce.saturating_add(1));
        let mut gas = Gas::new(inputs.gas_limit());
        gas.spend_all();
        let result = InterpreterResult::new(InstructionResult::CreateCollision, Bytes::new(), gas);
        Some(FrameResult::Create(CreateOutcome::new(result, None)))
    }
}

fn read_memory<DB: EvmDatabase>(step: &mut Step<'_, '_, DB>, offset: U256, len: usize) -> StepResult<Bytes> {
    if len == 0 {
        return Ok(Bytes::new());
    }
    let offset = usize::try_from(offset).map_err(|_| InstructionResult::InvalidOperandOOG)?;
    step.interpreter.resize_memory(&step.host.cfg.gas_params, offset, len)?;
    let code = step.interpreter.memory.slice_len(offset, len).to_vec();
    Ok(code.into())
}
