//! A state that records which keys were read: the keys that a witness must prove.

use alloc::collections::BTreeSet;
use core::cell::RefCell;

use alloy_primitives::{Address, Bytes, U256};

use super::reader::{AccountState, StateError, StateKey, StateReader};

/// Forwards reads to another state and records their keys.
pub struct RecordingState<'a> {
    base: &'a dyn StateReader,
    keys: RefCell<BTreeSet<StateKey>>,
}

impl<'a> RecordingState<'a> {
    /// Creates a reader with no keys recorded.
    pub fn new(base: &'a dyn StateReader) -> Self {
        Self { base, keys: RefCell::default() }
    }

    /// The keys that were read.
    pub fn into_keys(self) -> BTreeSet<StateKey> {
        self.keys.into_inner()
    }

    fn note(&self, key: StateKey) {
        self.keys.borrow_mut().insert(key);
    }
}

impl StateReader for RecordingState<'_> {
    fn account(&self, address: &Address) -> Result<Option<AccountState>, StateError> {
        self.note(StateKey::Account(*address));
        self.base.account(address)
    }

    fn is_contract(&self, address: &Address) -> Result<bool, StateError> {
        // The marker is on the path to every slot, so the proof of slot 0 includes it.
        self.note(StateKey::Storage(*address, U256::ZERO));
        self.base.is_contract(address)
    }

    fn storage(&self, address: &Address, slot: &U256) -> Result<Bytes, StateError> {
        self.note(StateKey::Storage(*address, *slot));
        self.base.storage(address, slot)
    }

    fn code(&self, address: &Address) -> Result<Bytes, StateError> {
        self.note(StateKey::Code(*address));
        self.base.code(address)
    }
}
