//! The verdict on the shown Rootstock chain, with its reason as a sentence.

use core::fmt;

use super::commitments::{COUNTED_BLOCKS, Counts, RECENT_BLOCKS};
use super::dated::{DatedSuffix, MAX_LAG, MIN_SUFFIX};
use super::tags::{BranchRange, TagFault};

/// Greatest age of Bitcoin's tip, in seconds. A gap above two hours between blocks occurs 0.3 times a year, above three 0.0008
/// times. So an older tip means that a source withholds the newest blocks, or that the clock is wrong.
pub const MAX_TIP_AGE: u64 = 3 * 3_600;
/// Number of removed blocks from which on a reorganisation of Bitcoin stops the use of its chain. Bitcoin has seen more than
/// two only after faults of its software.
pub const DEEP_REORGANISATION: u32 = 6;

/// A branch of the Bitcoin chain that has at most the work of this many blocks less than the heaviest is a rival. Only blocks that
/// both have in common are judged, because the rival may still win.
pub const CLOSE_RIVAL: u32 = 2;

/// The verdict on the shown chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BitcoinVerdict {
    /// Every rule holds.
    Held,
    /// A rule does not hold.
    Weak(WeakReason),
    /// More of Bitcoin's newest blocks name another branch, which left the shown chain in this range, than name the chain.
    Contested(BranchRange),
    /// There is no Bitcoin chain above its checkpoint.
    Unavailable,
}

/// The rule that does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeakReason {
    /// Bitcoin was reorganised this many blocks deep, or a rival branch leaves the chain so deep.
    Reorganised(u32),
    /// Bitcoin's tip is this many seconds old.
    OldTip(u64),
    /// The newest Bitcoin blocks show too little work for the time in which they were mined.
    SlowBitcoin,
    /// The dated headers reach back only this many Bitcoin blocks, fewer than [`MIN_SUFFIX`].
    FewBlocks(u32),
    /// The newest header's parent is this many blocks behind Bitcoin's tip; `None` if no header names a Bitcoin block.
    Lags(Option<u32>),
    /// The dated work of a suffix of the Bitcoin chain is below the floor.
    LowWork(DatedSuffix),
    /// The tags of the newest Bitcoin blocks are not accepted.
    Tags(TagFault),
    /// Too few tags are own for those that are kin, but the uncles of this many blocks are not proven yet, and tags of proven
    /// uncles are own. At today's shares of merge miners this holds for one in a hundred honest windows, and for none once the
    /// uncles are proven.
    AwaitsUncles(usize),
    /// Too few Bitcoin blocks commit to the chain.
    FewCommitments(Counts),
}

impl WeakReason {
    /// Whether the Bitcoin chain that sources show is at fault, so that it cannot date the work of headers.
    pub(in crate::light) const fn is_of_bitcoin(&self) -> bool {
        matches!(self, Self::OldTip(_) | Self::SlowBitcoin)
    }
}

impl BitcoinVerdict {
    /// The same verdict when Bitcoin's tip is `tip_age` seconds old: too old a tip replaces milder verdicts, but no reorganisation.
    pub(super) const fn at_tip_age(self, tip_age: u64) -> Self {
        match self {
            Self::Held | Self::Weak(_) if tip_age > MAX_TIP_AGE && !self.is_reorganised() => {
                Self::Weak(WeakReason::OldTip(tip_age))
            }
            same => same,
        }
    }

    const fn is_reorganised(self) -> bool {
        matches!(self, Self::Weak(WeakReason::Reorganised(_)))
    }

    /// The name of the verdict in answers.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Weak(_) => "weak",
            Self::Contested(_) => "contested",
            Self::Unavailable => "unavailable",
        }
    }
}

/// The reason, as a sentence for users; empty if every rule holds.
impl fmt::Display for BitcoinVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held => Ok(()),
            Self::Weak(reason) => reason.fmt(f),
            Self::Contested(BranchRange { after: Some(after), until }) => write!(
                f,
                "more of Bitcoin's newest blocks name a branch that left this chain between blocks {after} and {until} than name this chain"
            ),
            Self::Contested(BranchRange { after: None, until }) => {
                write!(
                    f,
                    "more of Bitcoin's newest blocks name a branch that left this chain before block {until} than name this chain"
                )
            }
            Self::Unavailable => f.write_str("no source has shown Bitcoin's chain"),
        }
    }
}

impl fmt::Display for WeakReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Reorganised(depth) => write!(f, "Bitcoin was reorganised {depth} blocks deep"),
            Self::OldTip(age) => write!(
                f,
                "the newest Bitcoin block that a source shows is {} minutes old: newer ones are withheld, or the clock is wrong",
                age / 60
            ),
            Self::SlowBitcoin => f.write_str(
                "the newest Bitcoin blocks that sources show have less than a quarter of the usual work",
            ),
            Self::FewBlocks(found) => write!(
                f,
                "the headers reach back {found} Bitcoin blocks, and fewer than {MIN_SUFFIX} are not judged"
            ),
            Self::Lags(None) => f.write_str("no header was mined on a block of Bitcoin's chain"),
            Self::Lags(Some(lag)) => write!(
                f,
                "the newest header was mined on a Bitcoin block {lag} below the newest, at most {MAX_LAG} are usual"
            ),
            Self::LowWork(suffix) => write!(
                f,
                "headers of the newest {} Bitcoin blocks have {}.{:02} % of Bitcoin's work, at least {} % are expected",
                suffix.blocks,
                suffix.basis_points() / 100,
                suffix.basis_points() % 100,
                suffix.floor()
            ),
            Self::Tags(fault) => fault.fmt(f),
            Self::AwaitsUncles(blocks) => {
                write!(f, "the uncles of {blocks} blocks, which Bitcoin blocks may name, are not proven yet")
            }
            Self::FewCommitments(counts) => write!(
                f,
                "{} of the newest {RECENT_BLOCKS} and {} of the newest {COUNTED_BLOCKS} Bitcoin blocks commit to this chain",
                counts.recent, counts.all
            ),
        }
    }
}

impl fmt::Display for TagFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "too few of Bitcoin's newest blocks name a block of this chain",
            Self::Kin => "too many of Bitcoin's newest blocks name blocks of this chain that nobody shows",
            Self::Foreign => "too many of Bitcoin's newest blocks name another branch",
            Self::Ahead => "too many of Bitcoin's newest blocks name blocks above the newest that is shown",
            Self::Withheld => "too many coinbases of Bitcoin's newest blocks were not shown",
        })
    }
}
