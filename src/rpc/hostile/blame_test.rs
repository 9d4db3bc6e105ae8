//! Honest upstreams are not blamed for their responses about side blocks, nor for headers that JSON does not show
//! completely.

use fastrand::Rng;
use serde_json::json;

use super::{
    chain::{Chains, Wish},
    oracle::{BlockSelector, Probe},
    play::Play,
    upstream::{ScenarioData, SimulatedUpstream, UpstreamTrick},
};
use crate::light::ClientConfig;

fn honest(chain: &[crate::types::B256]) -> SimulatedUpstream {
    SimulatedUpstream {
        chain: chain.to_vec(),
        tricks: Vec::new(),
        forger: false,
        latency: 50,
        binary: None,
        random: Rng::with_seed(1),
        valid: true,
    }
}

/// Asked by number, an upstream proves the state of its own chain; asked by hash, it proves the state of that block.
#[test]
fn requests_about_side_blocks_blame_no_upstream() {
    let mut chains = Chains::new(8);
    let (base, mut main) = (chains.base.hash(), chains.base.hash());
    let side = chains.mine(base, Wish { transactions: vec![0], ..Wish::default() });
    for _ in 0..3 {
        main = chains.mine(main, Wish::default());
    }
    // A block that states more uncles than it has, which JSON does not show.
    let top = chains.mine(side, Wish { count: Some(1 << 20), ..Wish::default() });
    let (chain, time) = (chains.branch(main), chains.block(&main).header.timestamp);
    let balances = [side, top].map(|hash| (BlockSelector::Hash(hash), chains.block(&hash).facts.balance));
    let data = ScenarioData { chains, foreign: Vec::new(), false_tops: Vec::new() };
    let upstreams = vec![honest(&chain), honest(&chain)];
    let mut play = Play::new(data, upstreams, ClientConfig::default(), time);
    assert!(play.sync(60_000));
    for (at, balance) in balances {
        let (method, params) = Probe::Balance(at).call();
        assert_eq!(play.send(method, &params)["result"], format!("{balance:#x}"));
        for probe in [Probe::Cell(at), Probe::CallHash(at, 5_000), Probe::TransactionCount(at)] {
            let (method, params) = probe.call();
            let answer = play.send(method, &params);
            assert!(answer["result"].is_string(), "{answer}");
        }
    }
    // Receipts of a transaction that is not on the chain cannot be fetched.
    let (method, params) = Probe::LogsOf(side).call();
    assert!(play.send(method, &params)["error"].is_object());
    assert_eq!(play.blame(main), None);
}

/// Asked for the state of a block by its hash, an honest upstream proves the state of that block or none. A false
/// proof is blamed for side blocks too.
#[test]
fn a_false_proof_of_a_side_block_is_blamed() {
    let mut chains = Chains::new(8);
    let (base, mut main) = (chains.base.hash(), chains.base.hash());
    let side = chains.mine(base, Wish::default());
    for _ in 0..3 {
        main = chains.mine(main, Wish::default());
    }
    let (chain, time) = (chains.branch(main), chains.block(&main).header.timestamp);
    let balance = chains.block(&side).facts.balance;
    let data = ScenarioData { chains, foreign: Vec::new(), false_tops: Vec::new() };
    let liar = SimulatedUpstream { tricks: vec![UpstreamTrick::OldState], latency: 1, ..honest(&chain) };
    let mut play = Play::new(data, vec![liar, honest(&chain)], ClientConfig::default(), time);
    assert!(play.sync(60_000));
    let (method, params) = Probe::Balance(BlockSelector::Hash(side)).call();
    assert_eq!(play.send(method, &params)["result"], format!("{balance:#x}"));
    let record = play.client.sync().upstreams().remove(0).record;
    assert!(
        record.demerits >= 8 && record.evidence[0].request.params.contains(&side.to_string()),
        "{record:?}"
    );
    assert_eq!(play.blame(main), None);
}

