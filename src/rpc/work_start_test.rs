//! A client that trusts no block: which chain it accepts as a start, from which upstream, and what it reports about
//! the start.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use super::mined_chain::{BASE_DIFFICULTY, Mined, START, ask};
use crate::{
    consensus::{Checkpoint, Network, Rule, WorkStart, WorkStartError, testing::easy_network},
    light::{ClientConfig, HeaderStoreFault, HeaderSync, Now, RequestFailure, SyncOptions, SyncStep},
    rpc::Client,
    types::{SealedHeader, U256},
};

/// Headers above the start block: a day and some minutes at 100 s per block.
pub(super) const HEADERS: usize = 880;

/// The least difficulty of a start block on this network.
const LEAST: u64 = 300;

/// Seconds between blocks.
const SPACING: u64 = 100;

pub(super) fn network() -> Network {
    let mut network = easy_network(&[], &[(Rule::Rskip110, u64::MAX)]);
    let start = WorkStart { difficulty: U256::from(LEAST), from: START, headers: HEADERS as u64 };
    network.work_start = Some(start);
    network
}

pub(super) fn upstream() -> Mined {
    Mined::from(START, network())
}

/// Adds blocks of nearly constant difficulty: each states six uncles, which makes 98 s the target spacing.
pub(super) fn grow(mined: &mut Mined, blocks: usize) {
    for index in 0..blocks {
        let seconds = if index % 2 == 0 { SPACING - 3 } else { SPACING + 3 };
        let next = mined.next(|header| {
            header.uncle_count = 6;
            header.timestamp = header.timestamp - 14 + seconds;
        });
        mined.blocks.push((next, Vec::new()));
    }
}

/// An honest chain that is longer than required.
pub(super) fn honest() -> Mined {
    static BLOCKS: OnceLock<Vec<SealedHeader>> = OnceLock::new();
    let blocks = BLOCKS.get_or_init(|| {
        let mut mined = upstream();
        grow(&mut mined, HEADERS + 60);
        mined.blocks.into_iter().map(|(header, _)| header).collect()
    });
    let mut mined = upstream();
    mined.blocks = blocks.iter().map(|header| (header.clone(), Vec::new())).collect();
    mined
}

/// A chain with the length and timestamps of the honest one, another first block, and two thirds of the difficulty.
pub(super) fn light() -> Mined {
    static BLOCKS: OnceLock<Vec<SealedHeader>> = OnceLock::new();
    let blocks = BLOCKS.get_or_init(|| {
        let mut mined = upstream();
        let first = crate::types::Header {
            difficulty: (BASE_DIFFICULTY * 2 / 3).into(),
            gas_used: 5,
            ..crate::consensus::testing::header(&network(), START)
        };
        mined.blocks[0].0 = crate::consensus::testing::mine(first);
        grow(&mut mined, HEADERS + 60);
        mined.blocks.into_iter().map(|(header, _)| header).collect()
    });
    let mut mined = upstream();
    mined.blocks = blocks.iter().map(|header| (header.clone(), Vec::new())).collect();
    mined
}

fn client(upstreams: usize) -> Client {
    let config = ClientConfig { upstreams: vec!["upstream".into(); upstreams], ..ClientConfig::default() };
    started(network(), config, SyncOptions::default())
}

fn started(network: Network, config: ClientConfig, options: SyncOptions) -> Client {
    let work = network.start_by_work().unwrap();
    let sync = HeaderSync::by_work(Arc::new(network), work, config.upstreams.len(), options);
    Client::following(sync, config)
}

/// How an upstream responds to a request.
pub(super) enum Behavior<'a> {
    Answers(&'a mut Mined),
    /// The upstream accepts the request and never responds.
    Silent,
    Fails,
}

