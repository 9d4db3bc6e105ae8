//! Drawing a scenario.

use fastrand::Rng;

use super::{
    chain::{Chains, DIFFICULTIES, START, Wish, signed, unmined},
    oracle::{BlockSelector, Probe},
    store::{HANDS, Hand, eclipse, long, written},
    upstream::{Foreign, ScenarioData, SimulatedUpstream, TRICKS, UpstreamTrick},
};
use crate::{
    consensus::{
        difficulty,
        testing::{child, mine},
    },
    light::{ClientConfig, MAX_BRANCH, UnprovenPolicy},
    types::{B256, Header, SealedHeader, U256},
};

/// Milliseconds in which a useful honest upstream responds.
const TIMELY: u64 = 2_000;

/// The subject of a scenario.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum ScenarioKind {
    Usual,
    /// The chain has too little work in some hours.
    Low,
    /// One upstream has not responded yet.
    Unsynced,
    /// The head is too old.
    Stale,
    /// The client has a store.
    Store,
    /// The store is longer than the part that is checked at once.
    Long,
    /// As [`Self::Long`], and no upstream serves another chain.
    Eclipsed,
}

/// The drawn parameters of a scenario, without its chains.
pub(super) struct Drawn {
    pub(super) setting: ScenarioKind,
    pub(super) hand: Option<Hand>,
    /// The tips of the honest chain, of an attacker's chain, and of abandoned branches.
    pub(super) main: B256,
    pub(super) attack: Option<B256>,
    pub(super) sides: Vec<B256>,
}

/// The upstreams of a scenario.
pub(super) struct ScenarioUpstreams {
    pub(super) data: ScenarioData,
    pub(super) upstreams: Vec<SimulatedUpstream>,
    pub(super) honest: bool,
}

/// Mines a block as an honest miner does.
pub(super) fn block(random: &mut Rng, chains: &mut Chains, tip: B256) -> B256 {
    let mut wish = Wish { transactions: chains.transactions(tip, random, 3), ..Wish::default() };
    if tip != chains.base.hash() && random.u64(..100) < 30 {
        for _ in 0..1 + random.u64(..2) {
            let uncle = match random.u64(..100) < 15 {
                // JSON does not contain an uncle's own uncle count.
                true => {
                    let parent = chains.block(&tip).header.parent_hash;
                    let wish = Wish { hidden: true, count: Some(11), ..Wish::default() };
                    let hash = chains.mine(parent, wish);
                    chains.block(&hash).header.clone()
                }
                false => chains.sibling(tip),
            };
            wish.uncles.push(uncle);
        }
    }
    if random.u64(..100) < 8 {
        wish.count = Some(1 << random.u64(..29));
    }
    chains.mine(tip, wish)
}

/// Blocks that each name the sibling of the previous block as an uncle.
fn with_uncles(chains: &mut Chains, mut tip: B256, blocks: u64) -> B256 {
    for _ in 0..blocks {
        let uncles = if tip == chains.base.hash() { Vec::new() } else { vec![chains.sibling(tip)] };
        tip = chains.mine(tip, Wish { uncles, ..Wish::default() });
    }
    tip
}

/// Blocks that name uncles without proof of work.
fn with_false_uncles(chains: &mut Chains, mut tip: B256, blocks: u64) -> B256 {
    for _ in 0..blocks {
        let parent = chains.block(&tip).header.parent_hash;
        let uncles = (0..3).map(|_| unmined(chains.draft(parent, &Wish::default()).0)).collect();
        tip = chains.mine(tip, Wish { uncles, bad_uncles: true, ..Wish::default() });
    }
    tip
}

