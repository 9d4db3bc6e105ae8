//! A branch that nobody shows, but for which Bitcoin's miners work.

use super::shown::ShownChain;
use super::tags::{BranchRange, commitments};
use crate::consensus::bitcoin::Tag;

/// Foreign tags that agree with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenBranch {
    /// Where the branch left the shown chain.
    pub range: BranchRange,
    /// Number of tags that agree.
    pub tags: u32,
}

/// A tag, and where its branch left the shown chain.
type Foreign = (Tag, BranchRange);

/// Whether two tags are of one branch: at every block to which both commit their bytes are equal, and at one at least
/// they differ from the shown chain. Branches that have no block in common with the chain do so everywhere: their numbers are
/// others, so that the chain has other blocks there, if any.
fn agree((a, left_a): &Foreign, (b, left_b): &Foreign, chain: &impl ShownChain) -> bool {
    let other = |number| commitments(b).find(|(found, _)| *found == number).map(|(_, byte)| byte);
    let has_common = left_a.after.or(left_b.after).is_some();
    let mut foreign = false;
    for (number, byte) in commitments(a) {
        let Some(other) = other(number) else { continue };
        if other != byte {
            return false;
        }
        foreign |= !has_common || chain.bitcoin_byte(number).is_some_and(|shown| shown != byte);
    }
    foreign
}

impl HiddenBranch {
    /// The branch on which most of these tags agree, if two do. One tag alone may be garbage; that two of them agree by
    /// chance happens once in 256 at most.
    pub(super) fn of(foreign: &[Foreign], chain: &impl ShownChain) -> Option<Self> {
        let group = |one: &Foreign| {
            let same = foreign.iter().filter(|other| agree(one, other, chain));
            same.fold(Self { range: one.1, tags: 0 }, |found, (_, range)| Self {
                range: found.range.narrowed(*range),
                tags: found.tags.saturating_add(1),
            })
        };
        foreign.iter().map(group).filter(|found| found.tags > 1).max_by_key(|found| found.tags)
    }
}
