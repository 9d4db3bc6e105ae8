//! Bitcoin's evidence for honest and forged windows of a Rootstock chain, simulated with fixed seeds.
//!
//! The Bitcoin chain is real but easy to mine. Rootstock headers are their dates and work, with mainnet's rates: between
//! two Bitcoin blocks a number of headers that chance decides, 20 on average. The functions that judge them are those of
//! the light client.

use fastrand::Rng;
use rootlight::consensus::bitcoin::{
    BitcoinChain, BitcoinCheckpoint, BitcoinHeader, BitcoinNetwork, HEADER_LEN, Tag, hash_number, target_of,
};
use rootlight::light::bitcoin::{
    DatedHeader, DatedReport, DatedWork, JUDGED_TAGS, MAX_LAG, MIN_SUFFIX, ShownChain, TagClass, TagCounts,
    TagFault, accept_all, classify, count_classes,
};
use rootlight::types::{B256, U256};

/// Target of the Bitcoin blocks, in compact form: 4,096 hashes on average.
const BITS: u32 = 0x1f0f_ffff;
/// Work of a Bitcoin block.
const BLOCK_WORK: f64 = 4_096.0;
/// Height of the checkpoint of the Bitcoin chain.
const START: u32 = 10_000;
/// Average number of Rootstock headers for each Bitcoin block: one every 30 seconds.
pub const HEADERS: u64 = 20;
/// Bitcoin blocks of a window: half a day and those that the limits of suffixes leave out.
const WINDOW: u64 = 76;

/// A Bitcoin chain, mined once for all draws.
pub struct Skeleton(BitcoinChain);

impl Skeleton {
    /// Mines some hundred blocks, about a second of hashing.
    #[must_use]
    pub fn mined(blocks: u32) -> Self {
        let checkpoint =
            BitcoinCheckpoint { height: START, hash: B256::repeat_byte(0x11), next_bits: BITS, time: 0 };
        let mut chain = BitcoinChain::new(BitcoinNetwork { checkpoint, limit: BITS, retargets: false });
        let target = target_of(BITS).expect("a target");
        for above in 1..=blocks {
            let mut header = [0; HEADER_LEN];
            header[4..36].copy_from_slice(chain.tip().hash.as_slice());
            header[68..72].copy_from_slice(&(600 * above).to_le_bytes());
            header[72..76].copy_from_slice(&BITS.to_le_bytes());
            let solved = (0u32..).any(|nonce| {
                header[76..].copy_from_slice(&nonce.to_le_bytes());
                hash_number(&BitcoinHeader::from(&header).hash()) <= target
            });
            assert!(solved);
            chain.insert(&header, u64::from(600 * blocks)).expect("a block");
        }
        Self(chain)
    }

    fn header(&self, number: u64, parent: u32, work: f64) -> DatedHeader {
        let hash = B256::from(U256::from(number));
        let parent = self.0.at(parent).expect("a block of the chain");
        let (time, work) = (u64::from(parent.time), U256::from(work as u64));
        DatedHeader { number, hash, parent: parent.hash, work, time }
    }
}

fn chance(rng: &mut Rng, probability: f64) -> bool {
    rng.f64() < probability
}

/// The miners of a draw, as shares of Bitcoin's work.
#[derive(Debug, Clone, Copy)]
pub struct Miners {
    /// Work of canonical headers.
    pub canonical: f64,
    /// Bitcoin blocks with a tag of the chain: of a canonical header, an uncle, or a block that never became known.
    pub tagged: f64,
    /// Share of tags beside those of canonical headers that are of proven uncles.
    pub uncles_proven: f64,
}

/// The verdicts of the rules on one window.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Dated work.
    pub dated: DatedReport,
    /// The least share of a suffix of 12 blocks or more, in hundredths of a percent.
    pub least_share: u64,
    /// The tags.
    pub tags: Result<(), TagFault>,
}

impl Outcome {
    /// Whether every rule holds.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.dated_holds() && self.tags.is_ok()
    }

    /// Whether the rules for dated work hold.
    #[must_use]
    pub fn dated_holds(&self) -> bool {
        !self.dated.lags() && self.dated.low().is_none() && self.dated.judged >= MIN_SUFFIX
    }
}

/// A window of an honest chain, looked at in a random moment.
pub fn honest_window(bitcoin: &Skeleton, miners: Miners, rng: &mut Rng) -> Outcome {
    let (mut dates, mut classes, mut tip) = (DatedWork::new(0), Vec::new(), START + 1);
    let work = miners.canonical * BLOCK_WORK / HEADERS as f64;
    for event in 0..WINDOW * (HEADERS + 1) {
        if chance(rng, 1.0 / (HEADERS + 1) as f64) {
            tip += 1;
            classes.push(honest_class(miners, rng));
        } else {
            dates.push(bitcoin.header(event, tip, work), &bitcoin.0);
        }
    }
    let dated = dates.report(&bitcoin.0, tip);
    let judged = dates.suffixes(&bitcoin.0, tip).filter(|suffix| suffix.blocks >= MIN_SUFFIX);
    let least_share = judged.map(|suffix| suffix.basis_points()).min().unwrap_or_default();
    // The newest Bitcoin block has none on top. The oldest ones fill up the window where chance gave few.
    classes.pop();
    let older = std::iter::from_fn(|| Some(honest_class(miners, rng)));
    let tags = accept_all(&count_classes(classes.iter().rev().copied().chain(older.take(72))));
    Outcome { dated, least_share, tags }
}

