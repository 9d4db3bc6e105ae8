//! Draws what happens after the chains that all scenarios share: honest and false miners of both chains, and sources.

use fastrand::Rng;

use super::mine::{
    Block, Branch, Choice, HEADERS, START, block_of, block_with, last_tag, later, meets, next_bits, search,
    shared, tagged, times,
};
use crate::{
    consensus::bitcoin::{HEADER_LEN, Tag, double_sha256, testing::header_of},
    types::{B256, SealedHeader},
};

/// How the headers of a false Rootstock branch are dated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Forgery {
    /// On Bitcoin's tips, as honest ones are.
    Dated,
    /// All on the Bitcoin blocks that were new when the branch left.
    SavedUp,
    /// As [`Self::SavedUp`], with the newest header on Bitcoin's tip.
    SavedUpButOne,
    /// Every other one on a newer block, after which the next one goes back.
    GoesBack,
    /// On blocks that no upstream knows.
    NoBlock,
    /// On stale blocks.
    Stale,
    /// A few blocks behind Bitcoin's tip.
    Lags(u32),
    /// Mined on the newest Bitcoin blocks alone, with times that reach back hours.
    Burst,
}

impl Forgery {
    /// Whether its headers name blocks that are not known yet at the times that they state.
    fn is_made_at_the_end(self) -> bool {
        matches!(self, Self::Burst | Self::GoesBack)
    }
}

/// A header as its miner made it.
#[derive(Clone)]
pub(super) struct Mined {
    pub(super) header: SealedHeader,
    /// Number of Bitcoin blocks of the scenario when it became known.
    pub(super) on: usize,
}

/// The headers of a branch above the shared ones.
#[derive(Clone)]
pub(super) struct Grown {
    pub(super) branch: Branch,
    pub(super) mined: Vec<Mined>,
}

/// A branch of the Bitcoin chain above one of its blocks.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum FalseBitcoin {
    /// Valid blocks, few of them.
    Stale,
    /// Valid blocks that replace many of the newest ones, or nearly do.
    Deep,
    /// Blocks of a target that is too easy.
    LowDifficulty,
    /// The right target, which no hash meets.
    NoWork,
    /// Times that are not above the median.
    EarlyTimes,
    /// Times ahead of the clock.
    LateTimes,
    /// The target of the old period in the new one.
    OldTarget,
    /// Real work that links to nothing known.
    OtherChain,
    /// Any bytes.
    Bytes,
}

/// Headers of a branch that a source shows, from its lowest up.
pub(super) struct Shown {
    pub(super) headers: Vec<[u8; HEADER_LEN]>,
    /// Whether they follow every rule of Bitcoin; otherwise the first one breaks one.
    pub(super) valid: bool,
}

/// The branches of Bitcoin's chain that a source shows, beside the honest chain.
pub(super) struct Source {
    pub(super) name: Option<FalseBitcoin>,
    pub(super) branches: Vec<Shown>,
    /// Newest blocks of the honest chain that it withholds.
    pub(super) withholds: usize,
    /// In percent: coinbases that it shows, and those that are not of their blocks.
    pub(super) coinbases: u64,
    pub(super) wrong: u64,
    /// Whether it answers at all.
    pub(super) answers: bool,
}

pub(super) struct Drawn {
    pub(super) bitcoin: Vec<Block>,
    pub(super) honest: Grown,
    pub(super) forged: Option<(Forgery, Grown)>,
    /// Bitcoin blocks at the first look.
    pub(super) first: usize,
    /// Scheduled times of the Bitcoin blocks of the scenario, the last shared one first.
    pub(super) schedule: Vec<u32>,
    pub(super) sources: Vec<Source>,
    /// The upstreams: whether each serves the false branch.
    pub(super) upstreams: Vec<bool>,
    pub(super) window: bool,
}

/// A branch that no upstream shows: from this block on its Bitcoin bytes differ from the honest chain's.
struct Hidden(u64);

/// The tags in coinbases of Bitcoin blocks, as weights.
struct Weights {
    honest: u64,
    forged: u64,
    kin: u64,
    hidden: u64,
    odd: u64,
}

fn random20(random: &mut Rng) -> [u8; 20] {
    core::array::from_fn(|_| random.u8(..))
}

