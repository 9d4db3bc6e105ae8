//! The state that a transaction reads and changes, before and after it.

use alloc::collections::{BTreeMap, BTreeSet};

use alloy_primitives::{Address, Bytes, U256};

use super::TraceBudget;
use crate::evm::AccountValues;
use crate::state::{AccessKey, World};

/// Bytes of an account in JSON as an estimate, without code and cells.
const ACCOUNT_BYTES: usize = 300;
/// Bytes of a cell in JSON as an estimate, without its words before and after.
const CELL_BYTES: usize = 140;

/// The values that a transaction reads or changes, by account.
pub type StateTrace = BTreeMap<Address, UsedAccount>;

/// An account before and after a transaction that reads or changes it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsedAccount {
    /// The account before the transaction; `None` if it did not exist.
    pub before: Option<AccountValues>,
    /// The account after the transaction; `None` if it does not exist.
    pub after: Option<AccountValues>,
    /// Bytes of each used cell before and after, without leading zeros; those of native contracts can be longer than
    /// a word.
    pub cells: BTreeMap<U256, (Bytes, Bytes)>,
}

impl UsedAccount {
    /// Bytes that the account takes in JSON, as an estimate. Code that has not changed counts once.
    pub(super) fn weight(&self) -> usize {
        let code = |values: &Option<AccountValues>| {
            values.as_ref().map_or(Bytes::new(), |values| values.code.clone())
        };
        let (before, after) = (code(&self.before), code(&self.after));
        let new_code = if before == after { 0 } else { after.len() };
        let cells = self.cells.values().fold(0_usize, |sum, (before, after)| {
            sum.saturating_add(CELL_BYTES).saturating_add(before.len().max(after.len()).saturating_mul(4))
        });
        ACCOUNT_BYTES
            .saturating_add(before.len().saturating_add(new_code).saturating_mul(2))
            .saturating_add(cells)
    }
}

/// Compares the state before and after a transaction at the keys that it used.
pub(super) fn between(
    before: &mut World,
    after: &mut World,
    keys: &BTreeSet<AccessKey>,
    budget: &mut TraceBudget,
) -> StateTrace {
    let mut trace = StateTrace::new();
    for key in keys {
        let (AccessKey::Account(address) | AccessKey::Cell(address, _)) = *key;
        let account = trace.entry(address).or_insert_with(|| UsedAccount {
            before: values(before, &address),
            after: values(after, &address),
            cells: BTreeMap::new(),
        });
        if let AccessKey::Cell(_, slot) = key {
            account.cells.insert(*slot, (before.cell(&address, slot), after.cell(&address, slot)));
        }
    }
    trace.retain(|_, account| budget.take(account.weight()));
    trace
}

/// The nonce, balance and code of an account; `None` if it does not exist.
fn values(world: &mut World, address: &Address) -> Option<AccountValues> {
    let account = world.account(address)?;
    Some(AccountValues { nonce: account.nonce, balance: account.balance, code: world.code_of(address) })
}
