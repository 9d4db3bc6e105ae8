//! Which keys of the state a run looked at, and which ones it touched in the eyes of parallel lists.
//!
//! The two are not the same. A proof has to cover every key that was looked at. Parallel lists
//! (RSKIP-144) compete for the keys that the reference node's code reads and writes on its way: some of
//! them never influence the run, and some of what this crate loads early is no touch.

use alloc::collections::BTreeSet;

use alloy_primitives::{Address, U256};

/// A key of the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKey {
    /// Nonce, balance, code and storage-root marker of an account. Code is neither read nor written
    /// without its account. A marker can be read alone, but only a native contract's is, and nothing
    /// writes those in a block with parallel lists.
    Account(Address),
    /// A storage cell.
    Cell(Address, U256),
}

/// What was looked at or changed: what a proof of the run has to cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Keys.
    pub keys: BTreeSet<AccessKey>,
    /// Accounts whose whole storage was listed, which only traces do.
    pub listed: BTreeSet<Address>,
}

/// What transactions touched in the eyes of parallel lists (RSKIP-144), also in frames that were rolled
/// back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Keys that were read. A written key need not be here as well.
    pub reads: BTreeSet<AccessKey>,
    /// Keys that were written.
    pub writes: BTreeSet<AccessKey>,
}

impl Touches {
    /// A key that one wrote and the other read or wrote.
    pub fn conflict(&self, other: &Self) -> Option<AccessKey> {
        let mut written = self.writes.iter();
        let hit = written.find(|key| other.writes.contains(key) || other.reads.contains(key));
        hit.or_else(|| self.reads.iter().find(|key| other.writes.contains(key))).copied()
    }
}
