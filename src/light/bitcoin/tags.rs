//! The tags of the newest Bitcoin blocks: which Rootstock chain Bitcoin's miners support.
//!
//! A merge miner writes a tag into the coinbase of its Bitcoin block: the first 20 bytes of the Rootstock block's hash for merged
//! mining, its number, and seven commitments (RSKIP-110), each one byte of the proof of an earlier block. (The commitments of
//! `commitments.rs` are others: whole Bitcoin blocks.) So a tag names a block and the chain below it, even if no upstream shows that
//! chain. The rule is that of RSKIP-643, without a hard fork.

use alloc::vec::Vec;

use super::coinbases::Coinbases;
use super::dated::DatedWork;
use super::shown::ShownChain;
use crate::consensus::bitcoin::{BitcoinChain, Tag};
use crate::consensus::fork_detection::COMMITMENT_STEP;

/// How many of the newest Bitcoin blocks have their tags judged; the tags must be accepted for both numbers. 36 blocks are six
/// hours. Against honest miners with 45 % of Bitcoin's hashes, a pool with a fifth of them is accepted in 3.5 of 10,000 tries with
/// 36 blocks, and in 6 of ten million with 72.
pub const JUDGED_TAGS: [u32; 2] = [36, 72];
/// The least share of own tags, in percent.
pub const LEAST_OWN: u32 = 5;
/// Most kin tags for one own tag. With five times the work an attacker can mimic the commitments, so kin tags alone are never
/// enough.
pub const MOST_KIN: u32 = 3;
/// How many blocks a tag may be ahead of the head: those of four minutes, in which a header may still be on its way here.
pub const MAX_AHEAD: u64 = 8;

/// Where a branch left the shown chain, in Rootstock block numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BranchRange {
    /// A block that the branch and the shown chain probably have in common; `None` if the commitments do not reach so far down.
    pub after: Option<u64>,
    /// A block that the branch does not have.
    pub until: u64,
}

impl BranchRange {
    /// The part that two ranges have in common.
    pub(super) fn narrowed(self, other: Self) -> Self {
        Self { after: self.after.max(other.after), until: self.until.min(other.until) }
    }
}

/// The chain that the tag in the coinbase of a Bitcoin block names, compared with the shown chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagClass {
    /// A block of the shown chain, or a proven uncle of one.
    Own,
    /// A block that is not shown, but whose commitments that can be compared are all those of the shown chain: such as an uncle
    /// that no block lists.
    Kin,
    /// A block of another branch.
    Foreign(BranchRange),
    /// A block more than [`MAX_AHEAD`] above the shown head; its commitments that can be compared are those of the shown chain.
    Ahead,
    /// No block: there is no tag, or it has no commitment that can be compared.
    None,
    /// No source has proven the coinbase.
    Withheld,
}

/// The Rootstock block numbers to which a tag commits, newest first, each with the byte that the tag has for it.
pub(super) fn committed_bytes(tag: &Tag) -> impl Iterator<Item = (u64, u8)> {
    let newest = u64::from(tag.number).saturating_sub(1) / COMMITMENT_STEP;
    // `cpv` is the commit-to-parents vector of RSKIP-110: one byte for each of the newest blocks whose number is a multiple of 64.
    let steps = tag.cpv.into_iter().enumerate();
    steps.filter_map(move |(step, byte)| {
        Some((newest.checked_sub(step as u64)?.saturating_mul(COMMITMENT_STEP), byte))
    })
}

/// The class of a tag.
///
/// A tag of a branch that left the chain `n` blocks below the tag's block is classed as foreign in 48 % of cases for `n` of 32,
/// 98 % for 64, 100 % for 128: a tag has one byte for every 64th block.
#[must_use]
pub fn classify(tag: &Tag, chain: &impl ShownChain) -> TagClass {
    if chain.is_own(tag) {
        return TagClass::Own;
    }
    let compared =
        committed_bytes(tag).filter_map(|(number, byte)| Some((number, chain.bitcoin_byte(number)? == byte)));
    let compared: Vec<(u64, bool)> = compared.collect();
    // The lowest block that differs decides: a byte of a newer block may be equal by chance.
    if let Some(lowest) = compared.iter().rposition(|(_, equal)| !equal) {
        let until = compared.get(lowest).map_or(0, |(number, _)| *number);
        let after = lowest.checked_add(1).and_then(|below| compared.get(below)).map(|(number, _)| *number);
        return TagClass::Foreign(BranchRange { after, until });
    }
    if u64::from(tag.number) > chain.head().saturating_add(MAX_AHEAD) {
        return TagClass::Ahead;
    }
    if compared.is_empty() { TagClass::None } else { TagClass::Kin }
}

/// How many of some Bitcoin blocks have a tag of each class ([`TagClass`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[allow(missing_docs, reason = "the classes are explained where they are defined")]
pub struct TagCounts {
    pub own: u32,
    pub kin: u32,
    pub foreign: u32,
    pub ahead: u32,
    pub none: u32,
    pub withheld: u32,
}

/// Why the tags of some Bitcoin blocks are not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagFault {
    /// Too few own tags.
    Own,
    /// Too many kin tags for the own ones: they may be tags of another branch that mimics the commitments of the chain.
    Kin,
    /// Too many tags name another branch.
    Foreign,
    /// Too many tags name blocks far above the shown head.
    Ahead,
    /// Too many coinbases are not proven, and their tags may be foreign.
    Withheld,
}

impl TagCounts {
    /// Counts one tag.
    fn add(&mut self, class: TagClass) {
        let count = match class {
            TagClass::Own => &mut self.own,
            TagClass::Kin => &mut self.kin,
            TagClass::Foreign(_) => &mut self.foreign,
            TagClass::Ahead => &mut self.ahead,
            TagClass::None => &mut self.none,
            TagClass::Withheld => &mut self.withheld,
        };
        *count = count.saturating_add(1);
    }

