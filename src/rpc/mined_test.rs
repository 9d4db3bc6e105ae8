//! Chains that are mined for a client that sees no other one: what the header rules, the work floor and the
//! commitment to uncles accept.

use serde_json::{Value, json, value::RawValue};

use super::{
    SessionStep,
    mined_chain::{BASE_DIFFICULTY, HeaderAnswers, Mined, START, ask, family},
};
use crate::{
    consensus::{
        Rule,
        testing::{child, mine},
    },
    light::RequestFailure,
    types::{Header, U256, uncles_hash},
};

/// The chain is valid, and still no request is answered, because some hours show too little work.
fn shows_too_little(mined: &mut Mined, most: u64) {
    let mut client = mined.client();
    assert!(client.sync().is_synced());
    assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
    let transaction = json!([format!("0x{}", "77".repeat(32))]);
    for (method, params) in [
        ("eth_blockNumber", json!([])),
        ("eth_getBlockByNumber", json!(["latest", false])),
        ("eth_getTransactionByHash", transaction),
    ] {
        let error = &ask(&mut client, method, params)["error"];
        assert_eq!(error["code"], -32002, "{error}");
        let words = error["message"].as_str().unwrap();
        assert!(words.contains("% of the work") && words.contains("ask other upstreams"), "{words}");
    }
    let low = ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["lowWork"].clone();
    assert!(low["percent"].as_u64().is_some_and(|percent| percent <= most), "{low}");
}

#[test]
fn a_chain_with_enough_work_is_answered() {
    let mut mined = Mined::new();
    mined.grow(300, 30);
    let mut client = mined.client();
    let head = format!("{:#x}", mined.head().number);
    assert_eq!(ask(&mut client, "eth_blockNumber", json!([]))["result"], head);
    assert_eq!(ask(&mut client, "rootlight_syncStatus", json!([]))["result"]["lowWork"], Value::Null);
    // An upstream without headers below the checkpoint is asked for them once.
    mined.grow(1, 30);
    mined.follow_at(&mut client, 60_000);
    assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
    let below = mined.windows().filter(|(first, _)| *first < START).count();
    assert_eq!(below, 1);
}

/// A header with less difficulty than its parent requires.
#[test]
fn a_header_of_low_difficulty_is_refused() {
    let mut mined = Mined::new();
    mined.grow(20, 30);
    let honest = mined.head().hash();
    let easy = child(&mined.network, mined.head());
    let easy = mine(Header { difficulty: (BASE_DIFFICULTY / 2).into(), ..easy });
    mined.blocks.push((easy, Vec::new()));
    let client = mined.client();
    assert_eq!(client.sync().chain().unwrap().head().hash(), honest);
    let state = client.sync().upstreams().remove(0);
    let evidence = state.record.evidence.back().unwrap();
    assert!(evidence.lie && evidence.rule.contains("difficulty") && state.resting.is_some(), "{state:?}");
}

/// The difficulty falls by the rules when blocks are slow. A chain that is mined alone gets below the work floor that
/// way.
#[test]
fn a_chain_of_slow_blocks_is_below_the_work_floor() {
    let mut mined = Mined::new();
    mined.grow(300, 100);
    assert!(
        mined.head().difficulty.value() <= U256::from(BASE_DIFFICULTY - 290),
        "{:?}",
        mined.head().difficulty
    );
    shows_too_little(&mut mined, 30);
}

#[test]
fn one_fresh_block_on_an_old_chain_is_below_the_work_floor() {
    let mut mined = Mined::new();
    mined.grow(300, 30);
    mined.grow(1, 7_200);
    shows_too_little(&mut mined, 0);
}

#[test]
fn earlier_surplus_work_does_not_count_for_later_hours() {
    let mut mined = Mined::new();
    mined.grow(250, 14);
    mined.grow(60, 130);
    shows_too_little(&mut mined, 49);
}

/// Timestamps that alternate between two hours ahead and behind do not stretch the work.
#[test]
fn alternating_timestamps_do_not_stretch_the_work() {
    let mut mined = Mined::new();
    mined.grow(260, 30);
    let time = mined.head().timestamp;
    for step in 0..30_u64 {
        let next =
            mined.next(|header| header.timestamp = time + if step % 2 == 0 { 7_200 } else { 1 + step });
        mined.blocks.push((next, Vec::new()));
    }
    shows_too_little(&mut mined, 49);
}

