//! The data of the forked network that runs have read and found missing: `ForkState` notes them ([`MissingNotes`]), and a host passes
//! them as [`Wanted`] to [`super::Rounds`], which fetches them.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Debug;

use alloy_primitives::B256;
use spin::Mutex;

use super::error::ForkError;

/// Most ancestors of the fork's block whose contents (transactions and receipts) are stored in memory, and that one message may read.
/// A block of the main network takes some 100 kB, so all take some 400 MB.
pub(super) const MOST_CONTENTS: usize = 4_096;

/// Most missing values and blocks of one run, which bounds the time and the memory of their fetch.
const MOST_MISSING: usize = 100_000;

/// The URL of the upstream and the height of another block on which the fork is to begin. Without the URL, the present upstreams;
/// without the height, the head.
pub type OtherStart = (Option<String>, Option<u64>);

/// Data that a run has read and that is not fetched yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// The value under a key of the state.
    Value(Vec<u8>),
    /// The header of an ancestor, by its height.
    Header(u64),
    /// The header with this hash, which may be of no ancestor.
    HeaderOf(B256),
    /// The transactions of a block.
    Body(u64),
    /// Transactions and receipts of a block.
    Contents(u64),
    /// The uncles of a block.
    Uncles(u64),
    /// The block and index of a transaction.
    Location(B256),
    /// Another block on which the fork is to begin.
    Other(OtherStart),
}

/// The notes of a host about missing data.
pub trait MissingNotes: Debug + Send + Sync {
    /// Notes missing data of the present run.
    fn note(&self, missing: Missing);
}

/// The data that one run has found missing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MissingSet {
    wanted: Wanted,
    count: usize,
}

impl MissingSet {
    /// Adds missing data, unless it is noted already.
    pub fn note(&mut self, missing: Missing) {
        // A count of one above the limit tells `wanted` that there are too many; more are not stored.
        if self.count > MOST_MISSING {
            return;
        }
        let wanted = &mut self.wanted;
        let is_new = match missing {
            Missing::Value(key) => wanted.values.insert(key),
            Missing::Header(number) => wanted.headers.insert(number),
            Missing::HeaderOf(hash) => wanted.headers_of.insert(hash),
            Missing::Body(number) => wanted.bodies.insert(number),
            Missing::Contents(number) => wanted.contents.insert(number),
            Missing::Uncles(number) => wanted.uncles.insert(number),
            Missing::Location(hash) => wanted.locations.insert(hash),
            Missing::Other(start) => {
                let is_new = !wanted.others.contains(&start);
                wanted.others.extend(Some(start).filter(|_| is_new));
                is_new
            }
        };
        self.count = self.count.saturating_add(usize::from(is_new));
    }

    /// Whether the run missed nothing.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The missing data by kind.
    ///
    /// # Errors
    /// [`ForkError::TooMuch`] if the run missed more than a run may.
    pub fn wanted(self) -> Result<Wanted, ForkError> {
        if self.count > MOST_MISSING { Err(ForkError::TooMuch(MOST_MISSING)) } else { Ok(self.wanted) }
    }
}

/// The notes of a host that makes one run at a time.
#[derive(Debug, Default)]
pub struct SharedNotes(Mutex<MissingSet>);

impl SharedNotes {
    /// Whether nothing was noted since the last call of [`Self::take`].
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Takes what was noted.
    pub fn take(&self) -> MissingSet {
        core::mem::take(&mut *self.0.lock())
    }
}

impl MissingNotes for SharedNotes {
    fn note(&self, missing: Missing) {
        self.0.lock().note(missing);
    }
}

/// The missing data by kind. Each fetch removes the data that it has stored.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Trie keys of values.
    pub(super) values: BTreeSet<Vec<u8>>,
    /// Heights of headers.
    pub(super) headers: BTreeSet<u64>,
    /// Hashes of headers.
    pub(super) headers_of: BTreeSet<B256>,
    /// Heights of blocks whose transactions are read.
    pub(super) bodies: BTreeSet<u64>,
    /// Heights of blocks whose transactions and receipts are read.
    pub(super) contents: BTreeSet<u64>,
    /// Heights of blocks whose uncles are read.
    pub(super) uncles: BTreeSet<u64>,
    /// Hashes of transactions whose block and index are read.
    pub(super) locations: BTreeSet<B256>,
    /// Other blocks on which the fork is to begin.
    pub others: Vec<OtherStart>,
}

impl Wanted {
    /// Adds the blocks whose contents are wanted to `read`, those that the same message has read so far. Fails if they are more than
    /// [`MOST_CONTENTS`].
    pub(super) fn count_contents(&self, read: &mut BTreeSet<u64>) -> Result<(), ForkError> {
        read.extend(self.bodies.union(&self.contents));
        if read.len() > MOST_CONTENTS { Err(ForkError::TooMuch(MOST_CONTENTS)) } else { Ok(()) }
    }
}

/// Calls `fetch` with parts of `wanted` of at most `most` items, and removes each part that was fetched. Stops at the first error.
pub(super) fn in_parts<T: Ord + Clone, E>(
    wanted: &mut BTreeSet<T>,
    most: usize,
    mut fetch: impl FnMut(&BTreeSet<T>) -> Result<(), E>,
) -> Result<(), E> {
    while !wanted.is_empty() {
        let part = wanted.iter().take(most).cloned().collect();
        fetch(&part)?;
        wanted.retain(|one| !part.contains(one));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_one_run_misses_has_a_limit() {
        let mut missing = MissingSet::default();
        for number in 0..MOST_MISSING {
            missing.note(Missing::Location(B256::left_padding_from(&number.to_be_bytes())));
        }
        assert!(core::mem::take(&mut missing).wanted().is_ok());
        for number in 0..MOST_MISSING + 20 {
            missing.note(Missing::Location(B256::left_padding_from(&number.to_be_bytes())));
        }
        assert_eq!(missing.count, MOST_MISSING + 1);
        assert_eq!(missing.wanted().unwrap_err(), ForkError::TooMuch(MOST_MISSING));
    }

    /// A fetch runs again with each response: it goes on with the part that is not there yet.
    #[test]
    fn what_is_wanted_is_fetched_in_parts() {
        let (mut wanted, mut parts): (BTreeSet<u64>, Vec<_>) = ((0..40).collect(), Vec::new());
        let mut answered = 0;
        while !wanted.is_empty() {
            let fetched = in_parts(&mut wanted, 16, |part| {
                parts.push((part.first().copied(), part.len()));
                answered += 1;
                if answered == 2 { Err(()) } else { Ok(()) }
            });
            assert_eq!(fetched.is_err(), answered == 2);
        }
        assert_eq!(parts, [(Some(0), 16), (Some(16), 16), (Some(16), 16), (Some(32), 8)]);
    }
}
