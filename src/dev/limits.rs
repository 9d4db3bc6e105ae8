//! Limits that the errors of the development chain name.

/// The latest time that methods set. Later blocks have later timestamps, which fit 64 bits for as long as the host's clock
/// runs.
pub const LAST_TIME: u64 = 1 << 62;

/// The largest state that is written out as a whole or read, in bytes: keys and values of a state, the text of a dump. Once
/// parsed, a cell takes up to ten times the memory of its text.
pub const MAX_DUMP: usize = 16 << 20;

/// The largest number of snapshots. A revert keeps its snapshot, so a test suite that takes one for each test adds one for
/// each test. Snapshots share what they have in common, but each keeps what only its own branch has.
pub const MAX_SNAPSHOTS: usize = 10_000;
