//! Synchronization: reorganisations, other chains, upstreams that announce more or less than they have.

use crate::support;

use rootlight::{
    consensus::{Checkpoint, Network},
    light::{ClientConfig, Now, SyncStep},
    rpc::Client,
};
use serde_json::{Value, json};
use support::{
    chain::{lines, text},
    shared, u64_of,
    upstream::{Harness, RecordedUpstream},
};

fn recording(head: u64) -> Option<RecordedUpstream> {
    Some(RecordedUpstream::open(&shared()?.join("vectors/chain"), head))
}

/// Side blocks of the recording with complete transactions.
fn side_blocks() -> Vec<Value> {
    let path = shared().unwrap().join("vectors/chain/side_blocks.jsonl");
    let blocks = lines(&path).into_iter().filter(|line| {
        line["request"]["method"] == "eth_getBlockByHash" && line["request"]["params"][1] == true
    });
    blocks.map(|line| line["response"]["result"].clone()).collect()
}

#[test]
fn a_reorganisation_is_followed_and_the_old_block_stays_known() {
    let Some(recording_at) = recording(HEIGHT) else { return };
    const HEIGHT: u64 = 155;
    let side = side_blocks().into_iter().find(|block| u64_of(text(block, "number")) == HEIGHT).unwrap();
    let mut first = recording_at;
    first.show(&side);
    let mut harness = Harness::new(&first, Network::regtest());
    harness.sync().unwrap();
    let head = harness.call("eth_getBlockByNumber", &json!(["latest", false])).unwrap();
    assert_eq!(head["hash"], side["hash"]);

    let second = recording(HEIGHT + 5).unwrap();
    let mut harness = Harness { recording: &second, ..harness };
    harness.client.sync_poll();
    harness.sync().unwrap();
    let block = harness.call("eth_getBlockByNumber", &json!([format!("{HEIGHT:#x}"), false])).unwrap();
    assert_ne!(block["hash"], side["hash"]);
    assert_eq!(harness.call("eth_blockNumber", &json!([])), Ok(json!(format!("{:#x}", HEIGHT + 5))));
    let old = harness.call("eth_getBlockByHash", &json!([side["hash"], false])).unwrap();
    assert_eq!(old["hash"], side["hash"]);
    // A side block has nothing on top.
    let verified = harness.call("rootlight_verification", &json!([side["hash"]])).unwrap();
    assert_eq!((&verified["canonical"], &verified["origin"]), (&json!(false), &json!("mined")));
    assert_eq!((&verified["depth"], &verified["workOnTop"]), (&json!("0x0"), &Value::Null));
    let canonical = json!([text(&side, "miner"), { "blockHash": side["hash"], "requireCanonical": true }]);
    assert_eq!(harness.call("eth_getBalance", &canonical).unwrap_err()["code"], -32600);
}

/// A block may be announced while a response is under way that does not know it yet.
#[test]
fn an_announcement_during_a_fetch_is_not_lost() {
    let (Some(first), Some(second)) = (recording(5), recording(6)) else { return };
    let mut harness = Harness::new(&first, Network::regtest());
    harness.sync().unwrap();
    harness.client.sync_poll();
    // The first fetch asks for the height, the second for the newest header and the next one.
    for fetch in 0..2 {
        let step = harness.client.sync_next(0, Now::default());
        let SyncStep::Fetch(calls) = step else { panic!("fetch {fetch}: {step:?}") };
        let answers = harness.ask(&calls);
        harness.client.sync_hint(0);
        harness.client.sync_feed(0, answers, Now::default());
    }
    let mut harness = Harness { recording: &second, ..harness };
    harness.sync().unwrap();
    assert_eq!(harness.call("eth_blockNumber", &json!([])), Ok(json!("0x6")));
    // The client waits (some milliseconds) and does not fetch again, so the announcement is used up.
    assert!(matches!(harness.client.sync_next(0, Now::default()), SyncStep::Wait(1..)));
}