/// The tag of a sibling of the next header, with other commitments where `other` says.
fn sibling(random: &mut Rng, data: [u8; 12], number: Option<u32>, other: impl Fn(u64) -> bool) -> [u8; 32] {
    let bytes: [u8; 32] = [&random20(random)[..], &data].concat().try_into().unwrap();
    let tag = Tag::from(bytes);
    let number = number.unwrap_or(tag.number);
    let newest = u64::from(tag.number - 1) / 64 * 64;
    let mut cpv = tag.cpv;
    for (step, byte) in cpv.iter_mut().enumerate() {
        if newest.checked_sub(64 * step as u64).is_some_and(&other) {
            *byte ^= 0x5a;
        }
    }
    [&tag.hash20[..], &cpv, &[tag.uncles], &number.to_be_bytes()].concat().try_into().unwrap()
}

/// The miners of a scenario.
struct Miners<'a> {
    random: &'a mut Rng,
    bitcoin: Vec<Block>,
    honest: Grown,
    forged: Option<(Forgery, Grown)>,
    hidden: Hidden,
    weights: Weights,
    /// Headers of the honest branch on each block, before and after an exit of merged miners.
    rates: (u64, u64),
    exit: usize,
    /// Bitcoin blocks for each header of the false branch, or headers for each block.
    every: usize,
    count: u64,
    mimics: bool,
    base: usize,
    end: usize,
    /// Stale blocks that a false branch names.
    siblings: Vec<[u8; HEADER_LEN]>,
    /// A sibling of an honest header, which the next one has as its uncle.
    uncle: Option<SealedHeader>,
}

