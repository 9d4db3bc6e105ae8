//! A run of a local call or a transaction: the outermost frame, which this file opens, and its result. `frame.rs` runs the frames.

use alloc::boxed::Box;
use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, KECCAK256_EMPTY, Log, U256, keccak256};
use revm::context_interface::{CreateScheme, JournalTr as _, LocalContextTr as _};
use revm::handler::FrameResult;
use revm::interpreter::interpreter_action::{FrameInit, FrameInput};
use revm::interpreter::{
    CallInput, CallInputs, CallScheme, CallValue, CreateInputs, InstructionResult, SharedMemory,
};

use super::context::Abort;
use super::database::EvmState;
use super::frame::ImmediateResult;
use super::gas::SELFDESTRUCT_REFUND;
use super::halt::HaltReason;
use super::machine::Machine;
use crate::consensus::Rule;

/// The outermost frame of a run.
pub struct FirstFrame {
    /// Sender. `None` is the null sender of the reference node, which is not an account.
    pub from: Option<Address>,
    /// Callee, or `None` for a creation.
    pub to: Option<Address>,
    /// Value in wei. If the sender of a local call has less, its balance becomes negative in the reference node; here it counts as
    /// overdrawn ([`RunContext::overdrawn`](super::RunContext::overdrawn)).
    pub value: U256,
    /// Call data, or initialisation code.
    pub data: Bytes,
    /// Gas after the intrinsic price.
    pub gas: u64,
}

/// The result of the outermost frame.
#[derive(Debug)]
pub struct FrameEnd {
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on an exceptional halt.
    pub failure: Option<Option<HaltReason>>,
    /// Return data, revert data, or the code of the new contract.
    pub output: Bytes,
    /// Gas left; 0 after a halt.
    pub gas_left: u64,
    /// Refund before its cap; 0 after a failure.
    pub refund: u64,
    /// Logs in order; empty after a failure.
    pub logs: Vec<Log>,
}

