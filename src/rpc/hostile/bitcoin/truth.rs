//! The expected outcome of a scenario: which Bitcoin chain a client must hold after what sources have shown, and what
//! that chain says of a Rootstock branch. The rules are written down a second time here, as docs/trust/bitcoin.md has
//! them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::mine::{Block, Branch, START};
use crate::{
    consensus::bitcoin::{
        BitcoinHeader, HEADER_LEN, Tag, double_sha256, hash_number, target_of, work_of_target,
    },
    types::{B256, SealedHeader, U256},
};

/// A valid Bitcoin header that a source has shown.
struct Entry {
    previous: B256,
    height: u32,
    time: u32,
    work: U256,
    own: U256,
}

/// The valid Bitcoin headers that sources have shown.
#[derive(Default)]
pub(super) struct Known {
    entries: HashMap<B256, Entry>,
    /// The block whose coinbase was proven last, by height.
    coinbases: BTreeMap<u32, B256>,
}

impl Known {
    pub(super) fn base(blocks: &[Block]) -> Self {
        let mut known = Self::default();
        let first = &blocks[0];
        let previous = BitcoinHeader::from(&first.header).previous();
        let below = Entry {
            previous: B256::ZERO,
            height: first.height - 1,
            time: 0,
            work: U256::ZERO,
            own: U256::ZERO,
        };
        known.entries.insert(previous, below);
        blocks.iter().for_each(|block| known.add(&block.header));
        known
    }

    /// Adds a header that follows every rule, if its parent is known.
    pub(super) fn add(&mut self, header: &[u8; HEADER_LEN]) {
        let (hash, fields) = (double_sha256(header), BitcoinHeader::from(header));
        let previous = fields.previous();
        let own = work_of_target(target_of(fields.bits()).unwrap());
        let Some((height, work)) = self.entries.get(&previous).map(|below| (below.height, below.work)) else {
            return;
        };
        let (height, time) = (height + 1, fields.time());
        self.entries.insert(hash, Entry { previous, height, time, work: work + own, own });
    }

    pub(super) fn tip(&self) -> B256 {
        // Of two with the same work, the one with the lower hash.
        let best = self.entries.iter().max_by_key(|(hash, entry)| (entry.work, !hash_number(hash)));
        *best.unwrap().0
    }

    /// Number of blocks up to this one, which was the tip, that are no longer in the heaviest chain.
    pub(super) fn removed(&self, earlier_tip: B256) -> u32 {
        let heaviest = self.heaviest();
        let (mut below, mut removed) = (earlier_tip, 0);
        while !heaviest.heights.contains_key(&below) {
            (below, removed) = (self.entries[&below].previous, removed + 1);
        }
        removed
    }

    /// Forgets what a client has not stored: branches, and all coinbases but these.
    pub(super) fn forget(&mut self, coinbases: BTreeMap<u32, B256>) {
        let heights = self.heaviest().heights;
        self.entries.retain(|hash, _| heights.contains_key(hash));
        self.coinbases = coinbases;
    }

    /// Notes that a source has shown the coinbase of this block.
    pub(super) fn show_coinbase(&mut self, block: &Block) {
        self.coinbases.insert(block.height, block.hash);
    }

    pub(super) fn heaviest(&self) -> Heaviest<'_> {
        let mut heights = HashMap::new();
        let mut hash = self.tip();
        let tip = &self.entries[&hash];
        while let Some(entry) = self.entries.get(&hash) {
            heights.insert(hash, entry.height);
            hash = entry.previous;
        }
        let least = tip.work - tip.own * U256::from(2);
        let rivals =
            self.entries.iter().filter(|(hash, entry)| entry.work >= least && !heights.contains_key(*hash));
        let fork = |(_, entry): (&B256, &Entry)| {
            let mut below = entry.previous;
            while !heights.contains_key(&below) {
                below = self.entries[&below].previous;
            }
            heights[&below]
        };
        let judged = rivals.map(fork).min().unwrap_or(tip.height).min(tip.height);
        Heaviest { known: self, tip: tip.height, time: tip.time, judged, heights }
    }
}