impl Miners<'_> {
    /// Number of Bitcoin blocks of the scenario.
    fn grown(&self) -> usize {
        self.bitcoin.len() - self.base
    }

    fn honest_headers(&mut self, from: u32, count: u64, block: Option<u32>) {
        let previous = self.bitcoin.last().unwrap().hash;
        for (step, time) in (1..).zip(times(from, count)) {
            let block = block.filter(|_| step == count);
            let stale = block.is_none() && self.random.u64(..100) < 3;
            let previous = if stale { B256::repeat_byte(7) } else { previous };
            let choice = Choice { time, previous, block, byte: None, salt: 1 };
            let header = self.honest.branch.extend(choice, self.uncle.take());
            self.honest.mined.push(Mined { header, on: self.bitcoin.len() - self.base });
        }
    }

    /// The block that the next header of a false branch names, which is its newest if `newest`.
    fn named(&mut self, forgery: Forgery, newest: bool) -> B256 {
        let tip = self.bitcoin.len() - 1;
        let at = match forgery {
            Forgery::SavedUpButOne if newest => tip,
            Forgery::SavedUp | Forgery::SavedUpButOne => self.base - 1,
            Forgery::Lags(lag) => tip - lag as usize,
            Forgery::NoBlock => return B256::repeat_byte(0x77),
            Forgery::Stale => return self.sibling_of_tip(),
            Forgery::Dated | Forgery::Burst | Forgery::GoesBack => tip,
        };
        self.bitcoin[at].hash
    }

    /// Mines a Bitcoin block with the same parent as the newest one.
    fn sibling_of_tip(&mut self) -> B256 {
        let tip = self.bitcoin.last().unwrap();
        let below = self.bitcoin[self.bitcoin.len() - 2].hash;
        let stale = block_with(below, tip.height, tip.time + 1, tip.bits(), &[7]);
        self.siblings.push(stale.header);
        stale.hash
    }

    /// Mines headers of the false branch on the tip.
    fn forged_headers(&mut self, from: u32, block: Option<u32>) {
        let grown = self.grown();
        let Some(forgery) = self.forged.as_ref().map(|(forgery, _)| *forgery) else { return };
        if !grown.is_multiple_of(self.every) || forgery.is_made_at_the_end() {
            return;
        }
        for (step, time) in (1..).zip(times(from, self.count)) {
            let last = step == self.count;
            let previous = self.named(forgery, grown == self.end && last);
            self.forged_header(time, previous, block.filter(|_| last));
        }
    }

    fn forged_header(&mut self, time: u64, previous: B256, block: Option<u32>) {
        let on = self.grown();
        let Some((_, forged)) = &mut self.forged else { return };
        let next = forged.branch.head() + 1;
        let honest = self.honest.branch.headers.get((next - START) as usize);
        let copied = honest.filter(|_| self.mimics && block.is_none() && next.is_multiple_of(64));
        let byte = copied.and_then(|header| double_sha256(&header.bitcoin_header).first().copied());
        let header = forged.branch.extend(Choice { time, previous, block, byte, salt: 2 }, None);
        forged.mined.push(Mined { header, on });
    }

    /// Makes a false branch at the end, whose times are those of the hours before.
    fn make_at_the_end(&mut self, schedule: &[u32]) {
        let Some(forgery) = self.forged.as_ref().map(|(forgery, _)| *forgery) else { return };
        if !forgery.is_made_at_the_end() {
            return;
        }
        let (tip, every, count) = (self.bitcoin.len() - 1, self.every, self.count);
        let rounds = schedule.iter().enumerate().filter(|(round, _)| round % every == 0);
        for (index, (round, from)) in rounds.enumerate() {
            let at = match forgery {
                Forgery::Burst => tip - (schedule.len() - 1 - round) * 12 / schedule.len(),
                _ => tip.min(self.base - 1 + round + if index % 2 == 0 { 10 } else { 0 }),
            };
            let previous = self.bitcoin[at].hash;
            times(*from, count).for_each(|time| self.forged_header(time, previous, None));
        }
    }

    /// Mines headers on the tip, and the next Bitcoin block.
    fn round(&mut self, from: u32) {
        let bits = next_bits(&self.bitcoin);
        let count = if self.grown() < self.exit { self.rates.0 } else { self.rates.1 };
        let Weights { honest, forged, kin, hidden, odd } = self.weights;
        let place = self.random.u64(..100);
        let dated = self.forged.as_ref().is_some_and(|(forgery, _)| *forgery == Forgery::Dated);
        let forges = dated && self.grown().is_multiple_of(self.every);
        let proves = place < honest && count > 0;
        let proves_forged = !proves && forges && (honest..honest + forged).contains(&place);
        let by_uncle = proves && self.random.u64(..100) < 30;
        self.honest_headers(from, count, (proves && !by_uncle).then_some(bits));
        self.forged_headers(from, proves_forged.then_some(bits));
        let (tip, height) = (self.bitcoin.last().unwrap().hash, self.bitcoin.last().unwrap().height + 1);
        let data = self.honest.branch.commitments();
        let place = place.saturating_sub(honest + forged);
        let first_different = self.hidden.0;
        let script = match place {
            _ if place < kin => tagged(&sibling(self.random, data, None, |_| false)),
            _ if place < kin + hidden => {
                tagged(&sibling(self.random, data, None, |number| number >= first_different))
            }
            _ if place < kin + hidden + odd => self.odd(data),
            _ => Vec::new(),
        };
        let mut block = if by_uncle {
            block_of(&self.mine_uncle(tip, bits), height)
        } else if proves {
            block_of(self.honest.branch.headers.last().unwrap(), height)
        } else if proves_forged {
            block_of(self.forged.as_ref().unwrap().1.branch.headers.last().unwrap(), height)
        } else {
            block_with(tip, height, later(from), bits, &script)
        };
        block.tag = last_tag(&block.coinbase);
        self.bitcoin.push(block);
    }

    /// Mines a sibling of the newest honest header, which is the next Bitcoin block.
    fn mine_uncle(&mut self, previous: B256, bits: u32) -> SealedHeader {
        let time = self.honest.branch.headers.last().unwrap().timestamp;
        let choice = Choice { time, previous, block: Some(bits), byte: None, salt: 3 };
        let uncle = self.honest.branch.sibling(choice);
        self.uncle = Some(uncle.clone());
        uncle
    }

    /// Tags that are cut, several in one coinbase, far ahead, of any bytes, or of a block that is shown, perhaps an old one.
    fn odd(&mut self, data: [u8; 12]) -> Vec<u8> {
        let kin = sibling(self.random, data, None, |_| false);
        let headers = &self.honest.branch.headers;
        let newest = headers.len() - 1;
        let shown = &headers[if self.random.bool() { newest } else { self.random.usize(..=newest) }];
        let tag = double_sha256(&shown.coinbase_tx);
        let garbage = [&random20(self.random)[..], &tag[..12]].concat();
        match self.random.u64(..6) {
            0 => tagged(&kin[..31]),
            1 => [tagged(&kin), tagged(&garbage[..20])].concat(),
            2 => [tagged(&garbage), tagged(&kin)].concat(),
            3 => [tagged(&kin), tagged(&garbage)].concat(),
            4 => {
                let number = self.honest.branch.head() as u32 + 8 + self.random.u32(1..30);
                tagged(&sibling(self.random, data, Some(number), |_| false))
            }
            _ => {
                let at = shown.coinbase_tx.windows(9).rposition(|window| window == b"RSKBLOCK:").unwrap();
                tagged(&shown.coinbase_tx[at + 9..][..32])
            }
        }
    }
}