/// Runs the client from one moment to another, both in milliseconds; `unix` is the wall clock at the first one, in
/// seconds.
pub(super) fn run(client: &mut Client, ways: &mut [Behavior<'_>], unix: u64, from: u64, to: u64) {
    let mut millis = from;
    while millis < to {
        let now = Now { unix: unix + (millis - from) / 1_000, millis };
        for (index, way) in ways.iter_mut().enumerate() {
            for _ in 0..50 {
                let SyncStep::Fetch(calls) = client.sync_next(index, now) else { break };
                let answers = match way {
                    Behavior::Answers(mined) => calls.iter().map(|call| mined.answer(call)).collect(),
                    Behavior::Fails => {
                        calls.iter().map(|_| Err(RequestFailure::Transport("down".into()))).collect()
                    }
                    Behavior::Silent => break,
                };
                client.sync_feed(index, answers, now);
            }
        }
        millis += 500;
    }
}

fn start_with(mined: &mut Mined) -> Client {
    let mut client = client(1);
    let unix = mined.now().unix;
    run(&mut client, &mut [Behavior::Answers(mined)], unix, 0, 2_000);
    client
}

pub(super) fn sum(mined: &Mined, newest: usize) -> U256 {
    mined.blocks.iter().rev().take(newest).map(|(header, _)| header.difficulty.value()).sum()
}

/// Checks that nothing is answered, for this reason.
pub(super) fn refused_for(client: &mut Client, reason: &str) {
    assert!(client.sync().chain().is_none() && !client.sync().is_synced());
    let fault = client.sync().fault().map(|fault| fault.to_string()).unwrap_or_default();
    assert!(fault.contains(reason), "{fault}");
    let error = &ask(client, "eth_blockNumber", json!([]))["error"];
    assert_eq!(error["code"], -32002, "{error}");
}

#[test]
fn a_chain_of_enough_work_is_a_start_and_answers_say_so() {
    let mut mined = honest();
    let mut client = start_with(&mut mined);
    let head = mined.head().clone();
    let anchor = head.number - HEADERS as u64;
    assert_eq!(client.sync().checkpoint().number, anchor);
    assert_eq!(client.sync().chain().unwrap().head().hash(), head.hash());
    let height = ask(&mut client, "eth_blockNumber", json!([]));
    assert_eq!(
        (&height["result"], &height["start"]),
        (&json!(format!("{:#x}", head.number)), &json!("work"))
    );
    // An answer that needs no block does not state the start.
    assert_eq!(ask(&mut client, "eth_chainId", json!([])).get("start"), None);
    let status = ask(&mut client, "rootlight_syncStatus", json!([]))["result"].clone();
    assert_eq!((&status["start"], &status["synced"]), (&json!("work"), &json!(true)));
    let cost = |value: &Value| value["attackCost"].as_str().unwrap().parse::<U256>().unwrap();
    assert_eq!(cost(&status), sum(&mined, HEADERS));
    for (number, headers) in
        [(head.number, 1), (head.number - 9, 10), (anchor + 1, HEADERS), (anchor, HEADERS)]
    {
        let proof = ask(&mut client, "rootlight_verification", json!([format!("{number:#x}")]));
        assert_eq!(proof["start"], "work");
        let proof = &proof["result"];
        assert_eq!((&proof["start"], cost(proof)), (&json!("work"), sum(&mined, headers)), "block {number}");
    }
    let origin =
        ask(&mut client, "rootlight_verification", json!([format!("{anchor:#x}")]))["result"].clone();
    assert_eq!(origin["origin"], "work", "its hash is not trusted");
    // The chain continues as after a checkpoint.
    grow(&mut mined, 3);
    let unix = mined.now().unix;
    run(&mut client, &mut [Behavior::Answers(&mut mined)], unix, 60_000, 70_000);
    assert_eq!(client.sync().chain().unwrap().head().hash(), mined.head().hash());
}

/// docs/light.md lists every member of these answers, in a table for each.
#[test]
fn the_documentation_names_every_member_of_the_status_answers() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/light.md")).unwrap();
    let mut mined = honest();
    let mut client = start_with(&mut mined);
    for name in ["rootlight_syncStatus", "rootlight_verification"] {
        let answer = ask(&mut client, name, json!([]))["result"].clone();
        let (_, table) = page.split_once(&format!("### Members of `{name}`")).unwrap();
        let table = table.split("\n### ").next().unwrap();
        for member in answer.as_object().unwrap().keys() {
            assert!(table.contains(&format!("`{member}`")), "{name}: {member}");
        }
    }
}

