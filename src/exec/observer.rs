//! Observation of the execution of a block: a [`BlockObserver`], such as a tracer or a recorder of witnesses, gets transactions, frames,
//! states and the keys that were used.

use alloc::{collections::BTreeSet, vec::Vec};
use core::cell::RefCell;

use alloy_primitives::{Address, B256, U256};

use super::block_context::Ancestry;

#[cfg(feature = "catalogue")]
use crate::evm::LiveState;
use crate::evm::{HaltReason, Inspector};
use crate::state::{Access, World};
use crate::types::{Header, Log, SealedHeader, Transaction};

/// Observes the execution of a block. All methods do nothing by default.
pub trait BlockObserver {
    /// The transaction at this index is about to run. Returns the inspector of its frames, if any.
    fn inspector(&mut self, _index: usize) -> Option<&mut dyn Inspector> {
        None
    }

    /// Whether to report [`Self::accessed`] and [`Self::ancestors`]. Recording takes time.
    fn watches_access(&self) -> bool {
        false
    }

    /// Reports the state keys that were read or changed since the last report, up to and including the
    /// transaction at this index. Keys of reverted frames are included. A parallel list is reported once, at
    /// its last transaction.
    fn accessed(&mut self, _index: usize, _access: &Access) {}

    /// Reports, once after the execution, the numbers of the ancestors whose headers were read, and of those whose uncles were read.
    fn ancestors(&mut self, _headers: &BTreeSet<u64>, _uncles: &BTreeSet<u64>) {}

    /// Whether to report [`Self::state`] for the transaction at this index, which takes a copy of the state before it.
    fn watches_state(&self, _index: usize) -> bool {
        false
    }

    /// Reports the state before and after the transaction at this index, fee included, and the keys that it read or
    /// changed, those of reverted frames included. Called before [`Self::executed`].
    fn state(&mut self, _index: usize, _before: &mut World, _after: &mut World, _access: &Access) {}

    /// REMASC pays this amount (wei) to an account, in the transaction that just started.
    fn remasc_payment(&mut self, _to: Address, _value: U256) {}

    /// The transaction at this index has run; `state` is the state after it, fee included. Called before [`Self::accessed`],
    /// [`Self::state`] and [`Self::executed`].
    #[cfg(feature = "catalogue")]
    fn ended(&mut self, _index: usize, _executed: &Executed<'_>, _state: &mut dyn LiveState) {}

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
    /// Whether the transaction succeeded, as its receipt says.
    pub success: bool,
    /// Gas used.
    pub gas_used: u64,
    /// The logs of the transaction in order.
    pub logs: &'a [Log],
    /// Output: return data, revert data, or the code of the new contract.
    pub output: &'a [u8],
    /// `None` on success, `Some(None)` on REVERT, `Some(Some(_))` on an exceptional halt.
    pub failure: Option<Option<HaltReason>>,
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl BlockObserver for NoObserver {}

/// Ancestors, with a record of those that are read.
pub(super) struct WatchedAncestry<'a> {
    inner: &'a dyn Ancestry,
    headers: RefCell<BTreeSet<u64>>,
    uncles: RefCell<BTreeSet<u64>>,
}

impl<'a> WatchedAncestry<'a> {
    pub(super) fn new(inner: &'a dyn Ancestry) -> Self {
        Self { inner, headers: RefCell::default(), uncles: RefCell::default() }
    }

    /// Reports the ancestors that were read.
    pub(super) fn report(self, observer: &mut dyn BlockObserver) {
        observer.ancestors(&self.headers.into_inner(), &self.uncles.into_inner());
    }
}

impl Ancestry for WatchedAncestry<'_> {
    fn header(&self, number: u64) -> Option<SealedHeader> {
        self.headers.borrow_mut().insert(number);
        self.inner.header(number)
    }

    fn uncles(&self, number: u64) -> Option<Vec<Header>> {
        self.uncles.borrow_mut().insert(number);
        self.inner.uncles(number)
    }

    fn total_difficulty(&self, number: u64) -> Option<U256> {
        self.headers.borrow_mut().insert(number);
        self.inner.total_difficulty(number)
    }

    fn hash(&self, number: u64) -> Option<B256> {
        self.headers.borrow_mut().insert(number);
        self.inner.hash(number)
    }

    fn first_rewarded_block(&self) -> u64 {
        self.inner.first_rewarded_block()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Begun;

    impl Ancestry for Begun {
        fn header(&self, _: u64) -> Option<SealedHeader> {
            None
        }

        fn uncles(&self, _: u64) -> Option<Vec<Header>> {
            None
        }

        fn total_difficulty(&self, _: u64) -> Option<U256> {
            None
        }

        fn first_rewarded_block(&self) -> u64 {
            9
        }
    }

    #[test]
    fn watched_ancestors_are_rewarded_as_others() {
        assert_eq!(WatchedAncestry::new(&Begun).first_rewarded_block(), 9);
    }
}
