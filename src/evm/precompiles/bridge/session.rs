//! One call of the Bridge: access to the cells, and the changed cells that are written when the call has succeeded.

use alloc::vec::Vec;

use alloy_primitives::{Address, Bytes, U256, keccak256};

use super::super::{Precompile, cell_slot};
use super::constants::Constants;
use super::{NativeCall, NativeFailure, NativeHost};
use crate::consensus::Rule;

/// The result of a method; `None` if the method returns nothing.
pub(super) type BridgeResult = Result<Option<Bytes>, NativeFailure>;

/// Cells that computing the price of a call changed, to be written if the call succeeds.
pub(super) type SavedCells = Vec<(U256, Bytes)>;

/// A running call.
pub(super) struct Bridge<'b> {
    pub(super) call: &'b NativeCall<'b>,
    pub(super) host: &'b mut dyn NativeHost,
    pub(super) constants: &'static Constants,
    /// Cells to be written when the method has succeeded; the reference node keeps them in caches. A call
    /// writes few cells, so a list is sufficient.
    pub(super) saved: SavedCells,
}

impl<'b> Bridge<'b> {
    /// Begins a call that has changed nothing yet.
    pub(super) fn new(call: &'b NativeCall<'b>, host: &'b mut dyn NativeHost) -> Self {
        let constants = Constants::of(call.chain_id);
        Self { call, host, constants, saved: SavedCells::new() }
    }

    /// Whether a rule is active in the block of the call.
    pub(super) fn has(&self, rule: Rule) -> bool {
        self.call.rules.has(rule)
    }

    /// The address of the Bridge.
    pub(super) fn own() -> Address {
        Precompile::Bridge.address()
    }

    /// Bytes of a cell, including changes of this call.
    pub(super) fn read(&mut self, slot: U256) -> Bytes {
        match self.saved.iter().find(|(saved, _)| *saved == slot) {
            Some((_, bytes)) => bytes.clone(),
            None => self.stored(slot),
        }
    }

    /// Bytes of a cell, without the changes that this call has not written yet.
    pub(super) fn stored(&mut self, slot: U256) -> Bytes {
        self.host.cell(Self::own(), slot)
    }

    /// Bytes of the cell whose slot is this name in ASCII, right-aligned.
    pub(super) fn named(&mut self, name: &str) -> Bytes {
        self.read(cell_slot(name))
    }

    /// Bytes of the cell whose slot is the hash of this name.
    pub(super) fn hashed(&mut self, name: &str) -> Bytes {
        self.read(hashed_slot(name))
    }

    /// Sets a cell, which is written at the end; empty bytes remove it.
    pub(super) fn save(&mut self, slot: U256, bytes: impl Into<Bytes>) {
        let bytes = bytes.into();
        match self.saved.iter_mut().find(|(saved, _)| *saved == slot) {
            Some((_, old)) => *old = bytes,
            None => self.saved.push((slot, bytes)),
        }
    }

    /// Sets the cell of [`Self::named`], which is written at the end.
    pub(super) fn save_named(&mut self, name: &str, bytes: impl Into<Bytes>) {
        self.save(cell_slot(name), bytes);
    }

    /// Writes a cell at once, so that the change stays even if the method fails.
    pub(super) fn write_now(&mut self, slot: U256, bytes: impl Into<Bytes>) {
        self.host.set_cell(Self::own(), slot, bytes.into());
    }

    /// Writes the cells that the call has changed.
    pub(super) fn write_saved(self) {
        for (slot, bytes) in self.saved {
            self.host.set_cell(Self::own(), slot, bytes);
        }
    }
}

/// The slot that is the Keccak-256 hash of a name.
pub(super) fn hashed_slot(name: &str) -> U256 {
    keccak256(name.as_bytes()).into()
}
