//! A branch that no upstream shows, but for which Bitcoin's miners work.

use alloc::vec::Vec;

use super::shown::ShownChain;
use super::tags::{BranchRange, TagReport, commitments};
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
    /// chance happens once in 256 at most. Tags that are too far apart to have a commitment in common are of one branch if tags
    /// between them agree with both.
    pub(super) fn of(foreign: &[Foreign], chain: &impl ShownChain) -> Option<Self> {
        let (mut left, mut largest) = (foreign.to_vec(), None::<Self>);
        while let Some(first) = left.pop() {
            let (mut found, mut next) = (Self { range: first.1, tags: 1 }, alloc::vec![first]);
            while let Some(one) = next.pop() {
                let (same, others): (Vec<_>, _) = left.into_iter().partition(|tag| agree(&one, tag, chain));
                left = others;
                for (_, range) in &same {
                    found = Self { range: found.range.narrowed(*range), tags: found.tags.saturating_add(1) };
                }
                next.extend(same);
            }
            if found.tags > largest.map_or(1, |largest| largest.tags) {
                largest = Some(found);
            }
        }
        largest
    }
}

/// Where a branch left that more of the newest blocks stand behind than behind the chain; of the greater number of blocks if
/// both numbers have one. That the rule of tags fails does not say so: a pool with a fifth of Bitcoin's blocks can write
/// made-up tags into all of them.
pub(super) fn contested(report: &TagReport, chain: &impl ShownChain) -> Option<BranchRange> {
    report.counts.iter().rev().find_map(|counts| {
        let newest = report.foreign.get(..counts.foreign as usize).unwrap_or(&report.foreign);
        HiddenBranch::of(newest, chain)
            .filter(|branch| counts.is_contested(branch.tags))
            .map(|branch| branch.range)
    })
}