/// Asked by number for the uncles of a side block, an upstream returns the uncles of its own block, of which JSON may
/// hide a part.
#[test]
fn incomplete_uncles_of_another_block_blame_no_upstream() {
    let mut chains = Chains::new(8);
    let mut main = chains.base.hash();
    for _ in 0..8 {
        main = chains.mine(main, Wish::default());
    }
    // Each block states more uncles than JSON can show, and no upstream has them.
    let secretive = |chains: &mut Chains, parent| {
        let hash = chains.mine(parent, Wish { hidden: true, count: Some(11), ..Wish::default() });
        chains.block(&hash).header.clone()
    };
    let mut last = main;
    for _ in 0..2 {
        let parent = chains.block(&main).header.parent_hash;
        let uncle = secretive(&mut chains, parent);
        (last, main) = (main, chains.mine(main, Wish { uncles: vec![uncle], ..Wish::default() }));
    }
    assert_eq!(chains.block(&last).uncles.as_ref().map(Vec::len), Some(1));
    let (chain, time) = (chains.branch(main), chains.block(&main).header.timestamp);
    let data = ScenarioData { chains, foreign: Vec::new(), false_tops: Vec::new() };
    // A node without checks serves the uncle as a block; then all upstreams are asked for its own uncles, by hash and
    // by number.
    let careless = SimulatedUpstream { forger: true, latency: 1, ..honest(&chain) };
    let mut play = Play::new(data, vec![careless, honest(&chain)], ClientConfig::default(), time);
    assert!(play.sync(60_000));
    play.run(20_000);
    let (method, params) = Probe::Uncle(BlockSelector::Hash(main), 0).call();
    play.send(method, &params);
    assert_eq!(play.blame(main), None);
}

/// With a required depth, a false location in a young block does not hide a transaction that is deep enough, whether
/// the young block is on another branch or the newest one.
#[test]
fn a_false_location_in_a_young_block_hides_no_transaction() {
    let mut chains = Chains::new(8);
    let (mut main, mut other) = (chains.base.hash(), chains.base.hash());
    let transactions = |own: bool| if own { vec![0] } else { Vec::new() };
    for step in 0..3 {
        other = chains.mine(other, Wish { transactions: transactions(step == 2), ..Wish::default() });
        let uncles = if step == 2 { vec![chains.sibling(main)] } else { Vec::new() };
        main = chains.mine(main, Wish { transactions: transactions(step == 0), uncles, ..Wish::default() });
    }
    let time = chains.block(&main).header.timestamp;
    let (chain, apart) = (chains.branch(main), chains.branch(other));
    for first in [
        SimulatedUpstream { latency: 1, ..honest(&apart) },
        SimulatedUpstream { latency: 1, tricks: vec![UpstreamTrick::NewLocation], ..honest(&chain) },
    ] {
        let data = ScenarioData { chains: chains.clone(), foreign: Vec::new(), false_tops: Vec::new() };
        let config = ClientConfig { min_depth: 1, ..ClientConfig::default() };
        let mut play = Play::new(data, vec![first, honest(&chain)], config, time);
        assert!(play.sync(60_000));
        play.run(20_000);
        assert_eq!(play.head(), Some(main));
        let (method, params) = Probe::Receipt(0, false).call();
        let answer = play.send(method, &params);
        assert_eq!(answer["result"]["blockHash"], json!(chain[1]), "{answer}");
    }
}

/// Requests concern the heaviest chain, so that upstreams on that chain are asked first, even if another branch has
/// more blocks.
#[test]
fn an_upstream_on_a_longer_but_lighter_branch_is_asked_last() {
    let mut chains = Chains::new(8);
    let (mut main, mut other) = (chains.base.hash(), chains.base.hash());
    for step in 0..3 {
        let uncles = if step == 1 { (0..4).map(|_| chains.sibling(main)).collect() } else { Vec::new() };
        main = chains.mine(main, Wish { uncles, ..Wish::default() });
    }
    for _ in 0..6 {
        other = chains.mine(other, Wish::default());
    }
    let time = chains.block(&other).header.timestamp;
    let (chain, longer) = (chains.branch(main), chains.branch(other));
    let data = ScenarioData { chains, foreign: Vec::new(), false_tops: Vec::new() };
    let upstreams = vec![SimulatedUpstream { latency: 1, ..honest(&longer) }, honest(&chain)];
    let mut play = Play::new(data, upstreams, ClientConfig::default(), time);
    assert!(play.sync(60_000));
    play.run(20_000);
    assert_eq!((play.head(), play.client.sync().roster()), (Some(main), vec![1, 0]));
}
