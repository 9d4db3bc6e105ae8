//! Lies about headers and uncles.

use serde_json::{Value, json};

use crate::{
    actor::{Actor, ActorTrick},
    network::HostileNetwork,
    recording,
    support::{
        chain::{lines, text},
        shared, u64_of,
    },
};

const HEAD: u64 = 90;
const LIMIT: u64 = 120_000;

/// One liar, alone and beside an honest upstream: never more than the chain it really has; beside the honest one the
/// head is reached, and the liar is named.
fn header_liar(trick: ActorTrick, rule: &str) {
    let Some(recording) = recording(HEAD) else { return };
    let mut alone = HostileNetwork::regtest(vec![Actor::new(&recording, trick.clone())]);
    assert!(!alone.sync(LIMIT), "{trick:?} alone must not count as a head");
    let lies = alone.lies(0);
    assert!(lies.iter().any(|lie| lie.contains(rule)), "{trick:?}: {lies:?}");

    for liar in [0, 1] {
        let mut actors =
            vec![Actor::new(&recording, ActorTrick::Honest), Actor::new(&recording, ActorTrick::Honest)];
        actors[liar].trick = trick.clone();
        let mut network = HostileNetwork::regtest(actors);
        assert!(network.sync(LIMIT), "{trick:?} as upstream {liar}");
        assert_eq!(network.head(), HEAD);
        // The second upstream may show nothing that was not proven by the first.
        let named = !network.lies(liar).is_empty() && network.is_resting(liar);
        assert!(named || liar == 1, "{trick:?}");
        assert!(network.lies(1 - liar).is_empty() && !network.is_resting(1 - liar), "{trick:?}");
        let answer = network.call("eth_blockNumber", &json!([]));
        assert_eq!(answer, Ok(json!(format!("{HEAD:#x}"))));
    }
}

#[test]
fn headers_with_copied_bitcoin_headers() {
    header_liar(ActorTrick::CopiedWork, "bitcoinMergedMining");
}

#[test]
fn withheld_merge_mining_proofs() {
    header_liar(ActorTrick::WithoutProof, "bitcoinMergedMining");
}

#[test]
fn another_block_than_the_one_asked_for() {
    header_liar(ActorTrick::OtherBlock, "block 1");
}

#[test]
fn fake_uncles() {
    let Some(recording) = recording(HEAD) else { return };
    let mut actors =
        vec![Actor::new(&recording, ActorTrick::FakeUncles), Actor::new(&recording, ActorTrick::Honest)];
    (actors[0].latency, actors[1].latency) = (1, 1_000);
    let mut network = HostileNetwork::regtest(actors);
    assert!(network.sync(LIMIT));
    network.run(60_000);
    let named = network.lies(0);
    assert!(named.iter().any(|lie| lie.contains("uncles")), "{named:?}");
    assert!(network.lies(1).is_empty());
    // The honest one supplied what the liar did not: totals are exact up to the head.
    let total = network.call("eth_getBlockByNumber", &json!([format!("{HEAD:#x}"), false])).unwrap();
    let mut honest = HostileNetwork::regtest(vec![Actor::new(&recording, ActorTrick::Honest)]);
    assert!(honest.sync(LIMIT));
    honest.run(10_000);
    let expected = honest.call("eth_getBlockByNumber", &json!([format!("{HEAD:#x}"), false])).unwrap();
    assert!(expected["totalDifficulty"].is_string());
    assert_eq!(total, expected);
}

#[test]
fn withheld_uncles() {
    let Some(recording) = recording(HEAD) else { return };
    let withheld =
        ActorTrick::Withhold(&["eth_getUncleByBlockHashAndIndex", "eth_getUncleByBlockNumberAndIndex"]);
    let mut alone = HostileNetwork::regtest(vec![Actor::new(&recording, withheld.clone())]);
    assert!(alone.sync(LIMIT));
    alone.run(20_000);
    let open = alone.call("eth_getBlockByNumber", &json!(["0x4a", false])).unwrap();
    assert_eq!(open["totalDifficulty"], Value::Null, "never a total without its uncles");
    let mut both = HostileNetwork::regtest(vec![
        Actor::new(&recording, withheld),
        Actor::new(&recording, ActorTrick::Honest),
    ]);
    assert!(both.sync(LIMIT));
    both.run(20_000);
    let known = both.call("eth_getBlockByNumber", &json!(["0x4a", false])).unwrap();
    assert!(known["totalDifficulty"].is_string(), "the other has them");
}

