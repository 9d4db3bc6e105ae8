//! Creations at the addresses of contracts that the same block destroyed, which RSKIP-125 forbids. The frame loop calls this file before
//! it opens a frame.

use alloy_primitives::Bytes;
use revm::context_interface::JournalTr as _;
use revm::context_interface::journaled_state::account::JournaledAccountTr as _;
use revm::handler::FrameResult;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::{CreateOutcome, Gas, InstructionResult, InterpreterResult};

use super::context::EvmDatabase;
use super::database::EvmState;
use super::machine::Machine;
use super::touches::Touch;
use crate::consensus::Rule;

impl<S: EvmState> Machine<'_, S> {
    /// Refuses to create a contract at the address of one that an earlier transaction of the block destroyed
    /// (RSKIP-125), if a contract is the creator. Returns the result of the refused creation: it uses up all its gas, and the creator's
    /// nonce is incremented. Returns `None` if the creation may go on.
    pub(super) fn refuse_destroyed(&mut self, init: &FrameInit) -> Option<FrameResult> {
        let FrameInput::Create(inputs) = &init.frame_input else { return None };
        let journal = &mut self.evm.ctx.journaled_state;
        let Ok(creator) = journal.load_account(inputs.caller());
        let nonce = creator.data.info.nonce;
        let address = inputs.created_address(nonce);
        journal.database.touch(Touch::CreationAddress(address));
        let applies = self.evm.ctx.chain.rules.has(Rule::Rskip125) && init.depth > 0;
        if !applies || !journal.database.destroyed_before()?.contains(&address) {
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