#[test]
fn answers_after_a_checkpoint_say_so() {
    let mut mined = Mined::new();
    mined.grow(5, 30);
    let mut client = mined.client();
    let proof = ask(&mut client, "rootlight_verification", json!([]));
    assert_eq!(proof.get("start"), None);
    let proof = &proof["result"];
    assert_eq!((&proof["start"], &proof["attackCost"]), (&json!("checkpoint"), &Value::Null));
}

#[test]
fn nothing_is_answered_before_the_headers_are_there() {
    let mut mined = honest();
    let mut client = client(1);
    let now = mined.now();
    let head = mined.head().number;
    let mut shown = Vec::new();
    while !client.sync().is_synced() {
        let words = ask(&mut client, "eth_blockNumber", json!([]))["error"]["message"].to_string();
        assert!(words.contains("still synchronizing"), "{words}");
        let progress = client.sync().progress();
        shown.push((progress.start, progress.head, progress.target));
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("nothing is asked") };
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
    }
    // Progress counts the headers above the proposed block.
    let half_way = |&(from, at, to): &(u64, u64, u64)| {
        from == head - HEADERS as u64 && to == head && from + 100 < at && at < to
    };
    assert!(shown.iter().any(half_way), "{shown:?}");
}

/// The difficulty that the first block states does not count by itself.
#[test]
fn a_first_block_of_low_difficulty_is_refused() {
    let mut mined = upstream();
    mined.blocks[0].0 = crate::consensus::testing::mine(crate::types::Header {
        difficulty: (LEAST - 1).into(),
        ..mined.blocks[0].0.header().clone()
    });
    grow(&mut mined, HEADERS);
    let mut client = start_with(&mut mined);
    refused_for(&mut client, "has difficulty 299; at least 300 is required");
    assert_eq!(client.sync().upstreams()[0].record.lies, 0, "no upstream is blamed");
}

/// Slow blocks let the difficulty fall, so that the chain shows too little work, whatever the first block states.
#[test]
fn a_chain_of_slow_blocks_is_refused() {
    let mut mined = upstream();
    mined.grow(HEADERS, 300);
    let mut client = start_with(&mut mined);
    refused_for(&mut client, "% of the expected work");
}

#[test]
fn an_old_chain_is_refused_and_one_fresh_block_does_not_help() {
    let mut mined = honest();
    let unix = mined.now().unix + 1_801;
    let mut old = client(1);
    run(&mut old, &mut [Behavior::Answers(&mut mined)], unix, 0, 2_000);
    refused_for(&mut old, "s old");
    let fresh = mined.next(|header| header.timestamp = unix);
    mined.blocks.push((fresh, Vec::new()));
    let mut client = start_with(&mut mined);
    refused_for(&mut client, "there is no block for 1801 s before block");
}

/// The clock may be ahead of the head by an accepted gap. The work floor covers the hours up to the clock.
#[test]
fn the_work_floor_applies_up_to_the_present_time() {
    let mut mined = honest();
    let unix = mined.now().unix + 1_700;
    let mut good = client(1);
    run(&mut good, &mut [Behavior::Answers(&mut mined)], unix, 0, 2_000);
    assert!(good.sync().is_synced());
    // 800 * 30 / 100 = 240 per 30 s is 80 % of the difficulty 300: a floor of 79 % leaves no room for the gap.
    let options = SyncOptions { work_floor: 79, ..SyncOptions::default() };
    let config = ClientConfig { upstreams: vec!["upstream".into()], ..ClientConfig::default() };
    let mut strict = started(network(), config, options);
    run(&mut strict, &mut [Behavior::Answers(&mut mined)], unix, 0, 2_000);
    refused_for(&mut strict, "the 7200 s up to block");
}

