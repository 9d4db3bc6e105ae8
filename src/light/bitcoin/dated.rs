//! Dated work: Rootstock work counts for the Bitcoin block on which it was done.
//!
//! The Bitcoin header in a merged-mining proof names its parent, which was Bitcoin's tip when the Rootstock header was mined. So an
//! attacker cannot save up work: it counts only if that parent is in the Bitcoin chain, and the height of the parents must not
//! decrease along the Rootstock chain. In 1,200 headers of July 2022 the parents are 58 Bitcoin blocks in ascending order.

use alloc::collections::{BTreeMap, VecDeque};

use super::seen_blocks::SeenBlocks;
use crate::consensus::bitcoin::{BitcoinChain, BitcoinHeader};
use crate::consensus::{ChainView, Origin, VerifiedHeader};
use crate::types::{B256, U256};

/// Shortest suffix of the Bitcoin chain that is judged, in blocks. A branch that is younger than that is not detected.
pub const MIN_SUFFIX: u32 = 12;
/// Longest suffix that is judged, in blocks: three days.
pub const MAX_SUFFIX: u32 = 432;
/// Most Bitcoin blocks that the newest named parent may be behind the judged tip. With a Rootstock block every 30 seconds
/// on average, an honest head is further behind for 5 millionths of the time; with a limit of 2 blocks, for 108 millionths.
pub const MAX_LAG: u32 = 3;
/// Most Rootstock headers that are kept: more than three days of them at the highest rate ever seen.
pub const MAX_DATED_HEADERS: usize = 16_384;
/// Most seconds that the time of a header may be below that of its Bitcoin parent, or above that of the block on top of this
/// parent: the clocks of their miners may differ by so much. A header that is older than its parent was not mined on it. A header
/// that is much younger than the next block states a wrong time, or its miner named an old block, so that the work would
/// count for the wrong suffix.
const MAX_CLOCK_DIFFERENCE: u64 = 7_200;

/// The least dated work in suffixes of the Bitcoin chain from a length on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// Shortest suffix to which the floor applies, in blocks.
    pub blocks: u32,
    /// Dated Rootstock work in percent of Bitcoin's.
    pub percent: u32,
}

/// The floors, shortest suffix first.
///
/// Canonical headers carry 20 to 31 % of Bitcoin's work. The recorded headers show at least 10.9 % over 12 Bitcoin blocks
/// and 19.2 % over 36. If Bitcoin's miners find twelve blocks within 40 minutes by luck, the share is smaller: with a floor of 7 %
/// for twelve blocks too, 30 of 10,000 honest windows would be refused at a share of 20 %, and 5 at 25 %; with these floors none.
/// From 36 blocks on tags are judged as well.
pub const FLOORS: [Floor; 2] = [Floor { blocks: MIN_SUFFIX, percent: 3 }, Floor { blocks: 36, percent: 7 }];

/// The parts of a Rootstock header that date its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatedHeader {
    /// Rootstock block number.
    pub number: u64,
    /// Rootstock block hash.
    pub hash: B256,
    /// Hash of the Bitcoin block that the Bitcoin header in the proof names as its parent, in internal byte order; zero without a
    /// proof.
    pub parent: B256,
    /// The work of the header: its difficulty.
    pub work: U256,
    /// The time that the header states, in seconds since 1970.
    pub time: u64,
}

impl DatedHeader {
    /// The parts of a verified header.
    #[must_use]
    pub fn of(header: &VerifiedHeader) -> Self {
        let parent = BitcoinHeader::first_of(&header.bitcoin_header).map_or(B256::ZERO, |btc| btc.previous());
        let (number, hash, time) = (header.number, header.hash(), header.timestamp);
        Self { number, hash, parent, work: header.difficulty.value(), time }
    }
}

/// A header with its date.
#[derive(Debug, Clone, Copy)]
struct DatedEntry {
    header: DatedHeader,
    /// Height of the Bitcoin parent, if that block is in the Bitcoin chain and fits the time of the header.
    parent: Option<u32>,
    /// Whether the work counts: the parent has a height, and no earlier header whose work counts names a higher parent.
    counts: bool,
    /// The highest parent of the headers up to this one whose work counts.
    newest: Option<u32>,
}