/// The heaviest chain of what is known.
pub(super) struct Heaviest<'a> {
    known: &'a Known,
    pub(super) tip: u32,
    pub(super) time: u32,
    /// The newest block that no rival may replace.
    pub(super) judged: u32,
    pub(super) heights: HashMap<B256, u32>,
}

/// The verdict of dated work on a branch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Dated {
    /// Enough, and how much of the newest half day.
    Enough(u64),
    Low,
    Lags,
    Deep,
    /// The headers reach back too few blocks, or Bitcoin's newest block is too old.
    Unknown,
}

/// How many of the newest blocks have a tag of each class.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub(super) struct Classes {
    pub(super) own: u32,
    pub(super) kin: u32,
    pub(super) foreign: u32,
    pub(super) ahead: u32,
    pub(super) none: u32,
    pub(super) withheld: u32,
}

impl Classes {
    /// Whether the rule of tags holds.
    fn accepted(&self) -> bool {
        let Self { own, kin, foreign, ahead, none, withheld } = *self;
        let (support, all) = (own + kin, own + kin + foreign + ahead + none + withheld);
        let against = 2 * (foreign + ahead + withheld) > support;
        !against && 20 * own >= all && kin <= 3 * own
    }
}

/// A Rootstock branch as a client sees it: verified headers above `base`, and those below from `lowest` on.
pub(super) struct Seen<'a> {
    pub(super) branch: &'a Branch,
    pub(super) head: u64,
    pub(super) base: u64,
    pub(super) lowest: u64,
}

enum Class {
    Own,
    Kin,
    /// A tag of another branch, and whether that has no block in common with the chain, as far as it tells.
    Foreign(bool),
    Ahead,
    None,
}