/// Headers of a false branch of the Bitcoin chain. `now` is the clock in seconds.
fn false_bitcoin(
    kind: &FalseBitcoin,
    blocks: &[Block],
    fork: usize,
    count: usize,
    now: u32,
    random: &mut Rng,
) -> Vec<[u8; HEADER_LEN]> {
    let mut all = blocks[..=fork].to_vec();
    let mut made = Vec::new();
    let start = all.len();
    let mut previous =
        if *kind == FalseBitcoin::OtherChain { B256::repeat_byte(0x99) } else { all[fork].hash };
    for step in 0..count {
        let parent = all.last().unwrap();
        let (height, bits) = (parent.height + 1, next_bits(&all));
        let (time, bits) = match kind {
            FalseBitcoin::LowDifficulty => (parent.time + 1, 0x201f_ffff),
            FalseBitcoin::EarlyTimes => (all[fork - 6].time.min(parent.time), bits),
            FalseBitcoin::LateTimes => (now + 12_000 + step as u32, bits),
            FalseBitcoin::OldTarget => (parent.time + 1, all[fork].bits()),
            _ => (parent.time + 1, bits),
        };
        let root = double_sha256(&random.u64(..).to_le_bytes());
        let mut header = header_of(previous, root, time, bits, 0);
        let accept = meets(bits);
        let no_work = *kind == FalseBitcoin::NoWork;
        let hash = search(&mut header, |hash| accept(hash) != no_work);
        previous = hash;
        all.push(Block { header, hash, height, time, ..all[start - 1].clone() });
        made.push(header);
    }
    if *kind == FalseBitcoin::Bytes {
        made.iter_mut().for_each(|header| header.iter_mut().for_each(|byte| *byte = random.u8(..)));
    }
    made
}

fn source(random: &mut Rng, miners: &Chains<'_>, now: u32) -> Source {
    let Chains { bitcoin, base, first, siblings } = miners;
    let tip = bitcoin.len() - 1;
    let kind = match random.u64(..21) {
        0..4 => Some(FalseBitcoin::Stale),
        4 => Some(FalseBitcoin::LowDifficulty),
        5 => Some(FalseBitcoin::NoWork),
        6 => Some(FalseBitcoin::EarlyTimes),
        7 => Some(FalseBitcoin::LateTimes),
        // The end of the period is the third block of the scenario.
        8 if tip >= base + 2 => Some(FalseBitcoin::OldTarget),
        9 => Some(FalseBitcoin::OtherChain),
        10 => Some(FalseBitcoin::Bytes),
        11 => Some(FalseBitcoin::Deep),
        _ => None,
    };
    let mut branches = Vec::new();
    if let Some(kind) = &kind {
        let top = if random.bool() { tip } else { base + first - 1 };
        let depth = match kind {
            FalseBitcoin::Deep => 4 + random.usize(..16),
            _ => random.usize(..8).min(top + 1 - base),
        };
        let fork = if *kind == FalseBitcoin::OldTarget { base + 2 } else { top - depth };
        let count = match kind {
            FalseBitcoin::Stale => 1 + random.usize(..5).min(depth + 1),
            FalseBitcoin::Deep => depth - 2 + random.usize(..5),
            FalseBitcoin::LowDifficulty => depth * 6 + 6,
            FalseBitcoin::OldTarget => (tip - fork).min(30) + 2,
            _ => depth + 2,
        };
        let headers = false_bitcoin(kind, bitcoin, fork, count, now, random);
        branches.push(Shown { headers, valid: matches!(kind, FalseBitcoin::Stale | FalseBitcoin::Deep) });
    }
    if random.bool() {
        branches.extend(siblings.iter().map(|header| Shown { headers: vec![*header], valid: true }));
    }
    Source {
        name: kind,
        branches,
        withholds: if random.u64(..100) < 25 { random.usize(..40) } else { 0 },
        coinbases: *random.choice(&[100, 100, 90, 50, 0]).unwrap(),
        wrong: if random.u64(..100) < 30 { 30 } else { 0 },
        answers: random.u64(..100) < 85,
    }
}