/// Draws the honest chain and an attacker's chain, which has less work but states more, or whose work is harder to
/// verify.
pub(super) fn draw(random: &mut Rng) -> (Chains, Drawn) {
    let setting = match random.u64(..1_000) {
        0..2 => ScenarioKind::Long,
        2..4 => ScenarioKind::Eclipsed,
        4..90 => ScenarioKind::Low,
        90..170 => ScenarioKind::Unsynced,
        170..240 => ScenarioKind::Stale,
        240..460 => ScenarioKind::Store,
        _ => ScenarioKind::Usual,
    };
    let nothing = Drawn { setting, hand: None, main: B256::ZERO, attack: None, sides: Vec::new() };
    if setting == ScenarioKind::Long {
        return (long().chains.clone(), Drawn { main: long().tip, ..nothing });
    }
    if setting == ScenarioKind::Eclipsed {
        return (eclipse().chains.clone(), Drawn { main: eclipse().tip, ..nothing });
    }
    let difficulty = if random.u64(..100) < 4 { DIFFICULTIES[2] } else { DIFFICULTIES[random.usize(..2)] };
    let mut chains = Chains::new(difficulty);
    let mut main = chains.base.hash();
    for _ in 0..3 + random.u64(..12) {
        main = block(random, &mut chains, main);
    }
    let fork = main;
    let attack = match random.u64(..10) {
        0..2 => None,
        2..5 => {
            // The first block commits to uncles that do not exist; the honest branch has the work of its uncles.
            let blocks = 4 + random.u64(..4);
            let mut tip = chains.mine(fork, Wish { hidden: true, count: Some(1), ..Wish::default() });
            for _ in 1..blocks {
                tip = chains.mine(tip, Wish::default());
            }
            main = with_uncles(&mut chains, main, blocks / 2 + 1);
            Some(tip)
        }
        5..7 => {
            let blocks = 1 + random.u64(..3);
            let tip = with_false_uncles(&mut chains, fork, blocks);
            for _ in 0..=blocks {
                main = block(random, &mut chains, main);
            }
            Some(tip)
        }
        _ => {
            let mut tip = fork;
            for _ in 0..1 + random.u64(..4) {
                let transactions = chains.transactions(tip, random, 3);
                let count = (random.u64(..100) < 30).then(|| 1 << random.u64(..29));
                tip = chains.mine(tip, Wish { transactions, count, ..Wish::default() });
            }
            Some(tip)
        }
    };
    let mut sides = Vec::new();
    for _ in 0..random.u64(..3) {
        let branch = chains.branch(main);
        let mut tip = *random.choice(&branch).unwrap();
        for _ in 0..1 + random.u64(..3) {
            let transactions = chains.transactions(tip, random, 2);
            tip = chains.mine(tip, Wish { transactions, ..Wish::default() });
        }
        sides.push(tip);
    }
    if random.u64(..100) < 4 {
        // The newest blocks of this branch are too far from the chain to be connected to it.
        let mut tip = *random.choice(&chains.branch(main)).unwrap();
        for _ in 0..MAX_BRANCH as u64 + 1 + random.u64(..12) {
            tip = chains.mine(tip, Wish::default());
        }
        sides.push(tip);
    }
    if setting == ScenarioKind::Low {
        main = chains.mine(main, Wish { later: 7_200 + random.u64(..100_000), ..Wish::default() });
    }
    let best = |chains: &Chains| attack.iter().chain(&sides).map(|tip| chains.work(*tip)).max();
    while best(&chains).is_some_and(|best| best >= chains.work(main)) {
        main = block(random, &mut chains, main);
    }
    (chains, Drawn { main, attack, sides, ..nothing })
}

/// The content of the store.
pub(super) fn store(random: &mut Rng, chains: &mut Chains, drawn: &mut Drawn) -> Option<Vec<Vec<u8>>> {
    match drawn.setting {
        ScenarioKind::Long => return Some(long().pages.clone()),
        ScenarioKind::Eclipsed => return Some(eclipse().pages.clone()),
        ScenarioKind::Store => {}
        _ => return None,
    }
    let hand = *random.choice(&HANDS).unwrap();
    let branch = chains.branch(drawn.attack.filter(|_| random.u64(..100) < 40).unwrap_or(drawn.main));
    // The newest block is left out, so that headers written on top weigh less than the honest chain.
    let position = (branch.len() as u64 - 1).saturating_sub(1 + random.u64(..3)).max(1);
    drawn.hand = Some(hand);
    let pages = written(hand, chains, branch[position as usize], random);
    // The headers written on top may have as much work as the honest chain.
    let most = chains.all().map(|block| chains.work(block.hash())).max().unwrap();
    while chains.work(drawn.main) < most {
        drawn.main = block(random, chains, drawn.main);
    }
    Some(pages)
}