/// Two hours of too little work that end more than a day below the head refuse the start as well.
#[test]
fn two_hours_of_too_little_work_in_the_first_day_refuse_the_start() {
    let mut network = network();
    network.work_start.as_mut().unwrap().headers = 1_000;
    let mut mined = upstream();
    grow(&mut mined, 80);
    mined.grow(4, 1_700);
    grow(&mut mined, 990);
    let config = ClientConfig { upstreams: vec!["upstream".into()], ..ClientConfig::default() };
    let mut client = started(network, config, SyncOptions::default());
    let unix = mined.now().unix;
    run(&mut client, &mut [Behavior::Answers(&mut mined)], unix, 0, 2_000);
    refused_for(&mut client, "the 7200 s up to block 5084 show");
    refused_for(&mut client, "% of the expected work; 50 % is required");
}

#[test]
fn a_chain_that_is_too_short_is_refused() {
    let mut mined = upstream();
    grow(&mut mined, HEADERS - 1);
    let mut client = start_with(&mut mined);
    refused_for(&mut client, "a start needs 880 headers above block 5000 or a later one");
}

/// Blocks at short intervals reach the required number of headers, but span less than a day.
#[test]
fn blocks_of_less_than_a_day_are_refused() {
    let mut mined = upstream();
    mined.grow(HEADERS, 14);
    let mut client = start_with(&mut mined);
    refused_for(&mut client, "span less than a day");
}

#[test]
fn the_heavier_of_two_chains_wins_in_any_order() {
    for honest_first in [true, false] {
        let (mut honest, mut light) = (honest(), light());
        assert!(sum(&light, HEADERS) < sum(&honest, HEADERS));
        let (unix, head) = (honest.now().unix, honest.head().hash());
        let mut client = client(2);
        let mut ways = [Behavior::Answers(&mut honest), Behavior::Answers(&mut light)];
        if !honest_first {
            ways.reverse();
        }
        run(&mut client, &mut ways, unix, 0, 20_000);
        assert!(client.sync().is_synced());
        assert_eq!(client.sync().chain().unwrap().head().hash(), head);
        let other = &client.sync().upstreams()[usize::from(honest_first)];
        let (_, fault) = other.resting.as_ref().expect("it follows another chain");
        assert!(fault.to_string().contains("no link to a verified header"), "{fault}");
        assert_eq!(other.record.lies, 0, "another chain is not a lie");
    }
}

/// Upstreams of one chain at different heights propose different blocks and agree.
#[test]
fn upstreams_at_different_heights_share_a_start() {
    let (mut ahead, mut behind) = (honest(), honest());
    behind.blocks.truncate(behind.blocks.len() - 2);
    let (unix, head) = (ahead.now().unix, ahead.head().hash());
    let mut client = client(2);
    run(&mut client, &mut [Behavior::Answers(&mut behind), Behavior::Answers(&mut ahead)], unix, 0, 10_000);
    assert!(client.sync().is_synced());
    assert_eq!(client.sync().chain().unwrap().head().hash(), head);
    assert!(client.sync().upstreams().iter().all(|state| state.resting.is_none()));
}