    /// Number of Bitcoin blocks: the sum of all classes.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        let tags = self.own.saturating_add(self.kin).saturating_add(self.foreign);
        tags.saturating_add(self.ahead).saturating_add(self.none).saturating_add(self.withheld)
    }

    /// Whether more of the blocks name one other branch than name this chain. `agreeing` is the number of tags that agree on that
    /// branch.
    #[must_use]
    pub const fn is_contested(&self, agreeing: u32) -> bool {
        agreeing > self.own.saturating_add(self.kin)
    }

    /// Accepts if own tags are at least 5 % of the blocks, kin tags at most three times the own ones, and those against the
    /// chain at most half of own and kin together. Foreign tags and tags far ahead count against the chain, and so does every
    /// withheld coinbase, because it may have a foreign tag.
    ///
    /// # Errors
    /// The gravest fault.
    pub const fn accept(&self) -> Result<(), TagFault> {
        let support = self.own.saturating_add(self.kin);
        let foreign_or_ahead = self.foreign.saturating_add(self.ahead);
        if exceeds_half(foreign_or_ahead.saturating_add(self.withheld), support) {
            return Err(if exceeds_half(self.foreign, support) {
                TagFault::Foreign
            } else if exceeds_half(foreign_or_ahead, support) {
                TagFault::Ahead
            } else {
                TagFault::Withheld
            });
        }
        if self.own.saturating_mul(100) < self.blocks().saturating_mul(LEAST_OWN) {
            return Err(TagFault::Own);
        }
        if self.kin > self.own.saturating_mul(MOST_KIN) {
            return Err(TagFault::Kin);
        }
        Ok(())
    }
}

/// Whether the tags against the chain are more than half of those for it.
const fn exceeds_half(against: u32, support: u32) -> bool {
    against.saturating_mul(2) > support
}

impl Extend<TagClass> for TagCounts {
    fn extend<T: IntoIterator<Item = TagClass>>(&mut self, classes: T) {
        classes.into_iter().for_each(|class| self.add(class));
    }
}

/// Counts the classes of the newest Bitcoin blocks, which `classes` gives newest first, for each number of blocks in
/// [`JUDGED_TAGS`]. Blocks beyond the end of `classes` count as withheld.
#[must_use]
pub fn count_classes(classes: impl IntoIterator<Item = TagClass>) -> [TagCounts; JUDGED_TAGS.len()] {
    let mut classes = classes.into_iter().chain(core::iter::repeat(TagClass::Withheld));
    let mut counts = TagCounts::default();
    JUDGED_TAGS.map(|blocks| {
        counts.extend(classes.by_ref().take(blocks.saturating_sub(counts.blocks()) as usize));
        counts
    })
}

/// Accepts if the tags of each number of blocks in [`JUDGED_TAGS`] are accepted.
///
/// # Errors
/// The fault of the smallest number of blocks whose tags are not accepted.
pub fn accept_all(counts: &[TagCounts; JUDGED_TAGS.len()]) -> Result<(), TagFault> {
    counts.iter().try_for_each(TagCounts::accept)
}

/// The result of judging the tags of the newest Bitcoin blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagReport {
    /// Counts of the newest blocks, for each number of them in [`JUDGED_TAGS`].
    pub counts: [TagCounts; JUDGED_TAGS.len()],
    /// Whether the tags of each number of blocks are accepted ([`accept_all`]).
    pub verdict: Result<(), TagFault>,
    /// Tags of other branches, newest first.
    pub foreign: Vec<(Tag, BranchRange)>,
}

impl TagReport {
    /// Counts of the newest 72 blocks, the greatest number in [`JUDGED_TAGS`].
    #[must_use]
    pub fn all(&self) -> TagCounts {
        self.counts.last().copied().unwrap_or_default()
    }
}

/// Classes the tags of the newest Bitcoin blocks up to the height `top` and judges them. The block at `top` should have another
/// block on top, so that no stale block counts.
///
/// The dates of the chain's headers tell which block numbers the chain had when a Bitcoin block was mined. A tag whose number is
/// below these is of another branch, and so is one whose number is far above them, unless the chain shows its block. The commitments
/// do not matter then: who makes a false window chooses its block numbers freely, and also the headers below it, which need no work.
#[must_use]
pub fn judge_tags(
    chain: &impl ShownChain,
    bitcoin: &BitcoinChain,
    coinbases: &Coinbases,
    dated: &DatedWork,
    top: u32,
) -> TagReport {
    let mut foreign = Vec::new();
    // `count_classes` takes only as many as are judged.
    let heights = (0..=top).rev();
    let classes = heights.map(|height| match coinbases.tag_at(bitcoin, height) {
        None => TagClass::Withheld,
        Some(None) => TagClass::None,
        Some(Some(tag)) => {
            let (number, class) = (u64::from(tag.number), classify(tag, chain));
            let is_too_new = dated.had_not_reached(number.saturating_sub(MAX_AHEAD), height);
            let of_other_branch = TagClass::Foreign(BranchRange { after: None, until: chain.head() });
            let class = match class {
                _ if dated.was_past(number, height) => of_other_branch,
                TagClass::Own | TagClass::Foreign(_) => class,
                _ if is_too_new => of_other_branch,
                _ => class,
            };
            if let TagClass::Foreign(range) = class {
                foreign.push((*tag, range));
            }
            class
        }
    });
    let counts = count_classes(classes);
    TagReport { counts, verdict: accept_all(&counts), foreign }
}
