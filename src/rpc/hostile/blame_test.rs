//! What honest upstreams say of blocks off their chain, and of headers that JSON does not show whole, is no misbehaviour.

use super::{
    chain::{Chains, Wish},
    oracle::{At, Question},
    play::Play,
    random::Random,
    upstream::{Stage, Upstream},
};
use crate::light::Identity;

fn honest(chain: &[crate::types::B256]) -> Upstream {
    Upstream {
        chain: chain.to_vec(),
        tricks: Vec::new(),
        forger: false,
        latency: 50,
        binary: None,
        random: Random(1),
        valid: true,
    }
}

/// By number an upstream proves the state of its own chain; asked by hash it proves that of the other block.
#[test]
fn questions_about_blocks_off_the_chain_blame_nobody() {
    let mut chains = Chains::new(8);
    let (base, mut main) = (chains.base.hash(), chains.base.hash());
    let side = chains.mine(base, Wish { transactions: vec![0], ..Wish::default() });
    for _ in 0..3 {
        main = chains.mine(main, Wish::default());
    }
    // States more uncles than it has, which JSON does not show.
    let top = chains.mine(side, Wish { count: Some(1 << 20), ..Wish::default() });
    let (chain, time) = (chains.branch(main), chains.block(&main).header.timestamp);
    let balances = [side, top].map(|hash| (At::Hash(hash), chains.block(&hash).facts.balance));
    let stage = Stage { chains, foreign: Vec::new(), false_tops: Vec::new() };
    let upstreams = vec![honest(&chain), honest(&chain)];
    let mut play = Play::new(stage, upstreams, Identity::default(), time);
    assert!(play.sync(60_000));
    for (at, balance) in balances {
        let (method, params) = Question::Balance(at).call();
        assert_eq!(play.send(method, &params)["result"], format!("{balance:#x}"));
        for question in [Question::Cell(at), Question::CallHash(at, 5_000), Question::TransactionCount(at)] {
            let (method, params) = question.call();
            let answer = play.send(method, &params);
            assert!(answer["result"].is_string(), "{answer}");
        }
    }
    // The receipts of a transaction that is not on the chain are nowhere to be had.
    let (method, params) = Question::LogsOf(side).call();
    assert!(play.send(method, &params)["error"].is_object());
    assert_eq!(play.blame(main), None);
}
