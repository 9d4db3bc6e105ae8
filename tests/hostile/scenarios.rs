//! Mixtures of upstreams drawn from seeds. A failure prints the seed; `ROOTLIGHT_SEED` runs that one alone,
//! `ROOTLIGHT_SCENARIOS` sets how many are run.

use crate::{
    actor::{Actor, Random, Trick},
    facts::{questions, truths, HEAD},
    recording,
    support::upstream::Recording,
    world::World,
};

const SCENARIOS: u64 = 200;

/// Simulated time for one scenario's synchronization, in milliseconds.
const LIMIT: u64 = 180_000;

fn trick(random: &mut Random) -> Trick {
    match random.below(19) {
        0 => Trick::Silent,
        1 => Trick::Lossy(random.below(100)),
        2 => Trick::Truncated,
        3 => Trick::Digits(random.below(100)),
        4 => Trick::Withhold(&["eth_getProof", "eth_getCode"]),
        5 => Trick::NoProofs,
        6 => Trick::OtherBlock,
        7 => Trick::StaleRoots,
        8 => Trick::OtherKeys,
        9 => Trick::AbsentForPresent,
        10 => Trick::ShiftedLogs,
        11 => Trick::OmittedLogs,
        12 => Trick::WrongPlace,
        13 => Trick::Behind(random.below(HEAD)),
        14 => Trick::Boastful,
        15 => Trick::CopiedWork,
        16 => Trick::WithoutProof,
        17 => Trick::FakeUncles,
        _ => Trick::Withhold(&["eth_getTransactionReceipt", "eth_getTransactionByHash"]),
    }
}

/// Some upstreams, at most one of them honest.
fn cast<'a>(recording: &'a Recording, random: &mut Random, honest: bool) -> Vec<Actor<'a>> {
    let count = 1 + random.below(4) as usize;
    let place = random.below(count as u64) as usize;
    (0..count)
        .map(|index| {
            let trick = if honest && index == place { Trick::Honest } else { trick(random) };
            let latency = if trick == Trick::Honest { 100 } else { 1 << random.below(15) };
            Actor { latency, random: Random(random.below(u64::MAX)), ..Actor::new(recording, trick) }
        })
        .collect()
}

/// No value that is not true; with an honest upstream among them, every true value within the time.
#[test]
fn mixtures_of_upstreams() {
    let Some(recording) = recording(HEAD) else { return };
    let truths = truths(&recording);
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("ROOTLIGHT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROOTLIGHT_SCENARIOS").unwrap_or(SCENARIOS),
    };
    let (mut asked, mut right) = (0u64, 0u64);
    for seed in seeds {
        let mut random = Random(seed);
        let honest = random.chance(70);
        let actors = cast(&recording, &mut random, honest);
        let tricks: Vec<Trick> = actors.iter().map(|actor| actor.trick.clone()).collect();
        let mut world = World::regtest(actors);
        let synced = world.sync(LIMIT);
        assert!(synced || !honest, "seed {seed}: {tricks:?} not synchronized, head {}", world.head());
        world.run(20_000);
        for ((method, params), truth) in questions().iter().zip(&truths) {
            let latest = *method == "eth_blockNumber" || params[0] == "latest";
            let answer = world.call(method, params);
            // Without an honest upstream the head may be an older block, or a transaction unknown to all; but what is
            // returned is true of the chain.
            let absence = answer.as_ref().is_ok_and(serde_json::Value::is_null) && method.ends_with("ByHash");
            let absence =
                absence || (*method == "eth_getTransactionReceipt" && answer == Ok(serde_json::Value::Null));
            let behind = world.head() < HEAD && (absence || *method == "eth_getLogs");
            if !honest && (latest || absence || behind || answer.is_err()) {
                continue;
            }
            if let Ok(value) = &answer {
                assert!(value == truth, "seed {seed}: {tricks:?} {method} {params}: {value}");
            }
            if honest {
                asked += 1;
                right += u64::from(answer.is_ok());
                if answer.is_err() {
                    println!("seed {seed}: {tricks:?} {method}: {answer:?}");
                }
            }
        }
    }
    println!("{right} of {asked} questions answered with an honest upstream among liars");
    assert!(right * 1_000 >= asked * 999, "{right} of {asked}");
}
