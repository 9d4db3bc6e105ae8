//! Random chains of dishonest miners: inflated uncle counts, withheld uncles, blocks whose uncles do not exist, and
//! falling difficulty. A failure prints the seed; `ROOTLIGHT_SEED` runs only that seed, `ROOTLIGHT_SCENARIOS` sets
//! the number of scenarios, at most 2,000.

use fastrand::Rng;
use serde_json::{Value, json};

use super::mined_chain::{BASE_DIFFICULTY, BASE_TOTAL, Mined, ask};
use crate::{
    consensus::{
        difficulty,
        testing::{child, mine},
    },
    types::{Header, SealedHeader, U256, uncles_hash},
};

const SCENARIOS: u64 = 40;

/// A head with less difficulty has too little work to be answered from.
const LOW_WORK: u64 = BASE_DIFFICULTY / 2;

/// How a miner tries to make the chain count more than its work.
#[derive(Debug, Clone, Copy, PartialEq)]
enum MinerTrick {
    Honest,
    /// Header counts exceed the uncles that there are.
    InflatedCounts,
    /// The uncles are not served.
    WithheldUncles,
    /// Slow blocks let the difficulty fall.
    LowWork,
}

/// A chain, and the work of the uncles that a client can see.
struct Drawn {
    mined: Mined,
    uncles: U256,
    /// Whether a client can see every list of uncles.
    whole: bool,
}

/// An uncle for the next block; `mark` makes its hash unique.
fn sibling(mined: &Mined, mark: u64) -> SealedHeader {
    let parent = &mined.blocks[mined.blocks.len() - 2].0;
    let mut uncle = Header { gas_used: mark, ..child(&mined.network, parent) };
    uncle.difficulty = difficulty::expected(&uncle, parent, &mined.network).into();
    mine(uncle)
}

fn draw(random: &mut Rng, trick: MinerTrick) -> Drawn {
    let mut drawn = Drawn { mined: Mined::new(), uncles: U256::ZERO, whole: true };
    drawn.mined.grow(9, 14);
    let (blocks, seconds) = match trick {
        MinerTrick::LowWork => (260 + random.u64(..40), 90 + random.u64(..60)),
        _ => (10 + random.u64(..40), 14 + random.u64(..16)),
    };
    for mark in 1..=blocks {
        let mined = &mut drawn.mined;
        match random.u64(..10) {
            0..=2 if trick != MinerTrick::LowWork => {
                let uncle = sibling(mined, mark);
                let count = if trick == MinerTrick::InflatedCounts { 1 + random.u32(..1 << 20) } else { 1 };
                drawn.uncles += uncle.difficulty.value();
                drawn.whole &= trick != MinerTrick::WithheldUncles;
                mined.adopt(count, uncle);
            }
            3 if trick == MinerTrick::InflatedCounts => {
                let none = mined.next(|header| header.uncle_count = random.u32(..1 << 28));
                mined.blocks.push((none, Vec::new()));
            }
            4 if trick == MinerTrick::WithheldUncles && random.u64(..100) < 30 => {
                // A hash for which there is no list of uncles.
                let hidden = uncles_hash(&[Header { gas_used: mark, ..mined.head().header().clone() }]);
                let next = mined.next(|header| (header.uncle_count, header.uncles_hash) = (1, hidden));
                drawn.whole = false;
                mined.blocks.push((next, Vec::new()));
            }
            _ => mined.grow(1, seconds),
        }
    }
    if trick == MinerTrick::WithheldUncles {
        (drawn.mined.omits_uncles, drawn.uncles) = (true, U256::ZERO);
    }
    drawn
}

fn scenario(seed: u64) -> MinerTrick {
    let mut random = Rng::with_seed(seed);
    let trick = match random.u64(..8) {
        0 | 1 => MinerTrick::Honest,
        2..=4 => MinerTrick::InflatedCounts,
        5 | 6 => MinerTrick::WithheldUncles,
        _ => MinerTrick::LowWork,
    };
    let Drawn { mut mined, uncles, whole } = draw(&mut random, trick);
    let mut client = mined.client();
    let chain = client.sync().chain().unwrap().clone();
    let (head, from) = (mined.head().hash(), chain.view().base().number);
    assert_eq!(chain.head().hash(), head, "seed {seed}: {trick:?}");
    // Exactly the work that there is: a stated count adds none, and a missing list removes none.
    let headers: U256 = mined.blocks[1..].iter().map(|(header, _)| header.difficulty.value()).sum();
    assert_eq!(chain.view().work_above(from), Some(headers + uncles), "seed {seed}: {trick:?}");
    let total = whole.then(|| U256::from(BASE_TOTAL) + headers + uncles);
    assert_eq!(chain.total_difficulty(&head), total, "seed {seed}: {trick:?}");
    let record = client.sync().upstreams().remove(0).record;
    assert_eq!(record.lies, 0, "seed {seed}: {trick:?}: {:?}", record.evidence);
    let low = trick == MinerTrick::LowWork && mined.head().difficulty.value() < U256::from(LOW_WORK);
    for method in ["eth_blockNumber", "rootlight_verification"] {
        let answer = ask(&mut client, method, json!([]));
        let refused = answer["error"]["code"] == -32002;
        assert!(!low || refused, "seed {seed}: {trick:?}: {answer}");
        assert!(trick == MinerTrick::LowWork || !refused, "seed {seed}: {trick:?}: {answer}");
        assert_eq!(answer.get("level"), None::<&Value>, "seed {seed}: {trick:?}");
    }
    trick
}

/// Only proven work counts, whatever a miner states, and a chain with too little work gives no answers.
#[test]
fn statements_of_miners_add_no_work() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("ROOTLIGHT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROOTLIGHT_SCENARIOS").unwrap_or(SCENARIOS).min(2_000),
    };
    let several = seeds.end - seeds.start > 20;
    let drawn: Vec<MinerTrick> = seeds.map(scenario).collect();
    let all =
        [MinerTrick::Honest, MinerTrick::InflatedCounts, MinerTrick::WithheldUncles, MinerTrick::LowWork];
    assert!(!several || all.iter().all(|trick| drawn.contains(trick)), "{drawn:?}");
}
