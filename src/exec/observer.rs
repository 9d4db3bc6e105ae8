//! Watching the execution of a block.

use alloy_primitives::{Address, U256};

use crate::evm::{HaltReason, Inspector};
use crate::state::Access;
use crate::types::{Receipt, Transaction};

/// Someone who watches a block being executed. Every method does nothing unless written otherwise.
pub trait BlockObserver {
    /// The transaction at this index is about to run: who watches its frames, if anybody.
    fn inspector(&mut self, _index: usize) -> Option<&mut dyn Inspector> {
        None
    }

    /// Whether [`Self::accessed`] should be told; remembering keys costs time.
    fn watches_access(&self) -> bool {
        false
    }

    /// Up to and including the transaction at this index, and since the last report, these keys of the state were
    /// looked at or changed, also in frames that were rolled back. A parallel list reports once, at its last transaction.
    fn accessed(&mut self, _index: usize, _access: &Access) {}

    /// REMASC, inside the transaction that just started, pays this much (wei) to an account.
    fn remasc_payment(&mut self, _to: Address, _value: U256) {}

    /// The transaction at this index has run. A transaction that runs no code (a transfer, a call
    /// straight to a native contract, REMASC's own) may have reported no frame at all.
    fn executed(&mut self, _index: usize, _executed: &Executed<'_>) {}
}

/// A transaction that has run.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The transaction.
    pub transaction: &'a Transaction,
    /// Its sender; the zero address for REMASC's.
    pub sender: Address,
    /// Its receipt.
    pub receipt: &'a Receipt,
    /// What it returned: return data, revert data, or the new contract's code.
    pub output: &'a [u8],
    /// How it failed: `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on a halt.
    pub failure: Option<Option<HaltReason>>,
}

/// Nobody watches.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl BlockObserver for NoObserver {}
