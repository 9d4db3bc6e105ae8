//! Limits of the development chain that its error messages state ([`super::DevError`]).

/// The latest time that methods set, in seconds since 1970. This limit leaves half of the signed 64-bit numbers to later blocks, whose
/// timestamps are always later than their parents'.
pub const LAST_TIME: u64 = 1 << 62;

/// The largest dump of a state in bytes: of the keys and values that are written, and of the text that is read. A parsed cell takes up to
/// ten times the memory of its text, so reading a dump takes up to 160 MiB.
pub const MAX_DUMP: usize = 16 << 20;

/// The largest number of snapshots. A revert keeps its snapshot, so a test suite that takes one for each test adds one for
/// each test. Snapshots share the blocks and states that they have in common; each takes memory for those of its own branch.
pub const MAX_SNAPSHOTS: usize = 10_000;