/// Uncles that were requested from an upstream that falls silent are fetched from others; without others they wait.
#[test]
fn uncles_of_one_that_falls_silent() {
    let Some(recording) = recording(HEAD) else { return };
    let mute = ActorTrick::Mute(&["eth_getUncleByBlockHashAndIndex", "eth_getUncleByBlockNumberAndIndex"]);
    let total = |network: &mut HostileNetwork<'_>| {
        network
            .call("eth_getBlockByNumber", &json!(["0x4a", false]))
            .map(|block| block["totalDifficulty"].clone())
    };
    let mut actors = vec![Actor::new(&recording, mute.clone()), Actor::new(&recording, ActorTrick::Honest)];
    (actors[0].latency, actors[1].latency) = (1, 1_000);
    let mut both = HostileNetwork::regtest(actors);
    assert!(both.sync(LIMIT));
    both.run(60_000);
    assert!(total(&mut both).unwrap().is_string());
    let complete = |network: &mut HostileNetwork<'_>| {
        network.call("rootlight_syncStatus", &json!([])).unwrap()["unclesComplete"].clone()
    };
    assert_eq!(complete(&mut both), true);
    let mut alone = HostileNetwork::regtest(vec![Actor::new(&recording, mute)]);
    alone.sync(LIMIT);
    alone.run(10_000);
    assert_eq!(complete(&mut alone), false);
    assert!(!alone.client.sync().uncles_complete() && alone.lies(0).is_empty());
    alone.actors[0].trick = ActorTrick::Honest;
    alone.run(700_000);
    assert!(total(&mut alone).unwrap().is_string());
}

#[test]
fn announced_but_not_there() {
    let Some(recording) = recording(HEAD) else { return };
    let actors =
        vec![Actor::new(&recording, ActorTrick::Boastful), Actor::new(&recording, ActorTrick::Honest)];
    let mut network = HostileNetwork::regtest(actors);
    assert!(network.sync(LIMIT));
    assert_eq!(network.head(), HEAD);
}

#[test]
fn silent_slow_and_truncated_answers() {
    let Some(recording) = recording(HEAD) else { return };
    for trick in [ActorTrick::Silent, ActorTrick::Lossy(70), ActorTrick::Truncated] {
        let actors = vec![Actor::new(&recording, trick.clone()), Actor::new(&recording, ActorTrick::Honest)];
        let mut network = HostileNetwork::regtest(actors);
        assert!(network.sync(LIMIT), "{trick:?}");
        assert_eq!(network.head(), HEAD, "{trick:?}");
    }
    for latency in [9_000, 20_000] {
        let mut actors =
            vec![Actor::new(&recording, ActorTrick::Honest), Actor::new(&recording, ActorTrick::Honest)];
        actors[0].latency = latency;
        let mut network = HostileNetwork::regtest(actors);
        assert!(network.sync(LIMIT), "{latency} ms");
        assert_eq!(network.head(), HEAD);
        assert!(network.lies(0).is_empty(), "slowness is no lie");
    }
}

#[test]
fn an_upstream_behind_the_others_hides_nothing() {
    let Some(recording) = recording(HEAD) else { return };
    let actors =
        vec![Actor::new(&recording, ActorTrick::Behind(40)), Actor::new(&recording, ActorTrick::Honest)];
    let mut network = HostileNetwork::regtest(actors);
    assert!(network.sync(LIMIT));
    assert_eq!(network.head(), HEAD);
    network.run(20_000);
    assert!(!network.is_resting(0) && network.lies(0).is_empty(), "being behind is no lie");
}