/// The dated work in a suffix of the Bitcoin chain, which its newest blocks form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatedSuffix {
    /// Number of Bitcoin blocks.
    pub blocks: u32,
    /// Rootstock work that was done while these blocks were mined.
    pub work: U256,
    /// Work of these Bitcoin blocks.
    pub bitcoin: U256,
}

impl DatedSuffix {
    /// The dated work in hundredths of a percent of Bitcoin's.
    #[must_use]
    pub fn basis_points(&self) -> u64 {
        let scaled = self.work.saturating_mul(U256::from(10_000));
        // Every Bitcoin block has work, so only a suffix of no blocks has none.
        scaled.checked_div(self.bitcoin).unwrap_or_default().saturating_to()
    }

    /// The floor of suffixes of this length, in percent; 0 if they are too short to be judged.
    #[must_use]
    pub fn floor(&self) -> u32 {
        let floors = FLOORS.iter().filter(|floor| floor.blocks <= self.blocks);
        floors.map(|floor| floor.percent).max().unwrap_or_default()
    }

    /// Whether the work is below the floor.
    #[must_use]
    pub fn is_low(&self) -> bool {
        let found = self.work.saturating_mul(U256::from(100));
        found < self.bitcoin.saturating_mul(U256::from(self.floor()))
    }

    /// Whether this suffix is lower than another one, each in relation to its floor.
    fn is_lower_than(&self, other: &Self) -> bool {
        let scaled = |a: &Self, b: &Self| a.basis_points().saturating_mul(u64::from(b.floor()));
        scaled(self, other) < scaled(other, self)
    }
}

/// The dated work of a Rootstock chain, as seen from one block of the Bitcoin chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DatedReport {
    /// Height of the Bitcoin block at which suffixes end.
    pub tip: u32,
    /// How many blocks the newest named parent is below the tip; `None` if no header names a block of the chain.
    pub lag: Option<u32>,
    /// Length of the longest suffix that could be judged. Below [`MIN_SUFFIX`] nothing was judged.
    pub judged: u32,
    /// The judged suffix with the least work in relation to its floor.
    pub lowest: Option<DatedSuffix>,
}

impl DatedReport {
    /// Whether the newest named parent is too far behind.
    #[must_use]
    pub fn lags(&self) -> bool {
        self.lag.is_none_or(|lag| lag > MAX_LAG)
    }

    /// The suffix below its floor, if there is one.
    #[must_use]
    pub fn low(&self) -> Option<DatedSuffix> {
        self.lowest.filter(DatedSuffix::is_low)
    }
}

/// The dates of the canonical headers from a block number on. A new header costs a few steps; headers are looked at again only where
/// the Bitcoin chain changed below them.
#[derive(Debug, Clone, Default)]
pub struct DatedWork {
    /// First Rootstock block that is dated.
    from: u64,
    /// The dated headers, oldest first.
    entries: VecDeque<DatedEntry>,
    /// The highest header whose proof of work was not checked at the last look.
    unproven: Option<u64>,
    /// The work that counts, by the height of its Bitcoin parent.
    by_parent: BTreeMap<u32, U256>,
    /// The Bitcoin blocks at the last look, which tell where the Bitcoin chain has changed.
    seen: SeenBlocks,
}

impl DatedWork {
    /// Dates the canonical headers from this block number on.
    #[must_use]
    pub fn new(from: u64) -> Self {
        Self::after(from, SeenBlocks::default())
    }

    /// As [`Self::new`], if these Bitcoin blocks were seen before.
    pub(super) fn after(from: u64, seen: SeenBlocks) -> Self {
        Self { from, seen, ..Self::default() }
    }

    /// The Bitcoin blocks that were seen.
    pub(super) const fn seen(&self) -> &SeenBlocks {
        &self.seen
    }

    /// The Bitcoin blocks that were seen, mutable.
    pub(super) const fn seen_mut(&mut self) -> &mut SeenBlocks {
        &mut self.seen
    }