fn honest_class(miners: Miners, rng: &mut Rng) -> TagClass {
    let place = rng.f64();
    if place < miners.canonical {
        TagClass::Own
    } else if place >= miners.tagged {
        TagClass::None
    } else if chance(rng, miners.uncles_proven) {
        TagClass::Own
    } else {
        TagClass::Kin
    }
}

/// A forged window whose dated work breaks one bound. Returns what the rules say of it.
pub fn forged_window(bitcoin: &Skeleton, rng: &mut Rng) -> DatedReport {
    let tip = START + 100 + rng.u32(0..400);
    let from = tip - rng.u32(80..100);
    let mut dates = DatedWork::new(0);
    let mut push = |parent: u32, work: f64| {
        dates.push(bitcoin.header(u64::from(parent), parent, work), &bitcoin.0);
    };
    // Work of other suffixes is no object.
    let plenty = 10.0 * BLOCK_WORK;
    match rng.u32(0..5) {
        0 => low_work(from, tip, plenty, rng, push),
        // Saved up: the newest parents are old.
        1 => {
            let age = rng.u32(MAX_LAG + 1..70);
            (from..=tip - age).for_each(|parent| push(parent, plenty));
        }
        // Saved up, with the newest parent first.
        2 => {
            push(from, plenty);
            push(tip, plenty);
            (from..tip).for_each(|parent| push(parent, plenty));
        }
        // Saved up, with a header on the newest block last.
        3 => {
            let age = rng.u32(MIN_SUFFIX + 1..70);
            (from..tip - age).for_each(|parent| push(parent, plenty));
            push(tip, plenty);
        }
        // Parents of another chain.
        _ => {
            for number in 0..100 {
                let parent = B256::from(U256::from(rng.u64(..)));
                let header = DatedHeader { parent, ..bitcoin.header(number, tip, plenty) };
                dates.push(header, &bitcoin.0);
            }
        }
    }
    dates.report(&bitcoin.0, tip)
}

/// Less work than the floor since some block, spread in any way; before it and on the tip `plenty`.
fn low_work(from: u32, tip: u32, plenty: f64, rng: &mut Rng, mut push: impl FnMut(u32, f64)) {
    let blocks = rng.u32(MIN_SUFFIX..=70);
    let floor = rootlight::light::bitcoin::FLOORS.iter().filter(|floor| floor.blocks <= blocks);
    let percent = floor.map(|floor| floor.percent).max().unwrap_or_default();
    let mut left = f64::from(percent * blocks) / 100.0 * BLOCK_WORK * rng.f64();
    let single = rng.bool().then(|| rng.u32(tip - blocks..tip));
    for parent in from..tip {
        let share = match single {
            _ if parent < tip - blocks => plenty,
            Some(at) if at == parent => left,
            Some(_) => 0.0,
            None => left * rng.f64() / 4.0,
        };
        if parent >= tip - blocks {
            left -= share;
        }
        push(parent, share.floor());
    }
    push(tip, plenty);
}

/// A Rootstock chain with a branch, as tags see it. All branches share the blocks up to `fork`.
#[derive(Debug, Clone, Copy)]
pub struct Branch {
    id: u8,
    fork: u64,
    head: u64,
    salt: u64,
}

impl Branch {
    fn byte(&self, number: u64) -> u8 {
        let branch = if number > self.fork { u64::from(self.id) } else { 0 };
        Rng::with_seed(self.salt ^ (number << 8) ^ branch).u8(..)
    }

    fn tag(&self, number: u64) -> Tag {
        let newest = (number - 1) / 64;
        let cpv = std::array::from_fn(|step| self.byte(newest.saturating_sub(step as u64) * 64));
        let number = u32::try_from(number).expect("a number of 32 bits");
        Tag { hash20: [self.id; 20], cpv, uncles: 0, number }
    }
}

impl ShownChain for Branch {
    fn head(&self) -> u64 {
        self.head
    }

    fn is_own(&self, tag: &Tag) -> bool {
        // Blocks below the fork are of both branches.
        tag.hash20 == [self.id; 20] || u64::from(tag.number) <= self.fork
    }

    fn bitcoin_byte(&self, number: u64) -> Option<u8> {
        (number <= self.head).then(|| self.byte(number))
    }
}

