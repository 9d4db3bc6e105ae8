//! Report of the accounts that a local call uses, for tracers such as `prestateTracer`; taken from `revm`'s journal when the run has ended.
//! `simulation.rs` reports those of simulated transactions.

use alloy_primitives::{Bytes, KECCAK256_EMPTY};
use revm::Database as _;
use revm::state::AccountInfo;

use super::context::EvmContext;
use super::database::EvmState;
use super::inspect::AccountValues;
use super::machine::Machine;

impl<S: EvmState> Machine<'_, S> {
    /// Reports the accounts that a local call has read or changed, if the inspector wants them.
    pub fn report_accounts(&mut self) {
        let EvmContext { journaled_state: journal, chain, .. } = &mut self.evm.ctx;
        let Some(inspector) = chain.inspector.as_deref_mut().filter(|inspector| inspector.wants_accounts())
        else {
            return;
        };
        for (address, account) in &journal.inner.state {
            let existed = !account.is_loaded_as_not_existing();
            let exists = !account.is_selfdestructed() && (existed || account.is_touched());
            let mut values = |info: &AccountInfo| {
                let code = match &info.code {
                    Some(code) => code.original_bytes(),
                    None if info.code_hash == KECCAK256_EMPTY => Bytes::new(),
                    None => match journal.database.code_by_hash(info.code_hash) {
                        Ok(code) => code.original_bytes(),
                        Err(never) => match never {},
                    },
                };
                AccountValues { nonce: info.nonce, balance: info.balance, code }
            };
            let before = existed.then(|| values(&account.original_info()));
            let after = exists.then(|| values(&account.info));
            let words = &mut account.storage.iter();
            let mut words = words.map(|(slot, word)| (*slot, word.original_value, word.present_value));
            inspector.account(*address, before, after, &mut words);
        }
    }
}
