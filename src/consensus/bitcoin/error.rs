//! Why a Bitcoin header is refused.

use thiserror::Error;

use super::hash::reversed;
use super::target::PERIOD;
use crate::types::B256;

/// Most headers that a chain stores beyond its usual number, while they show less work than a reorganisation may remove. The limit
/// is reached only if Bitcoin's difficulty falls to about a sixteenth, and bounds memory to 6 MB for the default number.
pub(super) const MAX_EXTRA_HEADERS: u32 = 16 * PERIOD;

/// Why a Bitcoin header is refused. Hashes are in internal byte order; messages show them reversed, as Bitcoin's tools do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "the messages say what is wrong")]
pub enum BitcoinChainError {
    /// The chain does not have the parent: it is unknown, too far below the tip, or on a branch that was dropped.
    #[error("Bitcoin header {}: its parent {} is not in the chain", reversed(hash), reversed(previous))]
    Unlinked { hash: B256, previous: B256 },
    #[error(
        "Bitcoin header {height}: its branch leaves the chain after block {fork}, more than the work of {PERIOD} blocks \
         below the tip"
    )]
    Deep { height: u32, fork: u32 },
    /// The difficulty fell so far that the limit of stored headers is reached: this branch is false, or an earlier false branch
    /// raised the work that a reorganisation may remove.
    #[error("Bitcoin header {height}: the headers below it show too little work for their number")]
    Light { height: u32 },
    #[error("Bitcoin header {height}: nBits {found:#010x}, the period has {expected:#010x}")]
    Bits { height: u32, found: u32, expected: u32 },
    #[error("Bitcoin header {height}: hash {} above the target {bits:#010x}", reversed(hash))]
    HashAboveTarget { height: u32, hash: B256, bits: u32 },
    #[error("Bitcoin header {height}: time {time} is not above the median of the 11 blocks below it")]
    EarlyTime { height: u32, time: u32 },
    #[error("Bitcoin header {height}: time {time} is more than two hours ahead of the clock, {now}")]
    FutureTime { height: u32, time: u32, now: u64 },
}
