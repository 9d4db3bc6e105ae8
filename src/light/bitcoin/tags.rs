//! The tags of the newest Bitcoin blocks: whose chain Bitcoin's miners stand behind.
//!
//! A tag names a Rootstock block, and by its commitments (RSKIP-110) the chain below it, also where no upstream shows that
//! chain. The rule is that of RSKIP-643, without a hard fork.

use alloc::vec::Vec;

use super::coinbases::Coinbases;
use super::dated::DatedWork;
use super::shown::ShownChain;
use crate::consensus::bitcoin::{BitcoinChain, Tag};
use crate::consensus::fork_detection::COMMITMENT_STEP;

/// The newest Bitcoin blocks whose tags are judged; each number of them must be accepted. 36 blocks are six hours. A pool
/// with a fifth of Bitcoin's hashes passes against honest miners with 45 % in 3.5 of 10,000 tries at 36, 6 of ten
/// million at 72.
pub const JUDGED_TAGS: [u32; 2] = [36, 72];
/// The least share of own tags, in percent.
pub const LEAST_OWN: u32 = 5;
/// Most kin tags for one own tag. Commitments can be mimicked with five times the work, so kin alone never suffices.
pub const MOST_KIN: u32 = 3;
/// How many blocks a tag may be ahead of the head: four minutes, in which a header may be on its way.
pub const MAX_AHEAD: u64 = 8;

/// Where a branch left the shown chain, in Rootstock block numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BranchRange {
    /// A block that the branch still has, probably; `None` if its commitments do not reach so far down.
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

/// Whose chain the coinbase of a Bitcoin block stands behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TagClass {
    /// A block of the shown chain, or a proven uncle of one.
    Own,
    /// A block that is not shown, on the shown chain by all its commitments that can be compared.
    Kin,
    /// A block of another branch.
    Foreign(BranchRange),
    /// A block far above the shown head; its commitments that can be compared are right.
    Ahead,
    /// No block: there is no tag, or it has no commitment that can be compared.
    None,
    /// The coinbase is not proven.
    Withheld,
}

/// The Rootstock block numbers to which a tag commits, newest first, with the bytes.
pub(super) fn commitments(tag: &Tag) -> impl Iterator<Item = (u64, u8)> {
    let newest = u64::from(tag.number).saturating_sub(1) / COMMITMENT_STEP;
    let steps = tag.cpv.into_iter().enumerate();
    steps.filter_map(move |(step, byte)| {
        Some((newest.checked_sub(step as u64)?.saturating_mul(COMMITMENT_STEP), byte))
    })
}

/// The class of a tag.
///
/// A branch that left the chain `n` blocks below the tag is seen in 48 % of cases for `n` of 32, 98 % for 64, 100 % for 128:
/// every 64th block is committed to by one byte.
#[must_use]
pub fn classify(tag: &Tag, chain: &impl ShownChain) -> TagClass {
    if chain.is_own(tag) {
        return TagClass::Own;
    }
    let compared =
        commitments(tag).filter_map(|(number, byte)| Some((number, chain.bitcoin_byte(number)? == byte)));
    let compared: Vec<(u64, bool)> = compared.collect();
    // The lowest different block: a newer one may be equal by chance.
    if let Some(first) = compared.iter().rposition(|(_, equal)| !equal) {
        let until = compared.get(first).map_or(0, |(number, _)| *number);
        let after = first.checked_add(1).and_then(|below| compared.get(below)).map(|(number, _)| *number);
        return TagClass::Foreign(BranchRange { after, until });
    }
    if u64::from(tag.number) > chain.head().saturating_add(MAX_AHEAD) {
        return TagClass::Ahead;
    }
    if compared.is_empty() { TagClass::None } else { TagClass::Kin }
}

/// How many of some Bitcoin blocks have a tag of each class.
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
    /// Too many kin tags for the own ones: they may be of miners whose commitments were mimicked.
    Kin,
    /// Too many miners stand behind another branch.
    Foreign,
    /// Too many miners are ahead of the shown chain.
    Ahead,
    /// Too many coinbases are not proven to exclude that they are foreign.
    Withheld,
}

impl TagCounts {
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