    /// Follows both chains. Call this after either chain has changed. Headers whose proof of work is not checked have no date.
    pub fn follow(&mut self, view: &ChainView, bitcoin: &BitcoinChain) {
        self.follow_bitcoin(bitcoin);
        let unproven = view.unproven();
        if unproven != self.unproven {
            // The proofs of work of more restored headers are checked now, below those that are dated, so all are dated again.
            self.unproven = unproven;
            self.entries.clear();
            self.by_parent.clear();
        }
        while self
            .entries
            .back()
            .is_some_and(|last| !view.is_canonical(last.header.number, &last.header.hash))
        {
            self.pop();
        }
        let lowest = self.from.max(view.lowest()).max(unproven.map_or(0, |number| number.saturating_add(1)));
        let from = self.entries.back().map_or(lowest, |last| last.header.number.saturating_add(1));
        // More headers than are kept need not be looked at.
        let head = view.head().number;
        let from = from.max(head.saturating_sub(MAX_DATED_HEADERS as u64));
        let mined = |header: &&VerifiedHeader| matches!(header.evidence().origin, Origin::Mined(_));
        for header in (from..=head).filter_map(|number| view.by_number(number)).filter(mined) {
            self.push(DatedHeader::of(header), bitcoin);
        }
    }

    /// Adds the next header of the chain.
    pub fn push(&mut self, header: DatedHeader, bitcoin: &BitcoinChain) {
        self.add(header, bitcoin);
        while self.entries.len() > MAX_DATED_HEADERS {
            if let Some(oldest) = self.entries.pop_front() {
                self.discount(&oldest);
            }
        }
    }

    /// Dates those headers again whose dates have changed with the Bitcoin chain since the last call.
    pub fn follow_bitcoin(&mut self, bitcoin: &BitcoinChain) {
        if !self.seen.has_changed(bitcoin) {
            return;
        }
        let fork = self.seen.look(bitcoin);
        let changed = |entry: &DatedEntry| match entry.parent {
            // The block on top of the parent was seen before and is still the same.
            Some(height) if fork.is_some_and(|fork| height < fork) => false,
            parent => parent_of(&entry.header, bitcoin) != parent,
        };
        // Whether the work of a header counts depends on all headers before it, so all from the first changed one are added again.
        if let Some(first) = self.entries.iter().position(changed) {
            let again = self.entries.split_off(first);
            again.iter().for_each(|entry| self.discount(entry));
            again.into_iter().for_each(|entry| self.add(entry.header, bitcoin));
        }
    }

    /// Number of blocks removed by the deepest reorganisation of the Bitcoin chain's last day (144 blocks up to `tip`).
    #[must_use]
    pub fn reorganisation(&self, tip: u32) -> Option<u32> {
        self.seen.removed(tip)
    }

    /// Dates the next header.
    fn add(&mut self, header: DatedHeader, bitcoin: &BitcoinChain) {
        let before = self.entries.back().and_then(|entry| entry.newest);
        let parent = parent_of(&header, bitcoin);
        let counts = parent.is_some() && parent >= before;
        let newest = if counts { parent } else { before };
        if let Some(height) = parent.filter(|_| counts) {
            let sum = self.by_parent.entry(height).or_default();
            *sum = sum.saturating_add(header.work);
        }
        self.entries.push_back(DatedEntry { header, parent, counts, newest });
    }

    /// Removes the newest header.
    fn pop(&mut self) {
        if let Some(last) = self.entries.pop_back() {
            self.discount(&last);
        }
    }

    /// Subtracts a removed header's work from the sums.
    fn discount(&mut self, entry: &DatedEntry) {
        let Some(height) = entry.parent.filter(|_| entry.counts) else { return };
        if let Some(sum) = self.by_parent.get_mut(&height) {
            *sum = sum.saturating_sub(entry.header.work);
            if sum.is_zero() {
                self.by_parent.remove(&height);
            }
        }
    }

