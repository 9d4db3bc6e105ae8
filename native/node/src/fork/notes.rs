//! Notes of the data that runs lacked, separate for each thread, because many messages read at the same time.

use std::cell::RefCell;
use std::collections::BTreeMap;

use alloy_primitives::B256;
use rootlight::dev::fork::{Missing, MissingNotes, MissingSet};

thread_local! {
    /// The data that reads of the present thread lacked, by the address in memory of the [`ThreadNotes`]. Separate notes prevent
    /// that data which one message cannot get makes other messages fail.
    static MISSING: RefCell<BTreeMap<usize, MissingSet>> = const { RefCell::new(BTreeMap::new()) };
}

/// Whether reads of the present thread lacked data.
pub(super) fn is_missing() -> bool {
    MISSING.with_borrow(|all| !all.is_empty())
}

/// Forgets the data that earlier runs of the present thread lacked.
pub(super) fn forget_missing() {
    MISSING.with_borrow_mut(BTreeMap::clear);
}

/// The notes for the state of one block, whose hash is the field.
#[derive(Debug)]
pub(super) struct ThreadNotes(pub(super) B256);

impl ThreadNotes {
    /// The key of these notes in [`MISSING`].
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    /// Takes the data that reads of the present thread lacked since the last call.
    pub(super) fn take(&self) -> MissingSet {
        MISSING.with_borrow_mut(|all| all.remove(&self.address())).unwrap_or_default()
    }
}

impl MissingNotes for ThreadNotes {
    fn note(&self, missing: Missing) {
        MISSING.with_borrow_mut(|all| all.entry(self.address()).or_default().note(missing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_threads_miss_is_not_taken() {
        let (one, other) = (ThreadNotes(B256::ZERO), ThreadNotes(B256::ZERO));
        std::thread::scope(|scope| scope.spawn(|| one.note(Missing::Header(3))).join().unwrap());
        assert!(!is_missing());
        one.note(Missing::Contents(5));
        other.note(Missing::Header(2));
        let mut noted = MissingSet::default();
        noted.note(Missing::Contents(5));
        assert_eq!(one.take(), noted);
        assert!(is_missing());
        forget_missing();
        assert!(!is_missing() && other.take().is_empty());
    }
}
