//! Which state a list of transactions read and wrote (RSKIP-144).

use alloc::collections::BTreeSet;

use alloy_primitives::{Address, U256};

/// A key of the state as parallel lists compete for it. Code and storage-root marker are never
/// reached without their account, so the account stands for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessKey {
    /// Nonce, balance, code and marker of an account.
    Account(Address),
    /// A storage cell.
    Cell(Address, U256),
}

/// Keys that were read and written, also in frames that were rolled back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Read.
    pub reads: BTreeSet<AccessKey>,
    /// Written, or about to be.
    pub writes: BTreeSet<AccessKey>,
    /// Accounts whose whole storage was listed, which only traces do.
    pub listed: BTreeSet<Address>,
}

impl Access {
    /// A key that one wrote and the other read or wrote.
    pub fn conflict(&self, other: &Self) -> Option<AccessKey> {
        let mut written = self.writes.iter();
        let hit = written.find(|key| other.writes.contains(key) || other.reads.contains(key));
        hit.or_else(|| self.reads.iter().find(|key| other.writes.contains(key))).copied()
    }
}