    /// Number of headers that are dated.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no header is dated.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether the chain was already past the Rootstock block `number` when the Bitcoin block at `height` was mined: all dated headers
    /// are above `number`, although the first of them was mined before that Bitcoin block.
    pub(super) fn was_past(&self, number: u64, height: u32) -> bool {
        let first = self.entries.front().map(|oldest| oldest.header.number);
        let parent = self.by_parent.keys().next();
        first.zip(parent).is_some_and(|(first, parent)| number < first && height > parent.saturating_add(1))
    }

    /// Whether the chain had not reached the Rootstock block `number` yet when the Bitcoin block at `height` was mined: the first
    /// header that was mined on that Bitcoin block or on a later one is below `number`.
    pub(super) fn had_not_reached(&self, number: u64, height: u32) -> bool {
        let later = self.entries.partition_point(|entry| entry.newest < Some(height));
        self.entries.get(later).is_some_and(|entry| entry.header.number < number)
    }

    /// First Rootstock block that is dated.
    pub(super) const fn from(&self) -> u64 {
        self.from
    }

    /// Heights of the Bitcoin blocks that are named as parents, with the work that counts for each, lowest first.
    pub fn parents(&self) -> impl Iterator<Item = (u32, U256)> + '_ {
        self.by_parent.iter().map(|(height, work)| (*height, *work))
    }

    /// Judges every suffix of the Bitcoin chain that ends at `tip`, as far down as the headers reach.
    ///
    /// Work counts for the suffix of `b` blocks if its parent is at `tip - b` to `tip - 1`: the work was done while these blocks
    /// were mined. The lowest parent is left out, because headers below the dated ones may name it too.
    #[must_use]
    pub fn report(&self, bitcoin: &BitcoinChain, tip: u32) -> DatedReport {
        let newest = self.entries.back().and_then(|entry| entry.newest);
        let mut report = DatedReport {
            tip,
            lag: newest.map(|newest| tip.saturating_sub(newest)),
            judged: 0,
            lowest: None,
        };
        for suffix in self.suffixes(bitcoin, tip) {
            report.judged = suffix.blocks;
            let judged = suffix.blocks >= MIN_SUFFIX;
            if judged && report.lowest.is_none_or(|lowest| suffix.is_lower_than(&lowest)) {
                report.lowest = Some(suffix);
            }
        }
        report
    }

    /// The suffixes that end at `tip`, shortest first, as far as the dated headers reach.
    pub fn suffixes<'a>(
        &'a self,
        bitcoin: &'a BitcoinChain,
        tip: u32,
    ) -> impl Iterator<Item = DatedSuffix> + 'a {
        let first = self.by_parent.keys().next().map_or(tip, |lowest| lowest.saturating_add(1));
        let lowest = first.max(tip.saturating_sub(MAX_SUFFIX));
        let mut suffix = DatedSuffix { blocks: 0, work: U256::ZERO, bitcoin: U256::ZERO };
        (lowest..tip).rev().map(move |parent| {
            let mined = parent.saturating_add(1);
            suffix.blocks = suffix.blocks.saturating_add(1);
            suffix.work =
                suffix.work.saturating_add(self.by_parent.get(&parent).copied().unwrap_or_default());
            suffix.bitcoin = suffix.bitcoin.saturating_add(bitcoin.work_of(mined..=mined));
            suffix
        })
    }
}

/// Height of a header's Bitcoin parent, if the parent is in the Bitcoin chain and was its newest block at the time of the header.
fn parent_of(header: &DatedHeader, bitcoin: &BitcoinChain) -> Option<u32> {
    let height = bitcoin.height_of(&header.parent)?;
    let time_at = |height: u32| bitcoin.at(height).map(|block| u64::from(block.time));
    let is_older =
        time_at(height).is_some_and(|time| time > header.time.saturating_add(MAX_CLOCK_DIFFERENCE));
    let next = time_at(height.saturating_add(1));
    let is_younger = next.is_some_and(|time| header.time > time.saturating_add(MAX_CLOCK_DIFFERENCE));
    (!is_older && !is_younger).then_some(height)
}