/// An upstream that withholds its headers delays the start only for a limited time. If its chain turns out heavier,
/// the client switches to it.
#[test]
fn a_late_chain_wins_if_it_is_heavier() {
    for late_is_heavier in [true, false] {
        let (mut early, mut late) = if late_is_heavier { (light(), honest()) } else { (honest(), light()) };
        let (unix, first, second) = (early.now().unix, early.head().hash(), late.head().hash());
        let mut client = client(2);
        let mut ways = [Behavior::Answers(&mut early), Behavior::Silent];
        run(&mut client, &mut ways, unix, 0, 29_000);
        assert!(!client.sync().is_synced(), "the other upstream is waited for");
        run(&mut client, &mut ways, unix, 29_000, 70_000);
        assert!(client.sync().is_synced());
        assert_eq!(client.sync().chain().unwrap().head().hash(), first);
        let mut ways = [Behavior::Answers(&mut early), Behavior::Answers(&mut late)];
        // The late upstream responds to the earlier request, and to those that follow.
        run(&mut client, &mut ways, unix, 70_000, 200_000);
        let head = client.sync().chain().unwrap().head().hash();
        assert_eq!(head, if late_is_heavier { second } else { first });
        assert!(client.sync().is_synced());
        let height = ask(&mut client, "eth_blockNumber", json!([]));
        assert_eq!(height["start"], "work");
        // A lighter chain is compared again only after a pause.
        let asked = late.windows().count();
        assert!(late_is_heavier || asked < 60, "{asked} windows");
    }
}

/// An upstream may say that it has no blocks below the one that it proposes. A late upstream whose chain has other
/// blocks there is not blamed: it proposes its own chain, which is compared.
#[test]
fn a_late_chain_wins_over_one_without_older_blocks() {
    let chain = |difficulty: u64, oldest: u64| {
        let mut mined = Mined::from(START - 500, network());
        let first = mined.blocks[0].0.header().clone();
        mined.blocks[0].0 =
            crate::consensus::testing::mine(crate::types::Header { difficulty: difficulty.into(), ..first });
        grow(&mut mined, 500 + HEADERS + 60);
        mined.blocks.retain(|(header, _)| header.number >= oldest);
        mined
    };
    let (mut early, mut late) = (chain(BASE_DIFFICULTY * 2 / 3, START + 60), chain(BASE_DIFFICULTY, 0));
    assert_eq!(early.head().number, START + HEADERS as u64 + 60);
    let (unix, first, second) = (early.now().unix, early.head().hash(), late.head().hash());
    let mut client = client(2);
    run(&mut client, &mut [Behavior::Answers(&mut early), Behavior::Silent], unix, 0, 70_000);
    assert_eq!(client.sync().chain().unwrap().head().hash(), first);
    let mut both = [Behavior::Answers(&mut early), Behavior::Answers(&mut late)];
    run(&mut client, &mut both, unix, 70_000, 140_000);
    assert_eq!(client.sync().upstreams()[1].record.lies, 0, "its own blocks are no lie");
    assert_eq!(client.sync().chain().unwrap().head().hash(), second);
}

/// An upstream that is silent once, or asks for a pause, is not asked in other forms at once, and may still be asked in
/// binary later.
#[test]
fn a_silent_upstream_proposes_again_in_the_same_form() {
    for (failure, pause) in [
        (RequestFailure::Transport("timeout".into()), 5_000),
        (RequestFailure::Busy { seconds: Some(60) }, 60_000),
    ] {
        let mut mined = honest();
        let (mut client, now) = (client(1), mined.now());
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("nothing is asked") };
        client.sync_feed(0, calls.iter().map(|call| mined.answer(call)).collect(), now);
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("nothing is asked") };
        assert_eq!(calls.iter().map(|call| call.method).collect::<Vec<_>>(), ["rootlight_getHeaders"]);
        client.sync_feed(0, vec![Err(failure)], now);
        let next = client.sync_next(0, now);
        assert!(matches!(next, SyncStep::Wait(wait) if wait == pause), "{next:?}");
        run(&mut client, &mut [Behavior::Answers(&mut mined)], now.unix, now.millis + pause, 100_000);
        assert!(client.sync().is_synced());
        let methods: Vec<&str> = mined.asked.iter().map(|call| call.method).collect();
        assert_eq!(methods[..3], ["eth_blockNumber", "eth_blockNumber", "rootlight_getHeaders"]);
        assert_eq!(client.sync().upstreams()[0].can.headers, Some(true));
    }
}