/// The chains that sources choose from.
struct Chains<'a> {
    bitcoin: &'a [Block],
    base: usize,
    first: usize,
    siblings: &'a [[u8; HEADER_LEN]],
}

fn forgery(random: &mut Rng) -> Forgery {
    match random.u64(..12) {
        0..5 => Forgery::Dated,
        5 => Forgery::SavedUp,
        6 => Forgery::SavedUpButOne,
        7 => Forgery::GoesBack,
        8 => Forgery::NoBlock,
        9 => Forgery::Stale,
        10 => Forgery::Lags(random.u32(1..7)),
        _ => Forgery::Burst,
    }
}

fn weights(random: &mut Rng) -> Weights {
    if random.u64(..100) < 15 {
        // Most miners stand behind a branch that no upstream shows.
        return Weights { honest: random.u64(5..20), forged: 0, kin: 5, hidden: random.u64(20..70), odd: 5 };
    }
    Weights {
        honest: random.u64(5..40),
        forged: random.u64(..25),
        kin: random.u64(..20),
        hidden: if random.u64(..100) < 40 { random.u64(..15) } else { 0 },
        odd: if random.u64(..100) < 40 { random.u64(..15) } else { 0 },
    }
}

pub(super) fn draw(random: &mut Rng) -> Drawn {
    let shared = shared();
    let grown = Grown { branch: shared.rootstock.clone(), mined: Vec::new() };
    let blocks = if random.u64(..100) < 30 { random.usize(1..12) } else { random.usize(12..45) };
    let forged = (random.u64(..100) < 75).then(|| (forgery(random), grown.clone()));
    let exit = if random.u64(..100) < 30 { random.usize(..blocks + 1) } else { blocks + 1 };
    let weights = weights(random);
    let hidden = Hidden(grown.branch.head().saturating_sub(random.u64(..300)));
    let (base, bitcoin) = (shared.bitcoin.len(), shared.bitcoin.clone());
    let (every, count) = *random.choice(&[(1, 2), (1, 1), (2, 1), (2, 1), (3, 1), (3, 1), (2, 2)]).unwrap();
    let mimics = random.bool();
    let rates = (HEADERS, random.u64(1..=HEADERS));
    let late = forged.as_ref().is_some_and(|(forgery, _)| forgery.is_made_at_the_end());
    let first = if late { blocks } else { random.usize(blocks / 2..=blocks) };
    let mut miners = Miners {
        random,
        bitcoin,
        honest: grown,
        forged,
        hidden,
        weights,
        rates,
        exit,
        every,
        count,
        mimics,
        base,
        end: blocks,
        siblings: Vec::new(),
        uncle: None,
    };
    let mut schedule = vec![shared.time];
    for _ in 0..blocks {
        let from = *schedule.last().unwrap();
        miners.round(from);
        schedule.push(later(from));
    }
    let from = *schedule.last().unwrap();
    let rate = if blocks < miners.exit { rates.0 } else { rates.1 };
    miners.honest_headers(from, rate, None);
    miners.forged_headers(from, None);
    miners.make_at_the_end(&schedule);
    let Miners { bitcoin, honest, forged, random, siblings, .. } = miners;
    let now = schedule[blocks] + 600;
    let chains = Chains { bitcoin: &bitcoin, base, first, siblings: &siblings };
    let sources = (0..random.usize(..4)).map(|_| source(random, &chains, now)).collect();
    let upstreams = match forged {
        None => vec![false],
        Some(_) => match random.u64(..6) {
            0..3 => vec![true],
            3 => vec![false, true],
            4 => vec![true, false],
            _ => vec![false],
        },
    };
    Drawn { bitcoin, honest, forged, first, schedule, sources, upstreams, window: random.u64(..100) < 70 }
}