impl Seen<'_> {
    fn header(&self, number: u64) -> Option<&crate::types::SealedHeader> {
        let held = (self.lowest..=self.head).contains(&number);
        held.then(|| &self.branch.headers[(number - START) as usize])
    }

    fn verified(&self) -> impl Iterator<Item = (u64, BitcoinHeader<'_>)> {
        (self.base.max(self.lowest.saturating_sub(1)) + 1..=self.head).map(|number| {
            (number, BitcoinHeader::first_of(&self.header(number).unwrap().bitcoin_header).unwrap())
        })
    }

    /// Proven uncles, each with the number of the block that has it.
    fn uncles(&self) -> impl Iterator<Item = &SealedHeader> {
        let first = self.verified().next().map_or(u64::MAX, |(number, _)| number);
        self.branch.uncles.range(first..).filter(|(block, _)| **block <= self.head).map(|(_, uncle)| uncle)
    }

    fn commitments(tag: &Tag) -> Vec<(u64, u8)> {
        let newest = u64::from(tag.number).saturating_sub(1) / 64;
        (0..7)
            .filter(|step| newest >= *step)
            .map(|step| ((newest - step) * 64, tag.cpv[step as usize]))
            .collect()
    }

    fn byte(&self, number: u64) -> Option<u8> {
        self.header(number).map(|header| double_sha256(&header.bitcoin_header)[0])
    }

    /// The height of the newest Bitcoin block that dates a header, and the work of the headers on each.
    fn works(&self, bitcoin: &Heaviest<'_>) -> (Option<u32>, BTreeMap<u32, u64>) {
        let dates = self.dates(bitcoin);
        let mut works: BTreeMap<u32, u64> = BTreeMap::new();
        dates.iter().for_each(|(_, height)| *works.entry(*height).or_default() += 4);
        (dates.last().map(|(_, height)| *height), works)
    }

    /// The headers that Bitcoin blocks date, with the heights of these, lowest first.
    fn dates(&self, bitcoin: &Heaviest<'_>) -> Vec<(u64, u32)> {
        let times: BTreeMap<u32, u64> = bitcoin
            .heights
            .iter()
            .map(|(hash, height)| (*height, u64::from(bitcoin.known.entries[hash].time)))
            .collect();
        let (mut newest, mut dates) = (None, Vec::new());
        for (number, header) in self.verified() {
            let Some(height) = bitcoin.heights.get(&header.previous()) else { continue };
            let time = self.header(number).unwrap().timestamp;
            let is_old = times.get(&(height + 1)).is_some_and(|next| time > next + 7_200);
            if newest > Some(*height) || time + 7_200 < times[height] || is_old {
                continue;
            }
            newest = Some(*height);
            dates.push((number, *height));
        }
        dates
    }

    fn class(&self, tag: &Tag, height: u32, dates: &[(u64, u32)]) -> Class {
        let lowest_parent = dates.first().map(|(_, parent)| *parent);
        let later = dates.iter().find(|(_, parent)| *parent >= height);
        let is_apart = later.is_some_and(|(later, _)| later + 8 < u64::from(tag.number));
        let first = self.verified().next().map(|(number, _)| number);
        if lowest_parent.is_some_and(|parent| height > parent + 1) && first > Some(u64::from(tag.number)) {
            return Class::Foreign(true);
        }
        let named = self.header(u64::from(tag.number));
        let uncles = self.uncles().filter(|uncle| uncle.number == u64::from(tag.number));
        if named.into_iter().chain(uncles).any(|header| header.mining_base_hash()[..20] == tag.hash20) {
            return Class::Own;
        }
        let compared: Vec<bool> = Self::commitments(tag)
            .into_iter()
            .filter_map(|(number, byte)| self.byte(number).map(|own| own == byte))
            .collect();
        match compared.as_slice() {
            all if all.contains(&false) => Class::Foreign(!all[all.len() - 1]),
            _ if is_apart => Class::Foreign(true),
            _ if u64::from(tag.number) > self.head + 8 => Class::Ahead,
            [] => Class::None,
            _ => Class::Kin,
        }
    }

    /// Whether two foreign tags are of one branch.
    fn agree(&self, (a, a_apart): &(Tag, bool), (b, b_apart): &(Tag, bool)) -> bool {
        let other: BTreeMap<u64, u8> = Self::commitments(b).into_iter().collect();
        let both: Vec<(u64, u8)> =
            Self::commitments(a).into_iter().filter(|(number, _)| other.contains_key(number)).collect();
        both.iter().all(|(number, byte)| other[number] == *byte)
            && both.iter().any(|(number, byte)| {
                (*a_apart && *b_apart) || self.byte(*number).is_some_and(|own| own != *byte)
            })
    }

    /// How many of these tags are of the branch that most are of; 0 if no two agree.
    fn largest_branch(&self, foreign: &[(Tag, bool)]) -> u32 {
        // The tags of a branch share a number: the index of its first tag.
        let mut branches: Vec<usize> = (0..foreign.len()).collect();
        for _ in foreign {
            for (one, tag) in foreign.iter().enumerate() {
                let same = (0..foreign.len()).filter(|other| self.agree(tag, &foreign[*other]));
                branches[one] = same.map(|other| branches[other]).min().unwrap_or(one).min(branches[one]);
            }
        }
        let size = |branch: &usize| branches.iter().filter(|other| *other == branch).count() as u32;
        branches.iter().map(size).max().filter(|size| *size > 1).unwrap_or_default()
    }

    /// The verdict of dated work, at this time in seconds, on a chain that reaches back at least this many Bitcoin blocks.
    pub(super) fn dated(&self, bitcoin: &Heaviest<'_>, now: u64, least: u32) -> Dated {
        let (newest, works) = self.works(bitcoin);
        let Some((lowest, newest)) = works.keys().next().copied().zip(newest) else { return Dated::Unknown };
        if now.saturating_sub(u64::from(bitcoin.time)) > 3 * 3_600 {
            return Dated::Unknown;
        }
        let reach = bitcoin.judged.saturating_sub(lowest + 1);
        if reach < least {
            return Dated::Unknown;
        }
        if bitcoin.tip - bitcoin.judged >= 6 {
            return Dated::Deep;
        }
        if bitcoin.judged.saturating_sub(newest) > 3 {
            return Dated::Lags;
        }
        let own: BTreeMap<u32, U256> =
            bitcoin.heights.iter().map(|(hash, height)| (*height, bitcoin.known.entries[hash].own)).collect();
        for blocks in 12..=reach.min(432) {
            let first = bitcoin.judged - blocks;
            let rootstock: u64 = works.range(first..bitcoin.judged).map(|(_, work)| work).sum();
            let theirs: U256 = (first + 1..=bitcoin.judged).map(|height| own[&height]).sum();
            let percent = if blocks < 36 { 3 } else { 7 };
            if U256::from(rootstock * 100) < theirs * U256::from(percent) {
                return Dated::Low;
            }
        }
        let recent = works.range(bitcoin.tip.saturating_sub(72)..).map(|(_, work)| work);
        Dated::Enough(recent.sum())
    }

    /// The Bitcoin blocks that commit to a block or to one above it.
    pub(super) fn above(&self, bitcoin: &Heaviest<'_>, number: u64) -> BTreeSet<u32> {
        let verified = self.verified().filter(|(found, _)| *found >= number);
        let own = verified.map(|(_, header)| header.hash());
        // An uncle stands behind its parent.
        let uncles = self.uncles().filter(|uncle| uncle.number > number);
        let uncles = uncles.map(|uncle| double_sha256(&uncle.bitcoin_header));
        let heights = own.chain(uncles).filter_map(|hash| bitcoin.heights.get(&hash).copied());
        heights.filter(|height| *height < bitcoin.judged).collect()
    }

    /// The classes of the newest 72 tags, and what all rules say: the word for it.
    pub(super) fn verdict(
        &self,
        bitcoin: &Heaviest<'_>,
        tags: &HashMap<B256, Option<Tag>>,
        now: u64,
    ) -> (Classes, &'static str) {
        let (mut classes, mut foreign) = (Classes::default(), Vec::new());
        let (mut accepted, mut contested) = (true, false);
        let dates = self.dates(bitcoin);
        for below in 1..=72 {
            let height = bitcoin.judged - below;
            let proven =
                bitcoin.known.coinbases.get(&height).filter(|hash| bitcoin.heights.contains_key(*hash));
            let count = match proven.map(|hash| tags[hash]) {
                None => &mut classes.withheld,
                Some(None) => &mut classes.none,
                Some(Some(tag)) => match self.class(&tag, height, &dates) {
                    Class::Own => &mut classes.own,
                    Class::Kin => &mut classes.kin,
                    Class::Ahead => &mut classes.ahead,
                    Class::None => &mut classes.none,
                    Class::Foreign(apart) => {
                        foreign.push((tag, apart));
                        &mut classes.foreign
                    }
                },
            };
            *count += 1;
            if below == 36 || below == 72 {
                accepted &= classes.accepted();
                contested |= self.largest_branch(&foreign) > classes.own + classes.kin;
            }
        }
        if contested {
            return (classes, "contested");
        }
        let dated = self.dated(bitcoin, now, 12);
        // A canonical header that is a Bitcoin block is looked for as far as headers reach back.
        let long = matches!(self.dated(bitcoin, now, 72), Dated::Enough(_));
        let recent = self.above(bitcoin, 0).range(bitcoin.judged - 72..).count();
        let held = accepted && matches!(dated, Dated::Enough(_)) && (recent > 0 || !long);
        (classes, if held { "held" } else { "weak" })
    }
}