pub(super) fn config(random: &mut Rng, setting: ScenarioKind) -> ClientConfig {
    let unproven = match random.u64(..20) {
        0 => UnprovenPolicy::Quorum(2),
        1 => UnprovenPolicy::Trust,
        _ => UnprovenPolicy::Refuse,
    };
    let max_age = match setting {
        ScenarioKind::Stale => 60 + random.u64(..3_600),
        _ if random.u64(..100) < 20 => 100_000,
        _ => 0,
    };
    let min_depth = if random.u64(..100) < 25 { 1 + random.u64(..10) } else { 0 };
    ClientConfig { unproven, max_age, min_depth, ..ClientConfig::default() }
}

/// Headers that a dishonest miner chooses freely, each with a state that can be proven.
fn foreign(random: &mut Rng, chains: &mut Chains, drawn: &Drawn) -> Vec<Foreign> {
    let branch = chains.branch(drawn.main);
    let mut all = Vec::new();
    for _ in 0..3 {
        let parent = *random.choice(&branch).unwrap();
        let (mut header, _, _) = chains.draft(parent, &Wish::default());
        let header = match random.u64(..4) {
            // A header with an unknown parent, at any height.
            0 | 1 => {
                let head = chains.block(&drawn.main).number();
                let numbers = [START - 300, START + 2, head + 1, head + 1_000, head.saturating_sub(8)];
                header.number = *random.choice(&numbers).unwrap();
                header.parent_hash = B256::repeat_byte(0x66);
                header.difficulty = U256::from(1).into();
                mine(header)
            }
            2 => mine(Header { difficulty: U256::from(1).into(), ..header }),
            _ => unmined(header),
        };
        all.push(Foreign { header });
    }
    all
}

/// Headers on top of a chain with no proof of work, or with a difficulty that is too low.
fn false_tops(random: &mut Rng, chains: &Chains, tip: B256, easy: bool) -> Vec<SealedHeader> {
    let (network, mut parent) = (super::chain::network(), chains.block(&tip).header.clone());
    let mut tops = Vec::new();
    for _ in 0..1 + random.u64(..20) {
        let header = Header { gas_used: 4, ..child(network, &parent) };
        let difficulty = difficulty::expected(&header, &parent, network);
        parent = match easy {
            true => mine(Header { difficulty: U256::from(1).into(), ..header }),
            false => unmined(Header { difficulty: difficulty.into(), ..header }),
        };
        tops.push(parent.clone());
    }
    tops
}

/// Draws the upstreams, of which some may be honest.
pub(super) fn cast(random: &mut Rng, mut chains: Chains, drawn: &Drawn) -> ScenarioUpstreams {
    let foreign = foreign(random, &mut chains, drawn);
    let long = matches!(drawn.setting, ScenarioKind::Long | ScenarioKind::Eclipsed);
    let least = if drawn.setting == ScenarioKind::Unsynced { 2 } else { 1 };
    let count = least + random.u64(..4 - least);
    let honest = drawn.setting == ScenarioKind::Long || random.u64(..100) < 65;
    let position = random.u64(..count);
    let mut tops = Vec::new();
    let upstreams = (0..count).map(|index| {
        let honest = honest && (index == position || random.u64(..100) < 15);
        let binary = match random.u64(..4) {
            0 => Some(true),
            // Without the uncles that the response should contain.
            1 if !honest => Some(false),
            _ => None,
        };
        let mut tricks = Vec::new();
        if !honest {
            tricks.extend((0..random.u64(..3)).map(|_| *random.choice(&TRICKS).unwrap()));
            tricks.extend((random.u64(..100) < 6).then_some(UpstreamTrick::NewLocation));
        }
        let tip = match drawn.attack {
            Some(attack) if !honest && random.u64(..100) < 60 => attack,
            _ => drawn.main,
        };
        for (trick, easy) in [(UpstreamTrick::NoWork, false), (UpstreamTrick::EasyWork, true)] {
            if tricks.contains(&trick) {
                tops.extend(false_tops(random, &chains, tip, easy));
            }
        }
        let latency = if honest { 50 + random.u64(..300) } else { 1 << random.u64(..15) };
        SimulatedUpstream {
            chain: chains.branch(tip),
            valid: chains.is_valid(tip),
            tricks,
            forger: !honest && random.u64(..100) < 60,
            latency,
            binary: if long { Some(true) } else { binary },
            random: Rng::with_seed(random.u64(..)),
        }
    });
    let upstreams: Vec<SimulatedUpstream> = upstreams.collect();
    // An upstream on the honest chain without any trick is honest too.
    let useful = |upstream: &SimulatedUpstream| upstream.is_honest() && upstream.latency <= TIMELY;
    let honest = upstreams.iter().any(|who| useful(who) && who.chain.last() == Some(&drawn.main));
    ScenarioUpstreams { data: ScenarioData { chains, foreign, false_tops: tops }, upstreams, honest }
}

