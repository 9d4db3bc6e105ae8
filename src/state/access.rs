//! The state keys that a run of transactions reads ([`Access`]), and the keys that it touches for the purposes of parallel lists
//! ([`Touches`]): the sublists of a block's transactions that may run in parallel (RSKIP-144), because they do not conflict.
//!
//! The two sets differ. A proof of the run must cover every key that was read. Conflicts between parallel
//! lists are defined by the keys that the reference node reads and writes. Some of these keys never influence the
//! run, and some keys that this crate reads early do not count as touched.

use alloc::collections::BTreeSet;

use alloy_primitives::{Address, U256};

/// A key of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKey {
    /// Nonce, balance, code and storage-root marker of an account. Code is never read or written without its
    /// account. Only the marker of a native contract is read alone, and such a marker is not written in
    /// blocks with parallel lists.
    Account(Address),
    /// A storage cell: contract and slot.
    Cell(Address, U256),
}

/// The keys that a run read or changed, which a proof of the run must cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The keys.
    pub keys: BTreeSet<AccessKey>,
    /// Accounts whose whole storage was read as a list. Only traces list storage.
    pub listed: BTreeSet<Address>,
}

/// The keys that transactions touched for the purposes of parallel lists (RSKIP-144), including those touched
/// in reverted frames.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Keys that were read. A key that was written may be absent here.
    pub reads: BTreeSet<AccessKey>,
    /// Keys that were written.
    pub writes: BTreeSet<AccessKey>,
}

impl Touches {
    /// Returns a key that one set writes and the other reads or writes.
    pub fn conflict(&self, other: &Self) -> Option<AccessKey> {
        let mut written = self.writes.iter();
        let conflict = written.find(|key| other.writes.contains(key) || other.reads.contains(key));
        conflict.or_else(|| self.reads.iter().find(|key| other.writes.contains(key))).copied()
    }
}
