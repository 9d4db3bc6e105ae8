//! The changes of a transaction's run, taken from `revm`'s journal when the run has ended.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256};

use super::context::NativeCallRecord;
use super::database::EvmState;
use super::machine::Machine;

/// The changes of a transaction's run, to be applied to the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateChanges {
    /// Accounts that exist after the run, whether or not any of their values changed.
    pub accounts: Vec<ChangedAccount>,
    /// Contracts to delete with their code and storage.
    pub destroyed: Vec<Address>,
}

/// An account after the run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedAccount {
    /// The address of the account.
    pub address: Address,
    /// The nonce.
    pub nonce: u64,
    /// The balance in wei, from which the account's debt (a balance below zero in the state) is still to be subtracted.
    pub balance: U256,
    /// Code of a contract that the run created; empty if its constructor returned none. `None` for all other
    /// accounts.
    pub created: Option<Bytes>,
    /// Changed storage words by slot; a zero word removes the cell.
    pub words: Vec<(U256, U256)>,
}

impl<S: EvmState> Machine<'_, S> {
    /// Native contracts that contracts called, including calls in reverted frames.
    pub fn natives_called(&self) -> &[NativeCallRecord] {
        &self.evm.ctx.chain.natives
    }

    /// The accounts that the run has read or changed, each with the slots that it has read or changed; sorted.
    pub fn used(&self) -> Vec<(Address, Vec<U256>)> {
        let accounts = &self.evm.ctx.journaled_state.inner.state;
        let mut used: Vec<(Address, Vec<U256>)> = accounts
            .iter()
            .map(|(address, account)| (*address, account.storage.keys().copied().collect()))
            .collect();
        used.sort_unstable_by_key(|(address, _)| *address);
        used
    }

    /// Returns the changes, sorted by address, and the state below the run.
    pub fn into_changes(self) -> (StateChanges, S) {
        let journal = self.evm.ctx.journaled_state;
        let mut changes = StateChanges::default();
        for (address, account) in journal.inner.state {
            if account.is_selfdestructed() {
                changes.destroyed.push(address);
                continue;
            }
            if !account.is_touched() {
                continue;
            }
            let created = account.is_created().then(|| {
                let code = account.info.code.as_ref();
                code.map(|code| code.original_bytes()).unwrap_or_default()
            });
            let words = account.storage.iter().filter(|(_, word)| word.is_changed());
            changes.accounts.push(ChangedAccount {
                address,
                nonce: account.info.nonce,
                balance: account.info.balance,
                created,
                words: words.map(|(slot, word)| (*slot, word.present_value)).collect(),
            });
        }
        changes.accounts.sort_unstable_by_key(|account| account.address);
        changes.destroyed.sort_unstable();
        (changes, journal.database.0)
    }
}