/// A failed connection loses none of the headers that were shown.
#[test]
fn a_proposed_start_continues_after_a_failed_connection() {
    let mut mined = honest();
    let (mut client, now) = (client(1), mined.now());
    let first = mined.head().number - HEADERS as u64 + 1;
    while !mined.windows().any(|(number, _)| number > first) {
        let SyncStep::Fetch(calls) = client.sync_next(0, now) else { panic!("nothing is asked") };
        let answers = calls.iter().map(|call| mined.answer(call)).collect();
        client.sync_feed(0, answers, now);
    }
    let shown = mined.windows().count();
    run(&mut client, &mut [Behavior::Fails], now.unix, 0, 3_000);
    assert!(client.sync().fault().is_some());
    run(&mut client, &mut [Behavior::Answers(&mut mined)], now.unix, 20_000, 30_000);
    assert!(client.sync().is_synced());
    assert!(mined.windows().skip(shown).all(|(number, _)| number != first), "no window is requested twice");
}

#[test]
fn a_chain_beyond_the_rules_known_asks_for_an_update() {
    let mut mined = honest();
    let mut known = network();
    known.known_until = Some(mined.head().number - 5);
    let config = ClientConfig { upstreams: vec!["upstream".into()], ..ClientConfig::default() };
    let mut client = started(known, config, SyncOptions::default());
    let unix = mined.now().unix;
    run(&mut client, &mut [Behavior::Answers(&mut mined)], unix, 0, 2_000);
    refused_for(&mut client, "update needed");
    let state = &client.sync().upstreams()[0];
    assert!(
        state.record.evidence.is_empty() && state.record.demerits == 0,
        "no upstream is blamed: {state:?}"
    );
}

#[test]
fn networks_with_cheap_or_unknown_work_have_no_start_by_work() {
    let refused = |network: Network| network.start_by_work().unwrap_err();
    let words = refused(Network::testnet()).to_string();
    assert!(words.contains("testnet: ") && words.contains("nearly free"), "{words}");
    assert!(matches!(refused(Network::testnet2()), WorkStartError::CheapWork(_)));
    assert!(matches!(refused(Network::regtest()), WorkStartError::FreeTimes(_)));
    let mut unknown = network();
    unknown.work_start = None;
    assert!(matches!(refused(unknown), WorkStartError::Unknown(_)));
    let mainnet = Network::mainnet().start_by_work().unwrap();
    assert!(mainnet.from >= Network::mainnet().newest_fork());
    assert_eq!(mainnet.difficulty, U256::from(4_000) * U256::from(10).pow(U256::from(18)));
}

/// Anyone who can write to the disk can write a store, so that a start by work neither reads nor writes one.
#[test]
fn a_start_by_work_uses_no_store() {
    let mut mined = honest();
    let first = start_with(&mut mined);
    assert!(first.sync().is_synced() && first.export().is_empty());
    let base = mined.blocks[0].0.clone();
    let checkpoint = Checkpoint { number: START, hash: base.hash(), total_difficulty: None };
    let chain =
        crate::consensus::HeaderChain::from_checkpoint(Arc::new(network()), &checkpoint, base).unwrap();
    let pages = HeaderSync::pages_of(checkpoint, chain);
    assert!(!pages.is_empty());
    let mut second = client(1);
    let taken = second.restore(pages.len() as u64, &mut |index| Ok(pages.get(index as usize).cloned()));
    assert_eq!(taken, Err(HeaderStoreFault::ByWork));
    assert!(second.sync().chain().is_none() && !second.sync().is_synced());
    let unix = mined.now().unix;
    run(&mut second, &mut [Behavior::Answers(&mut mined)], unix, 0, 2_000);
    assert!(second.sync().is_synced(), "it starts from what upstreams show");
}