impl<S: EvmState> Machine<'_, S> {
    /// Runs a local call to the end of the outermost frame. The sender is not checked and not changed.
    pub fn run(&mut self, first: FirstFrame) -> Result<FrameEnd, Abort> {
        self.fund(&first);
        let (from, to) = (first.from, first.to);
        let frame_input = match to {
            Some(to) => self.first_call(first, to),
            None => self.first_creation(first)?,
        };
        self.run_first(frame_input, from, to)
    }

    /// Runs a transaction whose sender has paid: its nonce has been incremented and it has the value.
    pub fn run_transaction(&mut self, first: FirstFrame) -> Result<FrameEnd, Abort> {
        let (from, to) = (first.from, first.to);
        // The value transfer requires that the sender's account is loaded.
        let Ok(_) = self.evm.ctx.journaled_state.load_account(from.unwrap_or(Address::ZERO));
        let frame_input = match to {
            Some(to) => self.first_call(first, to),
            None => self.transaction_creation(first),
        };
        self.run_first(frame_input, from, to)
    }

    /// Opens the outermost frame and runs all frames.
    fn run_first(
        &mut self,
        frame_input: FrameInput,
        from: Option<Address>,
        to: Option<Address>,
    ) -> Result<FrameEnd, Abort> {
        let mut memory = SharedMemory::new_with_buffer(self.evm.ctx.local.shared_memory_buffer().clone());
        // The limit is on the memory of all frames together. The reference node limits each frame, but gas
        // runs out long before either limit.
        memory.set_memory_limit(super::inline_run::max_memory(self.evm.ctx.chain.is_inline));
        let result = match self.open(FrameInit { depth: 0, memory, frame_input })? {
            Some(ImmediateResult { result, .. }) => {
                self.report_frame_end(&result);
                result
            }
            None => {
                self.restore_sender(from, to);
                self.run_frames()?
            }
        };
        Ok(self.end(result))
    }

    /// Makes sure that the value can be transferred, because a local call does not check the balance. The
    /// null sender is given the value; a real sender that has less is marked as overdrawn.
    fn fund(&mut self, first: &FirstFrame) {
        if first.value.is_zero() && first.to.is_some() {
            return;
        }
        let journal = &mut self.evm.ctx.journaled_state;
        let address = first.from.unwrap_or(Address::ZERO);
        let Ok(loaded) = journal.load_account(address);
        let balance = loaded.data.info.balance;
        let funded =
            if first.from.is_none() { balance.saturating_add(first.value) } else { balance.max(first.value) };
        if first.from.is_some() && funded != balance {
            self.evm.ctx.chain.overdrawn = first.from;
        }
        if let Some(account) = journal.state.get_mut(&address) {
            account.info.balance = funded;
        }
    }

    /// The outermost frame of a call of an account.
    fn first_call(&mut self, first: FirstFrame, to: Address) -> FrameInput {
        let Ok(loaded) = self.evm.ctx.journaled_state.load_account_with_code(to);
        let info = &loaded.data.info;
        FrameInput::Call(Box::new(CallInputs {
            input: CallInput::Bytes(first.data),
            return_memory_offset: 0..0,
            gas_limit: first.gas,
            bytecode_address: to,
            known_bytecode: (info.code_hash, info.code.clone().unwrap_or_default()),
            target_address: to,
            caller: first.from.unwrap_or(Address::ZERO),
            value: CallValue::Transfer(first.value),
            scheme: CallScheme::Call,
            is_static: false,
            // This field and the next one are for EIP-8037, which Rootstock does not have.
            reservoir: 0,
            charged_new_account_state_gas: false,
        }))
    }

    /// The outermost frame of a local call that creates a contract. The reference node does not check whether the address is taken, and
    /// takes over the account there. Only an overridden nonce leads to such an address; the run is then
    /// aborted.
    fn first_creation(&mut self, first: FirstFrame) -> Result<FrameInput, Abort> {
        let journal = &mut self.evm.ctx.journaled_state;
        let address = match first.from {
            None => null_sender_contract(),
            Some(from) => {
                let Ok(sender) = journal.load_account(from);
                from.create(sender.data.info.nonce)
            }
        };
        let Ok(taken) = journal.load_account(address);
        if taken.data.info.nonce != 0 || taken.data.info.code_hash != KECCAK256_EMPTY {
            return Err(Abort::TakenAddress(address));
        }
        let caller = first.from.unwrap_or(Address::ZERO);
        let scheme = CreateScheme::Custom { address };
        let inputs = CreateInputs::new(caller, scheme, first.value, first.data, first.gas, 0);
        Ok(FrameInput::Create(Box::new(inputs)))
    }

    /// The outermost frame of a transaction that creates a contract. The creation takes over the account at its address; before
    /// RSKIP-174 the account also lost its balance. The address is computed from the sender's nonce before the transaction incremented
    /// it.
    fn transaction_creation(&mut self, first: FirstFrame) -> FrameInput {
        let keeps_balance = self.evm.ctx.chain.rules.has(Rule::Rskip174);
        let journal = &mut self.evm.ctx.journaled_state;
        let from = first.from.unwrap_or(Address::ZERO);
        let Ok(sender) = journal.load_account(from);
        let address = from.create(sender.data.info.nonce.saturating_sub(1));
        let Ok(_) = journal.load_account(address);
        if let Some(taken) = journal.state.get_mut(&address) {
            taken.info.nonce = 0;
            taken.info.code_hash = KECCAK256_EMPTY;
            taken.info.code = None;
            if !keeps_balance {
                taken.info.balance = U256::ZERO;
            }
        }
        let scheme = CreateScheme::Custom { address };
        let inputs = CreateInputs::new(from, scheme, first.value, first.data, first.gas, 0);
        FrameInput::Create(Box::new(inputs))
    }

    /// Undoes the changes that `revm` makes to the sender when it opens the outermost frame. `revm` increments the nonce for a creation: a
    /// local call does not change it, and a transaction has incremented it before. The null sender of a local call does not become an
    /// account, unless account 0 is the callee.
    fn restore_sender(&mut self, from: Option<Address>, to: Option<Address>) {
        let caller = from.unwrap_or(Address::ZERO);
        let Some(account) = self.evm.ctx.journaled_state.state.get_mut(&caller) else { return };
        if to.is_none() {
            account.info.nonce = account.info.nonce.saturating_sub(1);
        }
        match (from, to) {
            (Some(_), _) => {}
            (None, Some(Address::ZERO)) => account.mark_touch(),
            (None, _) => account.unmark_touch(),
        }
    }

    /// Refund for destroyed contracts. Each contract counts once, also if it was destroyed in its constructor.
    fn destruction_refund(&self) -> u64 {
        let accounts = self.evm.ctx.journaled_state.state.values();
        let destroyed = accounts.filter(|account| account.is_selfdestructed()).count() as u64;
        destroyed.saturating_mul(SELFDESTRUCT_REFUND)
    }

    /// The result of the outermost frame.
    fn end(&mut self, result: FrameResult) -> FrameEnd {
        let result = result.into_interpreter_result();
        let logs = self.evm.ctx.journaled_state.take_logs();
        if result.result.is_ok() {
            let cleared = u64::try_from(result.gas.refunded()).unwrap_or(0);
            let refund = cleared.saturating_add(self.destruction_refund());
            let gas_left = result.gas.remaining();
            return FrameEnd { failure: None, output: result.output, gas_left, refund, logs };
        }
        let reverted = result.result == InstructionResult::Revert;
        FrameEnd {
            failure: Some((!reverted).then(|| HaltReason::from_result(result.result))),
            output: if reverted { result.output } else { Bytes::new() },
            gas_left: if reverted { result.gas.remaining() } else { 0 },
            refund: 0,
            logs: Vec::new(),
        }
    }
}

/// Address of a contract created by the null sender, whose address is empty and whose nonce is 0.
fn null_sender_contract() -> Address {
    // The RLP list of two empty strings.
    Address::from_word(keccak256([0xc2, 0x80, 0x80]))
}
