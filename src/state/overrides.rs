//! State overrides of `eth_call`: balances, nonces, code and storage that a caller sets for one call. [`OverriddenState`] shows the state
//! with them.

use alloc::collections::BTreeMap;

use alloy_primitives::{Address, Bytes, U256, keccak256};

use super::reader::{AccountState, StateError, StateReader};

/// Overrides by account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateOverride {
    /// The override of each account.
    pub accounts: BTreeMap<Address, AccountOverride>,
}

/// The override of one account. Fields that are `None` keep the value of the state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountOverride {
    /// Balance in wei.
    pub balance: Option<U256>,
    /// Nonce.
    pub nonce: Option<u64>,
    /// Code.
    pub code: Option<Bytes>,
    /// Storage.
    pub storage: OverrideStorage,
}

/// Storage of an overridden account.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OverrideStorage {
    /// The storage of the state, unchanged.
    #[default]
    Keep,
    /// Slots that replace those of the state; all others are unchanged (`stateDiff`).
    Patch(BTreeMap<U256, U256>),
    /// The only slots of the account; all others are zero (`state`).
    Replace(BTreeMap<U256, U256>),
}

impl OverrideStorage {
    /// Whether the override sets a slot.
    pub(super) fn sets_slot(&self) -> bool {
        match self {
            Self::Keep => false,
            Self::Patch(slots) | Self::Replace(slots) => !slots.is_empty(),
        }
    }
}

impl AccountOverride {
    /// Whether the override sets balance, nonce or code. Each of them makes a missing account exist.
    pub(super) fn sets_account(&self) -> bool {
        self.balance.is_some() || self.nonce.is_some() || self.code.is_some()
    }

    /// The account `base` of the state with the override applied; `None` if it does not exist with the override either.
    pub(super) fn account(&self, base: Option<AccountState>) -> Option<AccountState> {
        if base.is_none() && !self.sets_account() && !self.storage.sets_slot() {
            return None;
        }
        let mut account = base.unwrap_or(AccountState::EMPTY);
        account.balance = self.balance.unwrap_or(account.balance);
        account.nonce = self.nonce.unwrap_or(account.nonce);
        if let Some(code) = &self.code {
            account.code_hash = keccak256(code);
            account.code_size = u32::try_from(code.len()).unwrap_or(u32::MAX);
        }
        Some(account)
    }
}

/// A state with overrides applied.
pub struct OverriddenState<'a> {
    base: &'a dyn StateReader,
    overrides: &'a StateOverride,
}

impl<'a> OverriddenState<'a> {
    /// Applies `overrides` to `base`.
    pub fn new(base: &'a dyn StateReader, overrides: &'a StateOverride) -> Self {
        Self { base, overrides }
    }

    /// The override of an account, if it has one.
    fn override_of(&self, address: &Address) -> Option<&'a AccountOverride> {
        self.overrides.accounts.get(address)
    }
}

impl StateReader for OverriddenState<'_> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        let Some(over) = self.override_of(address) else { return self.base.account(address) };
        // An override of all three parts needs no account below it, so a missing one need not be fetched.
        let complete = over.balance.is_some() && over.nonce.is_some() && over.code.is_some();
        let base = if complete { None } else { self.base.account(address)? };
        Ok(over.account(base))
    }

    /// An override of code does not make a plain account a contract. A missing account becomes a contract
    /// only if the override sets nothing but storage.
    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        let may_create =
            self.override_of(address).is_some_and(|over| !over.sets_account() && over.storage.sets_slot());
        if may_create && self.base.account(address)?.is_none() {
            return Ok(true);
        }
        self.base.is_contract(address)
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        let word = match self.override_of(address).map(|over| &over.storage) {
            None | Some(OverrideStorage::Keep) => None,
            Some(OverrideStorage::Patch(slots)) => slots.get(slot).copied(),
            Some(OverrideStorage::Replace(slots)) => Some(slots.get(slot).copied().unwrap_or_default()),
        };
        match word {
            Some(word) => Ok(word.to_be_bytes_trimmed_vec().into()),
            None => self.base.storage(address, slot),
        }
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        match self.override_of(address).and_then(|over| over.code.clone()) {
            Some(code) => Ok(code),
            None => self.base.code(address),
        }
    }
}
