//! What Bitcoin says of the shown chain, in one type.

use super::commitments::Counts;
use super::dated::DatedSuffix;
use super::tags::{BranchRange, TagFault};

/// Greatest age of Bitcoin's tip, in seconds. A gap above two hours occurs 0.3 times a year, above three 0.0008 times: a
/// source withholds the newest blocks, or the clock is wrong.
pub const MAX_TIP_AGE: u64 = 3 * 3_600;
/// Number of removed blocks from which on a reorganisation of Bitcoin stops the use of its chain. Bitcoin has seen more than
/// two only after faults of its software.
pub const DEEP_REORGANISATION: u32 = 6;

/// A branch of the Bitcoin chain with at most this many blocks of work less than the heaviest is a rival: judged is what both
/// have in common.
pub const CLOSE_RIVAL: u32 = 2;

/// What Bitcoin says of the shown chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitcoinVerdict {
    /// Every rule holds.
    Held,
    /// A rule does not hold.
    Weak(WeakReason),
    /// Bitcoin's miners stand behind another branch, which left the shown chain in this range.
    Contested(BranchRange),
    /// There is no Bitcoin chain above its checkpoint.
    Unavailable,
}

/// The rule that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeakReason {
    /// Bitcoin was reorganised this many blocks deep, or a rival branch leaves so deep.
    Reorganised(u32),
    /// Bitcoin's tip is this many seconds old.
    OldTip(u64),
    /// The headers reach back fewer than 12 Bitcoin blocks: this many.
    FewBlocks(u32),
    /// The newest header's parent is this many blocks behind Bitcoin's tip; `None` if no header names a Bitcoin block.
    Lags(Option<u32>),
    /// The dated work of a suffix of the Bitcoin chain is below the floor.
    LowWork(DatedSuffix),
    /// The tags of the newest Bitcoin blocks are not accepted.
    Tags(TagFault),
    /// Too few Bitcoin blocks commit to the chain.
    FewCommitments(Counts),
}