/// Whether the tags of a forged chain are accepted that left the honest one `blocks` Bitcoin blocks ago, at 36 and at 72
/// blocks. `attacker` and `honest` are the shares of Bitcoin blocks with tags of each; before the fork all are honest. The
/// forged chain is as long as the honest one.
pub fn forged_tags(attacker: f64, honest: f64, blocks: u64, rng: &mut Rng) -> [bool; 2] {
    let fork = 100_000 + rng.u64(0..64);
    let (head, salt) = (fork + blocks * HEADERS, rng.u64(..));
    let shown = Branch { id: 1, fork, head, salt };
    let other = Branch { id: 2, ..shown };
    let mut counts = TagCounts::default();
    JUDGED_TAGS.map(|judged| {
        while counts.blocks() < judged {
            let below = u64::from(counts.blocks()) * HEADERS + rng.u64(0..HEADERS);
            let number = head.saturating_sub(below).max(1);
            let place = rng.f64();
            let before = number <= fork;
            let class = match place {
                _ if before && place < honest => TagClass::Own,
                _ if before => TagClass::None,
                _ if place < attacker => classify(&shown.tag(number), &shown),
                _ if place < attacker + honest => classify(&other.tag(number), &shown),
                _ => TagClass::None,
            };
            counts.extend([class]);
        }
        counts.accept().is_ok()
    })
}

/// How many tags of a hidden branch of some blocks are foreign. Its makers find the share `pool` of Bitcoin's blocks.
pub fn foreign_tags(pool: f64, blocks: u64, rng: &mut Rng) -> u32 {
    let fork = 100_000 + rng.u64(0..64);
    let shown = Branch { id: 1, fork, head: fork + blocks, salt: rng.u64(..) };
    let hidden = Branch { id: 2, ..shown };
    let mined: Vec<u64> = (fork + 1..=fork + blocks).filter(|_| chance(rng, pool / HEADERS as f64)).collect();
    let classes = mined.iter().map(|number| classify(&hidden.tag(*number), &shown));
    classes.filter(|class| matches!(class, TagClass::Foreign(_))).count() as u32
}

/// The probability that tags are accepted of which each is own with probability `attacker` and foreign with `honest`:
/// at 36, at 72, and at both, by the rule itself for all numbers of tags.
#[must_use]
pub fn exact_acceptance(attacker: f64, honest: f64) -> [f64; 3] {
    exact(attacker, honest, |counts| counts.accept().is_ok())
}

/// The probability that a chain is contested, at 36 tags or at 72, of which each is own with probability `own` and names one other
/// branch with `foreign`.
#[must_use]
pub fn exact_contest(own: f64, foreign: f64) -> f64 {
    let [_, _, never] = exact(own, foreign, |counts| !counts.is_contested(counts.foreign));
    1.0 - never
}

/// The probability that counts pass at 36, at 72, and at both.
fn exact(own: f64, foreign: f64, passes: impl Fn(&TagCounts) -> bool) -> [f64; 3] {
    let [few, many] = JUDGED_TAGS.map(|blocks| blocks as usize);
    let (first, whole) = (distribution(own, foreign, few), distribution(own, foreign, many));
    let second = distribution(own, foreign, many - few);
    let passes = |own: usize, foreign: usize, blocks: usize| {
        let (own, foreign) = (own as u32, foreign as u32);
        let none = (blocks as u32).saturating_sub(own + foreign);
        passes(&TagCounts { own, foreign, none, ..TagCounts::default() })
    };
    let sum = |all: &[(usize, usize, f64)], blocks: usize| -> f64 {
        all.iter().filter(|(own, foreign, _)| passes(*own, *foreign, blocks)).map(|(_, _, p)| p).sum()
    };
    let both =
        first.iter().filter(|(own, foreign, _)| passes(*own, *foreign, few)).map(|(own, foreign, p)| {
            let fits = second.iter().filter(|(o, f, _)| passes(own + o, foreign + f, many));
            p * fits.map(|(_, _, q)| q).sum::<f64>()
        });
    [sum(&first, few), sum(&whole, many), both.sum()]
}

/// The probability that at least `least` of the newest 72 Bitcoin blocks are a pool's.
#[must_use]
pub fn made_up(pool: f64, least: usize) -> f64 {
    let fewer = distribution(pool, 0.0, 72).into_iter().filter(|(tags, _, _)| *tags < least);
    1.0 - fewer.map(|(_, _, p)| p).sum::<f64>()
}

/// The probability of each number of own and foreign tags.
fn distribution(own: f64, foreign: f64, blocks: usize) -> Vec<(usize, usize, f64)> {
    let mut table = vec![vec![0.0; blocks + 1]; blocks + 1];
    table[0][0] = 1.0;
    for _ in 0..blocks {
        let mut next = vec![vec![0.0; blocks + 1]; blocks + 1];
        for (o, row) in table.iter().enumerate() {
            for (f, p) in row.iter().enumerate().filter(|(_, p)| **p > 0.0) {
                next[o][f] += p * (1.0 - own - foreign);
                next[o + 1][f] += p * own;
                next[o][f + 1] += p * foreign;
            }
        }
        table = next;
    }
    let rows = table.into_iter().enumerate();
    rows.flat_map(|(o, row)| row.into_iter().enumerate().map(move |(f, p)| (o, f, p)))
        .filter(|(_, _, p)| *p > 0.0)
        .collect()
}