fn at(random: &mut Rng, data: &ScenarioData, drawn: &Drawn) -> BlockSelector {
    let chains = &data.chains;
    let branch = chains.branch(drawn.main);
    let hash = |random: &mut Rng| match random.u64(..20) {
        0..7 => *random.choice(&branch).unwrap(),
        7..12 if !drawn.sides.is_empty() => {
            let side = chains.branch(*random.choice(&drawn.sides).unwrap());
            let off: Vec<B256> = side.into_iter().filter(|hash| !branch.contains(hash)).collect();
            if off.is_empty() { drawn.main } else { *random.choice(&off).unwrap() }
        }
        7..14 => drawn.attack.unwrap_or(drawn.main),
        14..18 => random.choice(&data.foreign).unwrap().header.hash(),
        18 => random.choice(&chains.below).unwrap().hash(),
        _ => B256::repeat_byte(0x98),
    };
    let head = chains.block(&drawn.main).number();
    let number = random.u64(START - 4..head + 3);
    match random.u64(..20) {
        0..4 => BlockSelector::Tag("latest"),
        4 => BlockSelector::Tag(random.choice(["pending", "safe", "finalized"]).unwrap()),
        5..8 => BlockSelector::Number(number),
        8 => BlockSelector::NumberMap(number),
        9..15 => BlockSelector::Hash(hash(random)),
        _ => BlockSelector::Map(hash(random), random.u64(..100) < 30),
    }
}

/// Draws a request about the scenario.
pub(super) fn probe(random: &mut Rng, data: &ScenarioData, drawn: &Drawn) -> Probe {
    let chains = &data.chains;
    let at = at(random, data, drawn);
    let position = match random.u64(..100) < 70 {
        // Mostly a transaction that some block contains.
        true => {
            let mut mined: Vec<usize> = chains.all().flat_map(|block| block.transactions.clone()).collect();
            mined.sort_unstable();
            if mined.is_empty() { 0 } else { *random.choice(&mined).unwrap() }
        }
        false => random.usize(..signed().len()),
    };
    match random.u64(..26) {
        0 => Probe::Height,
        1..4 => match at {
            BlockSelector::Hash(hash) => Probe::BlockByHash(hash),
            at => Probe::Block(at),
        },
        4..7 => Probe::Balance(at),
        7..9 => Probe::Cell(at),
        9 => Probe::Nonce(at, position),
        10..13 => {
            let top = match at {
                BlockSelector::Hash(hash) | BlockSelector::Map(hash, _) => {
                    chains.get(&hash).map(|block| block.number())
                }
                _ => None,
            };
            let top = top.unwrap_or_else(|| chains.block(&drawn.main).number());
            Probe::CallHash(at, top.saturating_sub(1 + random.u64(..4)))
        }
        13 => Probe::UncleCount(at),
        14 => Probe::Uncle(at, random.usize(..3)),
        15 => Probe::TransactionCount(at),
        16..18 => Probe::Verification(at),
        18..20 => Probe::Transaction(position, random.u64(..100) < 40),
        20..22 => Probe::Receipt(position, random.u64(..100) < 40),
        22 => Probe::UnknownTransaction,
        23 => {
            let head = chains.block(&drawn.main).number();
            let from = random.u64(START..head);
            let to = random.u64(from..=head);
            let to =
                if random.u64(..100) < 30 { BlockSelector::Tag("latest") } else { BlockSelector::Number(to) };
            Probe::Logs(BlockSelector::Number(from), to)
        }
        24 => match at {
            BlockSelector::Hash(hash) => Probe::LogsOf(hash),
            _ => Probe::Height,
        },
        _ => Probe::Trace(at),
    }
}
