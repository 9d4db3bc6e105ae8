//! Dumps of the head's state: complete accounts, which methods write out (`anvil_dumpState`) and put into another chain.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, U256};

use super::chain::DevChain;
use super::error::DevError;
use super::limits::MAX_DUMP;
use crate::evm::precompiles::Precompile;
use crate::state::keys::{ACCOUNT_KEY_LEN, fact_of};
use crate::state::{Account, StateKey, World};

/// An account with its code and storage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DumpedAccount {
    /// The nonce of the account's next transaction.
    pub nonce: u64,
    /// The balance in wei; 0 if it is negative.
    pub balance: U256,
    /// The code; empty if the account has none.
    pub code: Bytes,
    /// Whether the account is a contract: it has or had storage or code.
    pub contract: bool,
    /// Storage cells by slot, as the trie stores them: words without leading zeros, and values of native contracts of any length.
    pub cells: BTreeMap<U256, Bytes>,
}

impl DevChain {
    /// The accounts of the head's state. Of a fork, only the accounts and cells that were changed since it began, without cells
    /// that were cleared.
    ///
    /// # Errors
    /// [`DevError::TooLarge`] above [`MAX_DUMP`].
    pub fn dump(&self) -> Result<BTreeMap<Address, DumpedAccount>, DevError> {
        let state = self.view().head_state();
        let (mut accounts, mut size) = (BTreeMap::<Address, DumpedAccount>::new(), 0_usize);
        let whole = state.for_each_below(&[], usize::MAX, &mut |key, value| {
            size = size.saturating_add(key.len()).saturating_add(value.len());
            // The key above all cells of a contract, one byte longer than the account's, marks the account as a contract.
            let is_marker = key.len() == ACCOUNT_KEY_LEN.saturating_add(1);
            match fact_of(key) {
                Some(StateKey::Storage(address, _)) if is_marker => {
                    accounts.entry(address).or_default().contract = true;
                }
                Some(StateKey::Storage(address, slot)) => {
                    accounts.entry(address).or_default().cells.insert(slot, value.clone());
                }
                Some(StateKey::Account(address) | StateKey::Code(address)) => {
                    accounts.entry(address).or_default();
                }
                // The account that sends REMASC's transactions, whose key `fact_of` does not know. It counts the blocks of this chain,
                // so it is not part of a dump.
                _ => {}
            }
            size <= MAX_DUMP
        });
        if !whole {
            return Err(DevError::TooLarge);
        }
        let mut world = World::new(state);
        for (address, dumped) in &mut accounts {
            let Account { nonce, balance, .. } = world.account(address).unwrap_or_default();
            (dumped.nonce, dumped.balance, dumped.code) = (nonce, balance, world.code_of(address));
            dumped.contract |= world.marker(address);
        }
        Ok(accounts)
    }

    /// Puts accounts into the head's state: each gets this nonce, balance and code, and these cells. Its other cells stay.
    ///
    /// # Errors
    /// [`DevError::Native`] for code at the address of a native contract. Nothing is changed then.
    pub fn load(&mut self, accounts: &BTreeMap<Address, DumpedAccount>) -> Result<(), DevError> {
        let rules = self.view().network().rules(self.view().head().number.saturating_add(1));
        let native = |(address, dumped): &(&Address, &DumpedAccount)| {
            !dumped.code.is_empty() && Precompile::at(address, rules).is_some()
        };
        if let Some((address, _)) = accounts.iter().find(native) {
            return Err(DevError::Native(*address));
        }
        self.edit(|world| accounts.iter().for_each(|(address, dumped)| put(world, address, dumped)));
        self.settle_all();
        Ok(())
    }
}

/// Writes one account of a dump into a state.
fn put(world: &mut World, address: &Address, dumped: &DumpedAccount) {
    let DumpedAccount { nonce, balance, code, contract, cells } = dumped;
    let account = world.account(address).unwrap_or_default();
    world.set_account(address, Account { nonce: *nonce, balance: *balance, debt: U256::ZERO, ..account });
    let has_code = !code.is_empty();
    if (*contract || has_code || !cells.is_empty()) && !world.marker(address) {
        world.set_marker(address);
    }
    if has_code || !world.code_of(address).is_empty() {
        world.set_code(address, code.clone());
    }
    cells.iter().for_each(|(slot, value)| world.set_cell(address, slot, value.clone()));
}