/// An uncle count is only the miner's claim: work counts for uncles that are shown and proven.
#[test]
fn inflated_uncle_counts_add_nothing() {
    let (mut mined, uncle) = family();
    let none = mined.next(|header| header.uncle_count = 9);
    mined.blocks.push((none, Vec::new()));
    let list = [uncle.header().clone()];
    mined.adopt(9, uncle.clone());
    let mut client = mined.client();
    let work: U256 = mined.blocks[1..].iter().map(|(header, _)| header.difficulty.value()).sum();
    let chain = client.sync().chain().unwrap().clone();
    let expected = U256::from(1_000) + work + uncle.difficulty.value();
    assert_eq!(chain.total_difficulty(&mined.head().hash()), Some(expected));
    for (number, proven) in [(START + 11, "0x0"), (START + 12, "0x1")] {
        let count = ask(&mut client, "eth_getUncleCountByBlockNumber", json!([format!("{number:#x}")]));
        assert_eq!(count["result"], proven, "{count}");
    }
    // If the list is not shown, no more uncles are requested than a block can have.
    let absurd =
        mined.next(|header| (header.uncle_count, header.uncles_hash) = (1_000_000, uncles_hash(&list)));
    mined.blocks.push((absurd, Vec::new()));
    mined.asked.clear();
    let client = mined.client();
    assert_eq!(
        client.sync().chain().unwrap().head().hash(),
        mined.head().hash(),
        "{:?}",
        client.sync().upstreams()
    );
    let requests = mined.asked.iter().filter(|call| call.method.contains("Uncle")).count();
    assert!((1..=30).contains(&requests), "{requests}");
    assert_eq!(client.sync().chain().unwrap().total_difficulty(&mined.head().hash()), None);
}

/// A response with more headers than requested is not read to its end. Without another form of headers there is no
/// chain.
#[test]
fn a_response_with_more_headers_than_requested_is_refused() {
    let mut mined = Mined::new();
    mined.grow(5, 30);
    mined.header_answers = HeaderAnswers::Generous;
    let client = mined.client();
    assert!(client.sync().chain().is_none() && !client.sync().is_synced());
    assert_eq!(client.sync().upstreams()[0].can.headers, Some(false));
    assert!(
        mined.asked.iter().any(|call| call.method == "eth_getBlockByNumber"),
        "requested in another form"
    );
}

/// On a network where work is nearly free, the level says so.
#[test]
fn the_level_names_testnet_work() {
    for (rules, level) in [(&[][..], "verified"), (&[(Rule::Rskip97, u64::MAX)], "verified (testnet work)")] {
        let mut mined = Mined::under(rules);
        mined.grow(3, 30);
        let mut client = mined.client();
        assert_eq!(ask(&mut client, "rootlight_verification", json!([]))["result"]["level"], level);
    }
}

/// Asks for 20 transactions in a batch, with a host that has room for so many responses of each round. Returns the answers
/// and the number of rounds.
fn with_room_for(responses: usize) -> (Value, usize) {
    let mut mined = Mined::new();
    mined.grow(300, 30);
    let client = mined.client();
    let call = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "eth_getTransactionByHash", "params": [format!("{id:#066x}")] });
    let batch = Value::Array((1..=20).map(call).collect()).to_string();
    let (mut session, mut rounds) = (client.open(batch.as_bytes(), client.sync().now()), 0);
    loop {
        match client.step(&mut session, &|| false) {
            SessionStep::Done(answer) => {
                return (serde_json::from_str(&answer.into_text().unwrap()).unwrap(), rounds);
            }
            SessionStep::Fetch(round) => {
                rounds += 1;
                let null = || Ok(RawValue::from_string("null".into()).unwrap());
                let answer =
                    |place| if place < responses { null() } else { Err(RequestFailure::BudgetUsedUp) };
                let answers = round.answered(|part| (0..part.requests.len()).map(answer).collect());
                client.feed(&mut session, answers);
            }
        }
    }
}

#[test]
fn responses_for_which_there_is_no_room_are_requested_again_while_others_free_some() {
    let (whole, rounds) = with_room_for(usize::MAX);
    assert!(
        whole
            .as_array()
            .unwrap()
            .iter()
            .all(|answer| answer["result"].is_null() && answer["error"].is_null())
    );
    let (part, more) = with_room_for(3);
    assert_eq!(part, whole);
    assert!(more > rounds, "{more}, {rounds}");
    let (none, _) = with_room_for(0);
    for answer in none.as_array().unwrap() {
        let error = answer["error"]["message"].as_str().unwrap();
        assert!(error.contains("memory") && error.contains("ask for less at once"), "{error}");
    }
}
