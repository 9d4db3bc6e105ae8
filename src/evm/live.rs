//! The state before the instruction that ran last, for inspectors.
//!
//! Tracers in JavaScript get an instruction with its cost, which is known only after it has run, and read the state before it. Of all
//! instructions, only SSTORE and SELFDESTRUCT change that part of the state while they run (calls change it later). The values that
//! such an instruction changes are read before, and shown instead of the new ones.

use alloy_primitives::{Address, Bytes, U256};
use revm::Database;
use revm::bytecode::opcode as op;
use revm::context::Journal;
use revm::interpreter::Interpreter;
use revm::interpreter::interpreter::EthInterpreter;
use revm::interpreter::interpreter_types::{InputsTr as _, Jumps as _};

use super::accounts::to_address;
use super::context::{EvmContext, EvmDatabase};
use super::inspect::LiveState;

/// An account with its nonce and balance; `None` for one that does not exist.
type AccountBefore = (Address, Option<(u64, U256)>);

/// The values that the next instruction changes, before it runs.
#[derive(Default)]
pub(super) struct ValuesBefore {
    /// Contract, slot and word of SSTORE.
    word: Option<(Address, U256, U256)>,
    /// The contract and the beneficiary of SELFDESTRUCT.
    accounts: [Option<AccountBefore>; 2],
}

impl ValuesBefore {
    /// Reads the values that the next instruction changes; `None` if the inspector does not read the state.
    pub(super) fn before<DB: EvmDatabase>(
        interpreter: &Interpreter<EthInterpreter>,
        context: &mut EvmContext<'_, DB>,
    ) -> Option<Self> {
        context.chain.inspector.as_deref().filter(|inspector| inspector.wants_state())?;
        let own = interpreter.input.target_address();
        let top = interpreter.stack.data().last().copied();
        let mut values_before = Self::default();
        let mut now = Self::default().state(&mut context.journaled_state);
        match (interpreter.bytecode.opcode(), top) {
            (op::SSTORE, Some(slot)) => values_before.word = Some((own, slot, now.word(own, slot))),
            (op::SELFDESTRUCT, Some(beneficiary)) => {
                values_before.accounts =
                    [own, to_address(beneficiary)].map(|address| Some((address, now.account(address))));
            }
            _ => {}
        }
        Some(values_before)
    }

    /// The state before the instruction: the present state with these values in it.
    pub(super) fn state<DB: EvmDatabase>(self, journal: &mut Journal<DB>) -> StateBefore<'_, DB> {
        StateBefore { journal, values_before: self }
    }
}

/// The state before an instruction. Reads load nothing into `revm`'s journal, so that they do not change the run.
pub(super) struct StateBefore<'j, DB: Database> {
    journal: &'j mut Journal<DB>,
    values_before: ValuesBefore,
}

impl<DB: EvmDatabase> LiveState for StateBefore<'_, DB> {
    fn account(&mut self, address: Address) -> Option<(u64, U256)> {
        if let Some((_, before)) =
            self.values_before.accounts.iter().flatten().find(|(own, _)| *own == address)
        {
            return *before;
        }
        if let Some(account) = self.journal.state.get(&address) {
            let exists = !account.is_loaded_as_not_existing_not_touched();
            return exists.then_some((account.info.nonce, account.info.balance));
        }
        let Ok(account) = self.journal.database.basic(address);
        account.map(|account| (account.nonce, account.balance))
    }

    fn code(&mut self, address: Address) -> Bytes {
        let loaded = self.journal.state.get(&address).map(|account| account.info.clone());
        let Ok(read) = match loaded {
            Some(info) => Ok(Some(info)),
            None => self.journal.database.basic(address),
        };
        let Some(info) = read.filter(|info| !info.is_empty_code_hash()) else { return Bytes::new() };
        let Ok(code) = match info.code {
            Some(code) => Ok(code),
            None => self.journal.database.code_by_hash(info.code_hash),
        };
        code.original_bytes()
    }

    fn word(&mut self, address: Address, slot: U256) -> U256 {
        if let Some((_, _, word)) =
            self.values_before.word.filter(|(own, at, _)| (*own, *at) == (address, slot))
        {
            return word;
        }
        if let Some(account) = self.journal.state.get(&address) {
            match account.storage.get(&slot) {
                Some(word) => return word.present_value,
                None if account.is_created() => return U256::ZERO,
                None => {}
            }
        }
        // As bytes, because reading a word counts as a touch of the run.
        U256::try_from_be_slice(&self.journal.database.cell(address, slot)).unwrap_or_default()
    }
}
