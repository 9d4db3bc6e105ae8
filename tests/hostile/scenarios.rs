//! Mixtures of upstreams drawn from seeds. A failure prints the seed; `ROOTLIGHT_SEED` runs that one alone,
//! `ROOTLIGHT_SCENARIOS` sets how many are run.

use std::time::Instant;

use fastrand::Rng;
use rootlight::light::{UnprovenPolicy, UpstreamRequest};
use serde_json::{Value, json};

use crate::{
    actor::{Actor, ActorTrick},
    chains::side_branch,
    facts::{questions, truths},
    network::HostileNetwork,
    recording,
    support::upstream::RecordedUpstream,
};

const SCENARIOS: u64 = 200;

/// Above the place where the recorded branches part.
const HEAD: u64 = 160;

/// Simulated time for one scenario's synchronization, in milliseconds.
const LIMIT: u64 = 180_000;

/// Simulated time for one question, in milliseconds: as long as a host waits for a message.
const QUESTION_LIMIT: u64 = 60_000;

fn trick(random: &mut Rng) -> ActorTrick {
    match random.u64(..24) {
        0 => ActorTrick::Silent,
        1 => ActorTrick::Lossy(random.u64(..100)),
        2 => ActorTrick::Truncated,
        3 => ActorTrick::Digits(random.u64(..100)),
        4 => ActorTrick::Withhold(&["eth_getProof", "eth_getCode"]),
        5 => ActorTrick::NoProofs,
        6 => ActorTrick::OtherBlock,
        7 => ActorTrick::StaleRoots,
        8 => ActorTrick::OtherKeys,
        9 => ActorTrick::AbsentForPresent,
        10 => ActorTrick::ShiftedLogs,
        11 => ActorTrick::OmittedLogs,
        12 => ActorTrick::WrongPlace,
        13 => ActorTrick::Behind(random.u64(..HEAD)),
        14 => ActorTrick::Boastful,
        15 => ActorTrick::CopiedWork,
        16 => ActorTrick::WithoutProof,
        17 => ActorTrick::FakeUncles,
        18 => ActorTrick::Flapping,
        19 => ActorTrick::SaysPending,
        20 => ActorTrick::OldPlace,
        21 => ActorTrick::Withhold(&["eth_getUncleByBlockHashAndIndex", "eth_getUncleByBlockNumberAndIndex"]),
        22 => ActorTrick::Withhold(&[
            "eth_getTransactionReceipt",
            "eth_getTransactionByHash",
            "eth_getBlockByHash",
        ]),
        _ => ActorTrick::Withhold(&["eth_getTransactionReceipt", "eth_getTransactionByHash"]),
    }
}

/// The recorded chain, the branch that lost, and what is true of the first.
struct RecordedBranches {
    main: RecordedUpstream,
    side: RecordedUpstream,
    truths: Vec<Value>,
}

/// Some upstreams, at most one of them honest.
fn cast<'a>(stage: &'a RecordedBranches, random: &mut Rng, honest: bool) -> Vec<Actor<'a>> {
    let count = random.usize(1..=4);
    let place = random.usize(..count);
    (0..count)
        .map(|index| {
            let trick = if honest && index == place { ActorTrick::Honest } else { trick(random) };
            let latency = if trick == ActorTrick::Honest { 100 } else { 1 << random.u64(..15) };
            let elsewhere =
                trick == ActorTrick::Flapping || (trick != ActorTrick::Honest && random.u64(..100) < 10);
            let other = elsewhere.then_some(&stage.side);
            Actor { latency, other, random: Rng::with_seed(random.u64(..)), ..Actor::new(&stage.main, trick) }
        })
        .collect()
}

fn policy(random: &mut Rng) -> UnprovenPolicy {
    match random.u64(..10) {
        0 => UnprovenPolicy::Quorum(2),
        1 => UnprovenPolicy::Trust,
        _ => UnprovenPolicy::Refuse,
    }
}

/// Whether a value that is given as proven is true of the chain, though the head may be behind or on the other branch.
fn is_true(
    stage: &RecordedBranches,
    head: u64,
    question: &(&str, Value),
    value: &Value,
    truth: &Value,
) -> bool {
    let (method, params) = question;
    match *method {
        _ if value == truth => true,
        "eth_blockNumber" => *value == format!("{head:#x}") && head <= HEAD,
        "eth_getBlockByNumber" if params[0] == "latest" => {
            let call =
                UpstreamRequest::new("eth_getBlockByNumber", json!([value["number"], true]).to_string());
            let known = [&stage.main, &stage.side].map(|recording| recording.answer(&call));
            value["number"] == format!("{head:#x}")
                && known.iter().flatten().any(|text| same_block(&serde_json::from_str(text).unwrap(), value))
        }
        // The client has seen the chain up to its head: it returns all logs up to there.
        "eth_getLogs" => {
            let logs = truth.as_array().unwrap().iter();
            let number = |log: &Value| crate::support::u64_of(log["blockNumber"].as_str().unwrap());
            let below: Vec<&Value> = logs.filter(|log| number(log) <= head).collect();
            value.as_array().is_some_and(|logs| logs.iter().eq(below))
        }
        // Up to a head below its block the sender's nonce proves that it is not mined.
        "eth_getTransactionByHash" | "eth_getTransactionReceipt" => {
            let block = crate::support::u64_of(truth["blockNumber"].as_str().unwrap());
            head < block && (value.is_null() || value["blockHash"].is_null())
        }
        _ => false,
    }
}