/// A store after a reorganisation: the heaviest branch is restored, with its uncles.
#[test]
fn the_store_follows_reorganisations_and_contains_uncles() {
    const HEIGHT: u64 = 155;
    let Some(mut first) = recording(HEIGHT) else { return };
    let side = side_blocks().into_iter().find(|block| u64_of(text(block, "number")) == HEIGHT).unwrap();
    first.show(&side);
    let mut store: Vec<Vec<u8>> = Vec::new();
    let keep = |store: &mut Vec<Vec<u8>>, harness: &mut Harness<'_>| {
        let pages = harness.client.export();
        assert!(!pages.is_empty());
        store.truncate(pages[0].index as usize);
        store.extend(pages.into_iter().map(|page| page.bytes));
    };
    let back = |store: &[Vec<u8>]| {
        let checkpoint = Checkpoint {
            number: 0,
            hash: Network::regtest().genesis_hash,
            total_difficulty: Some(alloy_primitives::U256::from(1)),
        };
        let client = Client::new(Network::regtest().into(), checkpoint, ClientConfig::default());
        client.restore(store.len() as u64, &mut |index| Ok(store.get(index as usize).cloned())).unwrap();
        client.sync().chain().unwrap().clone()
    };
    let mut harness = Harness::new(&first, Network::regtest());
    harness.sync().unwrap();
    keep(&mut store, &mut harness);
    assert_eq!(back(&store).head().hash().to_string(), text(&side, "hash"));

    let second = recording(HEIGHT + 5).unwrap();
    let mut harness = Harness { recording: &second, ..harness };
    harness.client.sync_poll();
    harness.sync().unwrap();
    keep(&mut store, &mut harness);
    let (live, kept) = (harness.client.sync().chain().unwrap().clone(), back(&store));
    assert_eq!((kept.head().hash(), kept.head().number), (live.head().hash(), HEIGHT + 5));
    assert!(kept.by_hash(&text(&side, "hash").parse().unwrap()).is_none(), "the abandoned block is gone");
    let head = live.head().hash();
    assert!(live.total_difficulty(&head).is_some());
    assert_eq!(kept.total_difficulty(&head), live.total_difficulty(&head), "with all uncles");
    for number in 0..=HEIGHT + 5 {
        assert_eq!(kept.view().hash_at(number), live.view().hash_at(number));
    }
}

/// Uncles that no upstream had are requested again after a restart.
#[test]
fn uncles_missing_in_the_store_are_requested() {
    let Some(mut without) = recording(90) else { return };
    without.withheld = vec!["eth_getUncleByBlockHashAndIndex", "eth_getUncleByBlockNumberAndIndex"];
    let mut harness = Harness::new(&without, Network::regtest());
    harness.sync().unwrap();
    let pages = harness.client.export();
    let whole = recording(90).unwrap();
    let mut again = Harness::new(&whole, Network::regtest());
    let mut read = |index: u64| Ok(pages.get(index as usize).map(|page| page.bytes.clone()));
    assert_eq!(again.client.restore(pages.len() as u64, &mut read), Ok(Some(90)));
    again.sync().unwrap();
    let block = again.call("eth_getBlockByNumber", &json!(["0x5a", false])).unwrap();
    assert!(block["totalDifficulty"].is_string(), "{block}");
}

#[test]
fn an_upstream_of_another_network_is_refused_at_the_checkpoint() {
    let Some(recording) = recording(20) else { return };
    let mut harness = Harness::new(&recording, Network::testnet());
    let fault = harness.sync().unwrap_err();
    assert!(fault.starts_with("block 0: "), "{fault}");
    let error = harness.call("eth_blockNumber", &json!([])).unwrap_err();
    assert_eq!(error["code"], -32002);
    assert!(text(&error, "message").contains("synchronization stopped: recording: block 0: "), "{error}");
}

#[test]
fn an_announced_height_too_high_is_a_fault_and_too_low_hides_no_block() {
    let Some(mut recording) = recording(30) else { return };
    recording.announced = Some(33);
    let fault = Harness::new(&recording, Network::regtest()).sync().unwrap_err();
    assert!(fault.starts_with("block 31: "), "{fault}");
    recording.announced = Some(7);
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    assert_eq!(harness.call("eth_blockNumber", &json!([])), Ok("0x1e".into()));
}