#[test]
fn an_upstream_of_another_network() {
    let Some(recording) = recording(HEAD) else { return };
    let testnet = rootlight::consensus::Network::testnet();
    let checkpoint =
        rootlight::consensus::Checkpoint { number: 0, hash: testnet.genesis_hash, total_difficulty: None };
    let mut network =
        HostileNetwork::new(testnet, checkpoint, vec![Actor::new(&recording, ActorTrick::Honest)]);
    assert!(!network.sync(LIMIT));
    assert!(!network.lies(0).is_empty() && network.call("eth_blockNumber", &json!([])).is_err());
}

/// Where the recorded branches part.
const FORK: u64 = 155;

/// A recorded block off the chain.
pub(crate) fn side_block() -> Option<Value> {
    let path = shared()?.join("vectors/chain/side_blocks.jsonl");
    lines(&path)
        .into_iter()
        .filter(|line| {
            line["request"]["method"] == "eth_getBlockByHash" && line["request"]["params"][1] == true
        })
        .map(|line| line["response"]["result"].clone())
        .find(|block| u64_of(text(block, "number")) == FORK)
}

/// The recorded branches part at 155; the main one is longer.
pub(crate) fn side_branch() -> Option<crate::support::upstream::RecordedUpstream> {
    let mut side = recording(FORK)?;
    side.show(&side_block()?);
    Some(side)
}

#[test]
fn upstreams_that_disagree_and_the_heaviest_proven_chain() {
    let (Some(main), Some(side)) = (recording(160), side_branch()) else { return };
    for order in [[0, 1, 1], [1, 1, 0], [1, 0, 1]] {
        let actors =
            order.map(|branch| Actor::new(if branch == 0 { &main } else { &side }, ActorTrick::Honest));
        let mut network = HostileNetwork::regtest(actors.into());
        assert!(network.sync(LIMIT));
        assert_eq!(network.head(), 160, "{order:?}");
        network.run(20_000);
        for upstream in 0..3 {
            assert!(
                network.lies(upstream).is_empty() && !network.is_resting(upstream),
                "a lighter branch is no lie"
            );
        }
    }
}

#[test]
fn flapping_reorganisations() {
    let (Some(main), Some(side)) = (recording(160), side_branch()) else { return };
    let mut flapping = Actor::new(&main, ActorTrick::Flapping);
    flapping.other = Some(&side);
    let mut network = HostileNetwork::regtest(vec![flapping, Actor::new(&main, ActorTrick::Honest)]);
    assert!(network.sync(LIMIT));
    for _ in 0..20 {
        network.run(5_000);
        assert_eq!(network.head(), 160, "what is heaviest stays");
    }
}

#[test]
fn a_reorganisation_between_rounds() {
    let (Some(main), Some(side)) = (recording(160), side_branch()) else { return };
    let mut network = HostileNetwork::regtest(vec![Actor::new(&side, ActorTrick::Honest)]);
    assert!(network.sync(LIMIT));
    assert_eq!(network.head(), 155);
    // The branch changes while a request is under way: its answer is of the pinned block, or an error.
    let message =
        json!({"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["latest", true]});
    let mut session = network.client.open(message.to_string().as_bytes(), network.client.sync().now());
    let first = network.client.step(&mut session, &|| false);
    network.actors[0].trunk = &main;
    network.run(30_000);
    assert_eq!(network.head(), 160);
    let mut step = first;
    let reply = loop {
        match step {
            rootlight::rpc::SessionStep::Done(reply) => break reply,
            rootlight::rpc::SessionStep::Fetch(round) => {
                let actor = &mut network.actors[0];
                let answers =
                    round.answered(|part| part.requests.iter().map(|asked| actor.answer(asked)).collect());
                network.client.feed(&mut session, answers);
            }
        }
        step = network.client.step(&mut session, &|| false);
    };
    let answer: Value = serde_json::from_str(&reply.into_text().unwrap()).unwrap();
    let number = &answer["result"]["number"];
    assert!(answer.get("error").is_some() || number == "0x9b", "{answer}");
}