    /// Number of Bitcoin blocks.
    #[must_use]
    pub const fn blocks(&self) -> u32 {
        let tags = self.own.saturating_add(self.kin).saturating_add(self.foreign);
        tags.saturating_add(self.ahead).saturating_add(self.none).saturating_add(self.withheld)
    }

    /// Whether more of the blocks name one other branch, by this many tags that agree, than name this chain.
    #[must_use]
    pub const fn is_contested(&self, agreeing: u32) -> bool {
        agreeing > self.own.saturating_add(self.kin)
    }

    /// Accepts if own tags are at least 5 % of the blocks, kin tags at most three times the own ones, and those against the
    /// chain at most half of own and kin together. Against it are foreign tags, those far ahead, and every coinbase
    /// that is withheld: it may be foreign.
    ///
    /// # Errors
    /// The gravest fault.
    pub const fn accept(&self) -> Result<(), TagFault> {
        let support = self.own.saturating_add(self.kin);
        let ahead = self.foreign.saturating_add(self.ahead);
        if exceeds_half(ahead.saturating_add(self.withheld), support) {
            return Err(if exceeds_half(self.foreign, support) {
                TagFault::Foreign
            } else if exceeds_half(ahead, support) {
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

const fn exceeds_half(against: u32, support: u32) -> bool {
    against.saturating_mul(2) > support
}

impl Extend<TagClass> for TagCounts {
    fn extend<T: IntoIterator<Item = TagClass>>(&mut self, classes: T) {
        classes.into_iter().for_each(|class| self.add(class));
    }
}

/// Counts the classes of the newest Bitcoin blocks, newest first, for each number of them in [`JUDGED_TAGS`]. Blocks that are not
/// given count as withheld.
#[must_use]
pub fn count_classes(classes: impl IntoIterator<Item = TagClass>) -> [TagCounts; JUDGED_TAGS.len()] {
    let mut classes = classes.into_iter().chain(core::iter::repeat(TagClass::Withheld));
    let mut counts = TagCounts::default();
    JUDGED_TAGS.map(|blocks| {
        counts.extend(classes.by_ref().take(blocks.saturating_sub(counts.blocks()) as usize));
        counts
    })
}

/// Accepts if each of these numbers of tags is accepted.
///
/// # Errors
/// The fault of the least number that is not accepted.
pub fn accept_all(counts: &[TagCounts; JUDGED_TAGS.len()]) -> Result<(), TagFault> {
    counts.iter().try_for_each(TagCounts::accept)
}

/// The tags of the newest Bitcoin blocks, classed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TagReport {
    /// Counts of the newest blocks, for each number of them in [`JUDGED_TAGS`].
    pub counts: [TagCounts; JUDGED_TAGS.len()],
    /// Whether each of these numbers of tags is accepted.
    pub verdict: Result<(), TagFault>,
    /// Tags of other branches, newest first.
    pub foreign: Vec<(Tag, BranchRange)>,
}

impl TagReport {
    /// Counts of the newest 72.
    #[must_use]
    pub fn all(&self) -> TagCounts {
        self.counts.last().copied().unwrap_or_default()
    }
}

/// Classes the tags of the newest Bitcoin blocks up to `top` and judges them. `top` should have a block on top of it, so that
/// no stale block counts.
///
/// A tag whose block is below those that the chain had at that time, by the dates of its headers, or far above them, is of
/// another branch, whatever its commitments are: the numbers of a false window are its makers' choice, and so are the headers
/// below it, without work.
#[must_use]
pub fn judge_tags(
    chain: &impl ShownChain,
    bitcoin: &BitcoinChain,
    coinbases: &Coinbases,
    dated: &DatedWork,
    top: u32,
) -> TagReport {
    let mut foreign = Vec::new();
    let heights = (0..=top).rev();
    let classes = heights.map(|height| match coinbases.tag_at(bitcoin, height) {
        None => TagClass::Withheld,
        Some(None) => TagClass::None,
        Some(Some(tag)) => {
            let (number, class) = (u64::from(tag.number), classify(tag, chain));
            let is_above = dated.is_above(number.saturating_sub(MAX_AHEAD), height);
            let elsewhere = TagClass::Foreign(BranchRange { after: None, until: chain.head() });
            let class = match class {
                _ if dated.is_below(number, height) => elsewhere,
                TagClass::Own | TagClass::Foreign(_) => class,
                _ if is_above => elsewhere,
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