#[test]
fn synchronization_stops_at_a_withheld_header_and_continues_later() {
    let Some(mut gap) = recording(40) else { return };
    // The recording still has the raw header, which does not suffice: the client takes its proof of work from this block object.
    gap.forget("eth_getBlockByNumber", &json!(["0x19", true]));
    let mut harness = Harness::new(&gap, Network::regtest());
    let fault = harness.sync().unwrap_err();
    assert!(fault.starts_with("block 25: "), "{fault}");
    assert_eq!(
        harness.call("eth_getBalance", &json!([text_address(), "latest"])).unwrap_err()["code"],
        -32002
    );
    let whole = recording(40).unwrap();
    let mut harness = Harness { recording: &whole, ..harness };
    harness.client.sync_poll();
    harness.sync().unwrap();
    assert_eq!(harness.call("eth_blockNumber", &json!([])), Ok("0x28".into()));
}

#[test]
fn without_uncles_the_total_difficulty_is_unknown() {
    let Some(mut recording) = recording(90) else { return };
    for line in lines(&shared().unwrap().join("vectors/chain/uncles.jsonl")) {
        recording.forget(text(&line["request"], "method"), &line["request"]["params"]);
    }
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    unknown_from_the_first_uncle_on(&mut harness);

    let mut recording = self::recording(90).unwrap();
    recording.withheld = vec!["eth_getUncleByBlockHashAndIndex", "eth_getUncleByBlockNumberAndIndex"];
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    unknown_from_the_first_uncle_on(&mut harness);
}

fn unknown_from_the_first_uncle_on(harness: &mut Harness<'_>) {
    // Block 0x49 has the first uncle: below it total difficulties are exact, above it they are unknown. The block
    // itself is an error, because its answer contains the hashes of its uncles, which are not proven.
    let below = harness.call("eth_getBlockByNumber", &json!(["0x48", false])).unwrap();
    assert_eq!(below["totalDifficulty"], "0x49");
    let above = harness.call("eth_getBlockByNumber", &json!(["0x4a", false])).unwrap();
    assert_eq!(above["totalDifficulty"], Value::Null);
    let error = harness.call("eth_getBlockByNumber", &json!(["0x49", false])).unwrap_err();
    assert!(text(&error, "message").contains("no proof of uncles of block 73"), "{error}");
}

#[test]
fn a_chain_that_does_not_link_to_the_checkpoint_is_a_fault() {
    const HEIGHT: u64 = 155;
    let Some(mut recording) = recording(HEIGHT + 5) else { return };
    let side = side_blocks().into_iter().find(|block| u64_of(text(block, "number")) == HEIGHT).unwrap();
    recording.show(&side);
    let hash = text(&side, "hash").parse().unwrap();
    let checkpoint = Checkpoint { number: HEIGHT, hash, total_difficulty: None };
    let mut harness = Harness::from_checkpoint(&recording, Network::regtest(), checkpoint);
    let fault = harness.sync().unwrap_err();
    assert!(fault.starts_with("block 156: "), "{fault}");
}

/// If a block object does not give a header with the right hash, the raw header is used, with the proof of work from
/// the object.
#[test]
fn a_header_that_json_does_not_restore_is_fetched_raw() {
    let Some(mut recording) = recording(30) else { return };
    let mut other = Harness::new(&recording, Network::regtest());
    other.sync().unwrap();
    let mut block = other.call("eth_getBlockByNumber", &json!(["0x10", true])).unwrap();
    block["extraData"] = "0x01".into();
    for full in [true, false] {
        recording.replace("eth_getBlockByNumber", &json!(["0x10", full]), &block);
    }
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    assert_eq!(harness.client.sync().chain().unwrap().head().number, 30);
    let raw = harness.asked.iter().filter(|(call, _)| call.method == "rsk_getRawBlockHeaderByNumber").count();
    assert_eq!(raw, 1);
}

#[test]
fn another_header_than_requested_is_a_fault() {
    let Some(mut recording) = recording(30) else { return };
    let mut other = Harness::new(&recording, Network::regtest());
    other.sync().unwrap();
    let block = other.call("eth_getBlockByNumber", &json!(["0x11", true])).unwrap();
    for full in [true, false] {
        recording.replace("eth_getBlockByNumber", &json!(["0x10", full]), &block);
    }
    recording.forget("rsk_getRawBlockHeaderByNumber", &json!(["0x10"]));
    let fault = Harness::new(&recording, Network::regtest()).sync().unwrap_err();
    assert!(fault.starts_with("block 16: ") && fault.contains("17"), "{fault}");
}

