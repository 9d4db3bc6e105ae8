//! Accounts of the head's state as a whole, to be written out and to be put into another chain.

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
    /// The number of its transactions.
    pub nonce: u64,
    /// In wei.
    pub balance: U256,
    /// Empty if it has none.
    pub code: Bytes,
    /// Whether it is a contract: it has storage or code, or had one.
    pub contract: bool,
    /// Cells by slot, as they are stored: words without leading zeros, and values of native contracts with any bytes.
    pub cells: BTreeMap<U256, Bytes>,
}

impl DevChain {
    /// The accounts of the head's state. Of a chain that begins on another network, those that were changed since, without
    /// cells that were cleared.
    ///
    /// # Errors
    /// [`DevError::TooLarge`] above [`MAX_DUMP`].
    pub fn dump(&self) -> Result<BTreeMap<Address, DumpedAccount>, DevError> {
        let state = self.view().head_state();
        let (mut accounts, mut size) = (BTreeMap::<Address, DumpedAccount>::new(), 0_usize);
        let whole = state.for_each_below(&[], usize::MAX, &mut |key, value| {
            size = size.saturating_add(key.len()).saturating_add(value.len());
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
                // The account that counts REMASC's transactions belongs to the blocks.
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

    /// Puts accounts into the head's state: each gets this nonce, balance and code, and these cells beside its others.
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