/// Equal apart from the total difficulty, which needs proven uncles.
fn same_block(known: &Value, value: &Value) -> bool {
    let (Some(known), Some(value)) = (known.as_object(), value.as_object()) else { return false };
    known.iter().all(|(name, field)| name == "totalDifficulty" || value.get(name) == Some(field))
}

#[derive(Default)]
struct HostileTally {
    answers: u64,
    unproven: u64,
    asked: u64,
    right: u64,
    late: u64,
    slowest: u64,
}

fn scenario(stage: &RecordedBranches, seed: u64, tally: &mut HostileTally) {
    let mut random = Rng::with_seed(seed);
    let honest = random.u64(..100) < 70;
    let policy = policy(&mut random);
    let actors = cast(stage, &mut random, honest);
    let tricks: Vec<(ActorTrick, bool)> =
        actors.iter().map(|actor| (actor.trick.clone(), actor.other.is_some())).collect();
    let mut network = HostileNetwork::regtest_with(actors, policy);
    let synced = network.sync(LIMIT);
    assert!(synced || !honest, "seed {seed}: {tricks:?} not synchronized, head {}", network.head());
    network.run(20_000);
    for (question, truth) in questions().iter().zip(&stage.truths) {
        let (method, params) = question;
        let (head, began) = (network.head(), network.now);
        let answer = network.send(method, params);
        let took = network.now - began;
        let proven = answer.get("result").filter(|_| answer.get("level").is_none());
        if let Some(value) = proven {
            let good = value == truth || (!honest && is_true(stage, head, question, value, truth));
            assert!(good, "seed {seed}: {tricks:?} {policy:?} {method} {params}: {value}");
            tally.answers += 1;
        } else if let Some(value) = answer.get("result") {
            // Where no upstream shows a transaction, all that were asked deny it.
            let transaction = method.starts_with("eth_getTransaction");
            let absent = answer["level"] == "unproven-absence" && transaction && !honest;
            let gone = absent && (value.is_null() || value["blockHash"].is_null());
            let allowed = gone || (answer["level"] == "unproven" && policy != UnprovenPolicy::Refuse);
            assert!(allowed, "seed {seed}: {tricks:?} {policy:?} {method} {params}: {answer}");
            tally.unproven += 1;
        }
        if honest {
            let in_time = took <= QUESTION_LIMIT;
            tally.asked += 1;
            tally.right += u64::from(proven.is_some() && in_time);
            tally.late += u64::from(!in_time);
            tally.slowest = tally.slowest.max(took);
            if proven.is_none() || !in_time {
                println!("seed {seed}: {tricks:?} {policy:?} {method} after {took} ms: {answer}");
            }
        }
    }
    blames_nobody(&network, seed);
}

/// No response of an honest upstream of this chain counts as a lie.
fn blames_nobody(network: &HostileNetwork<'_>, seed: u64) {
    for (index, actor) in network.actors.iter().enumerate() {
        let honest = actor.trick == ActorTrick::Honest && actor.other.is_none();
        assert!(!honest || network.lies(index).is_empty(), "seed {seed}: {:?}", network.lies(index));
    }
}

/// No value at a level that it does not have; with an honest upstream among them, every true value within the time.
#[test]
fn mixtures_of_upstreams() {
    let (Some(main), Some(side)) = (recording(HEAD), side_branch()) else { return };
    let truths = truths(&main);
    let stage = RecordedBranches { main, side, truths };
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("ROOTLIGHT_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("ROOTLIGHT_SCENARIOS").unwrap_or(SCENARIOS),
    };
    let (mut tally, began, count) = (HostileTally::default(), Instant::now(), seeds.end - seeds.start);
    for seed in seeds {
        scenario(&stage, seed, &mut tally);
    }
    let HostileTally { answers, unproven, asked, right, late, slowest } = tally;
    println!(
        "{count} scenarios in {:.1} s: {answers} answers as proven, 0 of them wrong; {unproven} marked as unproven",
        began.elapsed().as_secs_f64()
    );
    println!(
        "{right} of {asked} questions answered rightly with an honest upstream among liars ({:.3} %); {late} late, the slowest after {slowest} ms",
        100.0 * right as f64 / asked.max(1) as f64
    );
    assert!(right * 1_000 >= asked * 999, "{right} of {asked}");
}
