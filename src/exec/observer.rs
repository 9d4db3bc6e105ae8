//! Observation of the execution of a block.

use alloy_primitives::{Address, U256};

use crate::evm::{HaltReason, Inspector};
use crate::state::Access;
use crate::types::{Receipt, Transaction};

/// Observes the execution of a block. All methods do nothing by default.
pub trait BlockObserver {
    /// The transaction at this index is about to run. Returns the inspector of its frames, if any.
    fn inspector(&mut self, _index: usize) -> Option<&mut dyn Inspector> {
        None
    }

    /// Whether to report [`Self::accessed`]. Recording keys takes time.
    fn watches_access(&self) -> bool {
        false
    }

    /// Reports the state keys that were read or changed since the last report, up to and including the
    /// transaction at this index. Keys of reverted frames are included. A parallel list is reported once, at
    /// its last transaction.
    fn accessed(&mut self, _index: usize, _access: &Access) {}

    /// REMASC pays this amount (wei) to an account, in the transaction that just started.
    fn remasc_payment(&mut self, _to: Address, _value: U256) {}

    /// The transaction at this index has run. A transaction that runs no code (a transfer, a direct call of a
    /// native contract, the REMASC transaction) may have reported no frame.
    fn executed(&mut self, _index: usize, _executed: &Executed<'_>) {}
}

/// A transaction that has run.
#[derive(Clone, Copy, Debug)]
pub struct Executed<'a> {
    /// The transaction.
    pub transaction: &'a Transaction,
    /// Sender of the transaction; the zero address for REMASC.
    pub sender: Address,
    /// Receipt of the transaction.
    pub receipt: &'a Receipt,
    /// Output: return data, revert data, or the code of the new contract.
    pub output: &'a [u8],
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on an exceptional halt.
    pub failure: Option<Option<HaltReason>>,
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl BlockObserver for NoObserver {}
