//! A Rootstock branch that no upstream shows, but on which miners of Bitcoin work: tags in Bitcoin's coinbases name its blocks, and
//! the commitments in these tags agree with each other. The judge warns of such a branch.

use alloc::vec::Vec;

use super::shown::ShownChain;
use super::tags::{BranchRange, TagReport, committed_bytes};
use crate::consensus::bitcoin::Tag;

/// A branch that foreign tags, which name blocks off the shown chain, agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HiddenBranch {
    /// Where the branch left the shown chain.
    pub range: BranchRange,
    /// Number of tags that agree.
    pub tags: u32,
}

/// A tag, and where its branch left the shown chain.
type Foreign = (Tag, BranchRange);

/// Whether two tags are of one branch: at every block to which both commit, their bytes are equal, and at one block at least
/// they differ from the shown chain. If no common block of the branch and the chain is known, one equal byte is enough: the
/// branch then counts as different everywhere.
fn agree((a, left_a): &Foreign, (b, left_b): &Foreign, chain: &impl ShownChain) -> bool {
    let other = |number| committed_bytes(b).find(|(found, _)| *found == number).map(|(_, byte)| byte);
    let has_common_block = left_a.after.or(left_b.after).is_some();
    let mut differs_from_chain = false;
    for (number, byte) in committed_bytes(a) {
        let Some(other) = other(number) else { continue };
        if other != byte {
            return false;
        }
        differs_from_chain |=
            !has_common_block || chain.bitcoin_byte(number).is_some_and(|shown| shown != byte);
    }
    differs_from_chain
}

impl HiddenBranch {
    /// The branch on which most of these tags agree, if at least two do. One tag alone may be garbage; two agree by chance at most
    /// once in 256 cases. Tags that are too far apart to have a commitment in common are of one branch if tags between them agree
    /// with both.
    pub(super) fn of(foreign: &[Foreign], chain: &impl ShownChain) -> Option<Self> {
        // Each round of the outer loop collects one branch: the tags that agree with a first one, and in turn with those.
        let (mut remaining, mut largest) = (foreign.to_vec(), None::<Self>);
        while let Some(first) = remaining.pop() {
            let (mut found, mut next) = (Self { range: first.1, tags: 1 }, alloc::vec![first]);
            while let Some(one) = next.pop() {
                let (same, others): (Vec<_>, _) =
                    remaining.into_iter().partition(|tag| agree(&one, tag, chain));
                remaining = others;
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

/// Where a branch left the chain that more of the newest Bitcoin blocks name than name the chain. Both numbers of blocks in
/// [`JUDGED_TAGS`](super::JUDGED_TAGS) are tried, the greater one first. Tags that are not accepted are not enough for this
/// verdict: a pool with a fifth of Bitcoin's blocks can write made-up tags into all of them, which do not agree.
pub(super) fn contested(report: &TagReport, chain: &impl ShownChain) -> Option<BranchRange> {
    report.counts.iter().rev().find_map(|counts| {
        // Foreign tags are listed newest first, so the first ones are those of the blocks that `counts` is about.
        let newest = report.foreign.get(..counts.foreign as usize).unwrap_or(&report.foreign);
        HiddenBranch::of(newest, chain)
            .filter(|branch| counts.is_contested(branch.tags))
            .map(|branch| branch.range)
    })
}