#[test]
fn uncles_of_another_block_are_a_fault() {
    let Some(mut recording) = recording(90) else { return };
    let uncles = lines(&shared().unwrap().join("vectors/chain/uncles.jsonl"));
    let answered = || uncles.iter().filter(|line| line["response"]["result"].is_object());
    let last = answered().next_back().unwrap()["response"]["result"].clone();
    for line in answered() {
        recording.replace(text(&line["request"], "method"), &line["request"]["params"], &last);
    }
    let fault = Harness::new(&recording, Network::regtest()).sync().unwrap_err();
    assert!(fault.starts_with("block 73: "), "{fault}");
}

#[test]
fn blocks_below_the_checkpoint_are_linked_by_hash_or_refused() {
    let Some(mut recording) = recording(60) else { return };
    let mut whole = Harness::new(&recording, Network::regtest());
    whole.sync().unwrap();
    let block = whole.call("eth_getBlockByNumber", &json!(["0x28", false])).unwrap();
    let older = whole.call("eth_getBlockByNumber", &json!(["0x27", false])).unwrap();
    let hash = text(&block, "hash").parse().unwrap();
    let checkpoint = Checkpoint { number: 0x28, hash, total_difficulty: None };
    let mut harness = Harness::from_checkpoint(&recording, Network::regtest(), checkpoint);
    harness.sync().unwrap();
    let linked = harness.call("eth_getBlockByNumber", &json!(["0x27", false])).unwrap();
    assert_eq!(linked["hash"], older["hash"]);
    assert_eq!(linked["totalDifficulty"], Value::Null);
    assert!(harness.call("eth_getBlockByNumber", &json!(["0x0", false])).is_ok());

    for full in [true, false] {
        recording.forget("eth_getBlockByNumber", &json!(["0x27", full]));
    }
    recording.forget("rsk_getRawBlockHeaderByNumber", &json!(["0x27"]));
    let mut harness = Harness::from_checkpoint(&recording, Network::regtest(), checkpoint);
    harness.sync().unwrap();
    assert_eq!(harness.call("eth_getBlockByNumber", &json!(["0x28", false])).unwrap()["hash"], block["hash"]);
    for params in [json!(["0x27", false]), json!(["0x0", false])] {
        let error = harness.call("eth_getBlockByNumber", &params).unwrap_err();
        assert!(text(&error, "message").contains("older than block 40"), "{error}");
    }
    let above = harness.call("eth_getBlockByNumber", &json!(["0x3d", false])).unwrap();
    assert_eq!(above, Value::Null, "no such block");
}

/// A block below the checkpoint that is not the parent of the next one is a lie.
#[test]
fn another_block_below_the_checkpoint_is_a_fault() {
    // A real block of this height, on another branch.
    let Some(other) = shared().and_then(|_| side_blocks().into_iter().next()) else { return };
    let number = u64::from_str_radix(&text(&other, "number")[2..], 16).unwrap();
    let above = number + 1;
    let mut recording = recording(above).unwrap();
    let mut whole = Harness::new(&recording, Network::regtest());
    whole.sync().unwrap();
    let block = whole.call("eth_getBlockByNumber", &json!([format!("{above:#x}"), false])).unwrap();
    let number_text = format!("{number:#x}");
    for full in [true, false] {
        recording.replace("eth_getBlockByNumber", &json!([number_text, full]), &other);
    }
    recording.forget("rsk_getRawBlockHeaderByNumber", &json!([number_text]));
    let hash = text(&block, "hash").parse().unwrap();
    let checkpoint = Checkpoint { number: above, hash, total_difficulty: None };
    let mut harness = Harness::from_checkpoint(&recording, Network::regtest(), checkpoint);
    let fault = harness.sync().unwrap_err();
    assert!(fault.starts_with(&format!("block {number}: ")), "{fault}");
}

fn text_address() -> &'static str {
    "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826"
}
