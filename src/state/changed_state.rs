//! A state with the changes of a simulation's calls in memory above it: they are not written to a trie.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, U256, keccak256};

use super::overrides::{AccountOverride, OverrideStorage};
use super::reader::{AccountState, StateError, StateReader};

/// A state of which parts may be missing, and the changes that runs and overrides have made to it.
#[derive(Clone)]
pub struct ChangedState<'a> {
    base: &'a dyn StateReader,
    accounts: BTreeMap<Address, ChangedParts>,
}

/// The parts of an account that were changed; a part that is `None` is read from the base.
#[derive(Clone, Default)]
struct ChangedParts {
    /// The account; `Some(None)` if it was deleted.
    account: Option<Option<AccountState>>,
    code: Option<Bytes>,
    is_contract: Option<bool>,
    /// Whether the whole storage was replaced: slots that are not in `slots` are empty, whatever the base has.
    replaced: bool,
    /// Values of the slots that were changed; no bytes if a slot was cleared.
    slots: BTreeMap<U256, Bytes>,
}

impl<'a> ChangedState<'a> {
    /// The state without changes.
    pub fn new(base: &'a dyn StateReader) -> Self {
        Self { base, accounts: BTreeMap::new() }
    }

    /// The changed parts of an account, to be changed further.
    fn parts(&mut self, address: Address) -> &mut ChangedParts {
        self.accounts.entry(address).or_default()
    }

    /// Sets nonce, balance, code hash and code length of an account.
    pub fn set_account(&mut self, address: Address, account: AccountState) {
        self.parts(address).account = Some(Some(account));
    }

    /// Sets the code of an account that exists.
    ///
    /// # Errors
    /// The account cannot be read.
    pub fn set_code(&mut self, address: Address, code: Bytes) -> Result<(), StateError> {
        let mut account = self.account(&address)?.unwrap_or(AccountState::EMPTY);
        account.code_hash = keccak256(&code);
        account.code_size = u32::try_from(code.len()).unwrap_or(u32::MAX);
        let parts = self.parts(address);
        parts.account = Some(Some(account));
        parts.code = Some(code);
        Ok(())
    }

    /// Makes an account a contract.
    pub fn set_contract(&mut self, address: Address) {
        self.parts(address).is_contract = Some(true);
    }

    /// Sets a slot; no bytes clear it.
    pub fn set_slot(&mut self, address: Address, slot: U256, bytes: Bytes) {
        self.parts(address).slots.insert(slot, bytes);
    }

    /// Deletes an account with its code and storage.
    pub fn remove(&mut self, address: Address) {
        let parts = ChangedParts {
            account: Some(None),
            code: Some(Bytes::new()),
            is_contract: Some(false),
            replaced: true,
            slots: BTreeMap::new(),
        };
        self.accounts.insert(address, parts);
    }

    /// Applies an override, as [`OverriddenState`](super::OverriddenState) does.
    ///
    /// # Errors
    /// The override changes only a part of the account, and the rest cannot be read.
    pub fn apply(&mut self, address: Address, over: &AccountOverride) -> Result<(), StateError> {
        // An override of all three parts needs no account below it, so a missing one need not be fetched.
        let complete = over.balance.is_some() && over.nonce.is_some() && over.code.is_some();
        let before = if complete { None } else { self.account(&address)? };
        let creates_contract = before.is_none() && !over.sets_account() && over.storage.sets_slot();
        let after = over.account(before);
        let parts = self.parts(address);
        if after != before || complete {
            parts.account = Some(after);
        }
        if creates_contract {
            parts.is_contract = Some(true);
        }
        if let Some(code) = &over.code {
            parts.code = Some(code.clone());
        }
        let slots = match &over.storage {
            OverrideStorage::Keep => return Ok(()),
            OverrideStorage::Patch(slots) => slots,
            OverrideStorage::Replace(slots) => {
                parts.slots.clear();
                parts.replaced = true;
                slots
            }
        };
        let bytes = |word: &U256| Bytes::from(word.to_be_bytes_trimmed_vec());
        parts.slots.extend(slots.iter().map(|(slot, word)| (*slot, bytes(word))));
        Ok(())
    }
}

impl StateReader for ChangedState<'_> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        match self.accounts.get(address).and_then(|parts| parts.account) {
            Some(account) => Ok(account),
            None => self.base.account(address),
        }
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        match self.accounts.get(address).and_then(|parts| parts.is_contract) {
            Some(is_contract) => Ok(is_contract),
            None => self.base.is_contract(address),
        }
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        let parts = self.accounts.get(address);
        if let Some(bytes) = parts.and_then(|parts| parts.slots.get(slot)) {
            return Ok(bytes.clone());
        }
        match parts.is_some_and(|parts| parts.replaced) {
            true => Ok(Bytes::new()),
            false => self.base.storage(address, slot),
        }
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        match self.accounts.get(address).and_then(|parts| parts.code.clone()) {
            Some(code) => Ok(code),
            None => self.base.code(address),
        }
    }
}
