//! Lies about transactions, receipts, logs and state.

use rootlight::light::UpstreamRequest;
use serde_json::{Value, json};

use crate::{
    actor::{Actor, ActorTrick},
    chains::{side_block, side_branch},
    network::HostileNetwork,
    recording,
    support::upstream::RecordedUpstream,
};

pub const HEAD: u64 = 130;
const LIMIT: u64 = 120_000;
const TOKEN: &str = "0x83c5541a6c8d2dbad642f385d8d06ca9b6c731ee";
const COW: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";
const TRANSACTION: &str = "0xe60832eaa5ee0abcd6ef05fa33f378dbd2998e8ce1dbcf91ca2a3bf9d5ec78cb";

/// Questions whose answers rest on facts of every kind.
pub fn questions() -> Vec<(&'static str, Value)> {
    let balance_of = format!("0x70a08231000000000000000000000000{}", &COW[2..]);
    vec![
        ("eth_blockNumber", json!([])),
        ("eth_getBlockByNumber", json!(["latest", true])),
        ("eth_getBalance", json!([COW, "0x7a"])),
        ("eth_getBalance", json!(["0x00000000000000000000000000000000deadbeef", "0x7a"])),
        ("eth_getTransactionByHash", json!([TRANSACTION])),
        ("eth_getTransactionReceipt", json!([TRANSACTION])),
        ("eth_getStorageAt", json!([TOKEN, "0x2", "0x7a"])),
        ("eth_getCode", json!([TOKEN, "0x7a"])),
        ("eth_getProof", json!([TOKEN, ["0x2", "0x999"], "0x7a"])),
        ("eth_call", json!([{ "to": TOKEN, "data": balance_of }, "0x7a"])),
        ("eth_getLogs", json!([{ "fromBlock": "0x60", "toBlock": "0x7a" }])),
    ]
}

/// What an honest upstream's answers prove.
pub fn truths(recording: &RecordedUpstream) -> Vec<Value> {
    let mut network = HostileNetwork::regtest(vec![Actor::new(recording, ActorTrick::Honest)]);
    assert!(network.sync(LIMIT));
    network.run(10_000);
    let asked = questions().into_iter();
    asked
        .map(|(method, params)| network.call(method, &params).unwrap_or_else(|e| panic!("{method}: {e}")))
        .collect()
}

/// Alone, the liar gets no false value through; beside an honest upstream every question gets its true answer.
fn fact_liar(trick: ActorTrick, affected: &str) {
    let Some(recording) = recording(HEAD) else { return };
    let truths = truths(&recording);
    let mut alone = HostileNetwork::regtest(vec![Actor::new(&recording, trick.clone())]);
    assert!(alone.sync(LIMIT), "{trick:?}");
    let mut refused = 0;
    for ((method, params), truth) in questions().iter().zip(&truths) {
        match alone.call(method, params) {
            Ok(answer) => assert!(&answer == truth, "{trick:?} {method} {params}: {answer}"),
            Err(error) => {
                assert!(error["message"].as_str().is_some_and(|text| text.len() > 20), "{error}");
                refused += usize::from(*method == affected);
            }
        }
    }
    assert!(refused > 0, "{trick:?} does not touch {affected}");

    let mut both = HostileNetwork::regtest(vec![
        Actor::new(&recording, trick.clone()),
        Actor::new(&recording, ActorTrick::Honest),
    ]);
    assert!(both.sync(LIMIT));
    both.run(10_000);
    for ((method, params), truth) in questions().iter().zip(&truths) {
        let answer = both.call(method, params);
        assert!(answer.as_ref() == Ok(truth), "{trick:?} {method} {params}: {answer:?}");
    }
    let record = both.client.sync().upstreams().remove(1).record;
    assert_eq!(record.lies, 0, "{:?}", record.evidence);
}

#[test]
fn stale_roots() {
    fact_liar(ActorTrick::StaleRoots, "eth_getBalance");
}

#[test]
fn proofs_of_other_keys() {
    fact_liar(ActorTrick::OtherKeys, "eth_getBalance");
}

#[test]
fn absent_for_present() {
    fact_liar(ActorTrick::AbsentForPresent, "eth_getBalance");
}

#[test]
fn shifted_log_index_is_computed_here() {
    let Some(recording) = recording(HEAD) else { return };
    let truths = truths(&recording);
    let mut network = HostileNetwork::regtest(vec![Actor::new(&recording, ActorTrick::ShiftedLogs)]);
    assert!(network.sync(LIMIT));
    for ((method, params), truth) in questions().iter().zip(&truths) {
        // The index an upstream states is not used, or the answer is refused: never a shifted one.
        let answer = network.call(method, params);
        assert!(answer.is_err() || answer.as_ref() == Ok(truth), "{method} {params}: {answer:?}");
    }
}

#[test]
fn wrong_receipts() {
    fact_liar(ActorTrick::WrongReceipts, "eth_getTransactionReceipt");
}

#[test]
fn omitted_logs() {
    fact_liar(ActorTrick::OmittedLogs, "eth_getLogs");
}

#[test]
fn withheld_receipts_and_swallowed_transactions() {
    fact_liar(
        ActorTrick::Withhold(&["eth_getTransactionReceipt", "rsk_getRawTransactionReceiptByHash"]),
        "eth_getTransactionReceipt",
    );
}

#[test]
fn transactions_said_to_be_elsewhere() {
    fact_liar(ActorTrick::WrongPlace, "eth_getTransactionByHash");
}

/// Where the only other upstream is silent, the question comes to an end.
#[test]
fn a_transaction_said_to_be_elsewhere_and_nobody_else_to_ask() {
    let Some(recording) = recording(HEAD) else { return };
    for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
        let actors =
            vec![Actor::new(&recording, ActorTrick::WrongPlace), Actor::new(&recording, ActorTrick::Honest)];
        let mut network = HostileNetwork::regtest(actors);
        assert!(network.sync(LIMIT));
        network.actors[1].trick = ActorTrick::Silent;
        let error = network.call(method, &json!([TRANSACTION])).unwrap_err();
        assert_eq!(error["code"], -32002, "{error}");
    }
}

#[test]
fn no_proofs_at_all_are_refused_in_words() {
    let Some(recording) = recording(HEAD) else { return };
    fact_liar(ActorTrick::NoProofs, "eth_getBalance");
    let mut network = HostileNetwork::regtest(vec![Actor::new(&recording, ActorTrick::NoProofs)]);
    assert!(network.sync(LIMIT));
    let error = network.call("eth_getBalance", &json!([COW, "0x7a"])).unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("eth_getProof: upstream error -32601"), "{error}");
}

/// One upstream's "there is none" is not enough while another has it.
#[test]
fn an_absence_needs_everybody() {
    let Some(recording) = recording(HEAD) else { return };
    let nothing = ActorTrick::Withhold(&[
        "eth_getTransactionReceipt",
        "eth_getTransactionByHash",
        "eth_getBlockByHash",
    ]);
    let mut network = HostileNetwork::regtest(vec![
        Actor::new(&recording, nothing),
        Actor::new(&recording, ActorTrick::Honest),
    ]);
    assert!(network.sync(LIMIT));
    let found = network.call("eth_getTransactionByHash", &json!([TRANSACTION])).unwrap();
    assert_eq!(found["hash"], TRANSACTION);
    let unknown = json!([format!("0x{}", "77".repeat(32))]);
    let before: Vec<usize> = network.actors.iter().map(|actor| actor.asked.len()).collect();
    network.call("eth_getTransactionByHash", &unknown).ok();
    for (actor, before) in network.actors.iter().zip(before) {
        assert!(actor.asked.len() > before, "both were asked");
    }
}

/// Neither "there is none" nor "it waits" of one upstream hides a mined transaction that another one shows. Where no
/// other upstream is, the answer says that no upstream proves it.
#[test]
fn a_word_of_one_upstream_hides_no_mined_transaction() {
    let Some(recording) = recording(HEAD) else { return };
    let null = ActorTrick::Withhold(&["eth_getTransactionReceipt", "eth_getTransactionByHash"]);
    for trick in [ActorTrick::SaysPending, null] {
        let actors = vec![Actor::new(&recording, trick.clone()), Actor::new(&recording, ActorTrick::Honest)];
        let mut network = HostileNetwork::regtest(actors);
        assert!(network.sync(LIMIT));
        for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
            let answer = network.send(method, &json!([TRANSACTION]));
            assert!(answer["result"]["blockHash"].is_string(), "{trick:?} {answer}");
            assert_eq!(answer.get("level"), None);
        }
        let mut alone = HostileNetwork::regtest(vec![Actor::new(&recording, trick.clone())]);
        assert!(alone.sync(LIMIT));
        for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
            let answer = alone.send(method, &json!([TRANSACTION]));
            assert!(answer["result"]["blockHash"].is_null(), "{trick:?} {answer}");
            assert_eq!(answer["level"], "unproven-absence", "{trick:?} {answer}");
        }
    }
}

/// "It is in block 1", which is too old to be proven, is one upstream's word too: others are asked, and it is not
/// remembered. Where no upstream shows the transaction, it is told; "there is none" of others does not prevail over it.
#[test]
fn a_place_too_old_to_be_proven_hides_no_transaction() {
    let Some(recording) = recording(HEAD) else { return };
    let null = ActorTrick::Withhold(&["eth_getTransactionReceipt", "eth_getTransactionByHash"]);
    let start = 5;
    for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
        let actors =
            vec![Actor::new(&recording, ActorTrick::OldPlace), Actor::new(&recording, ActorTrick::Honest)];
        let mut network = HostileNetwork::regtest_above(start, actors);
        assert!(network.sync(LIMIT));
        for _ in 0..2 {
            let answer = network.call(method, &json!([TRANSACTION])).unwrap();
            assert!(answer["blockHash"].is_string(), "{answer}");
        }
        let demerits = network.client.sync().upstreams().remove(0).record.demerits;
        assert_eq!(demerits, 0, "an honest upstream may say so");
        let others = [vec![], vec![Actor::new(&recording, null.clone())]];
        for others in others {
            let mut actors = vec![Actor::new(&recording, ActorTrick::OldPlace)];
            actors.extend(others);
            let mut network = HostileNetwork::regtest_above(start, actors);
            assert!(network.sync(LIMIT));
            let error = network.call(method, &json!([TRANSACTION])).unwrap_err();
            assert!(error["message"].as_str().unwrap().contains("was reported in block 1"), "{error}");
        }
    }
}

/// "There is none" is marked where no upstream can prove it, and not where the chain does.
#[test]
fn an_absence_that_nobody_proves_is_marked() {
    let Some(mut recording) = recording(HEAD) else { return };
    let unknown = json!([format!("0x{}", "77".repeat(32))]);
    for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash", "eth_getBlockByHash"] {
        recording.replace(method, &unknown, &Value::Null);
    }
    recording.replace("eth_getBlockByHash", &json!([unknown[0], true]), &Value::Null);
    let mut network = HostileNetwork::regtest(vec![Actor::new(&recording, ActorTrick::Honest)]);
    assert!(network.sync(LIMIT));
    for (method, params, level) in [
        ("eth_getTransactionReceipt", unknown.clone(), json!("unproven-absence")),
        ("eth_getTransactionByHash", unknown.clone(), json!("unproven-absence")),
        ("eth_getBlockByHash", json!([unknown[0], false]), json!("unproven-absence")),
        ("rootlight_verification", json!([unknown[0]]), json!("unproven-absence")),
        ("eth_getBlockByNumber", json!(["0xffff", false]), Value::Null),
    ] {
        let answer = network.send(method, &params);
        assert_eq!((&answer["result"], &answer["level"]), (&Value::Null, &level), "{method} {answer}");
    }
    // Where such an absence ends in an error, the error is marked.
    let missing = json!({ "blockHash": unknown[0] });
    for (method, params, level) in [
        ("eth_getUncleCountByBlockHash", unknown.clone(), json!("unproven-absence")),
        ("eth_getBalance", json!([COW, missing]), json!("unproven-absence")),
        ("eth_call", json!([{ "to": TOKEN }, missing]), json!("unproven-absence")),
        ("eth_getBalance", json!([COW, "0xffff"]), Value::Null),
    ] {
        let answer = network.send(method, &params);
        assert!(answer["error"]["code"].is_i64(), "{method} {answer}");
        assert_eq!(answer["level"], level, "{method} {answer}");
    }
    // Asking for what is not there, again and again, costs an honest upstream nothing.
    for _ in 0..60 {
        assert_eq!(network.call("eth_getTransactionReceipt", &unknown), Ok(Value::Null));
    }
    let record = network.client.sync().upstreams().remove(0).record;
    assert!(record.demerits == 0 && record.evidence.is_empty(), "{record:?}");
}

/// One upstream's statement that there is no such block counts for nothing while another has it.
#[test]
fn a_block_that_one_upstream_denies_comes_from_another() {
    let (Some(mut main), Some(mut other), Some(side)) = (recording(160), recording(160), side_block()) else {
        return;
    };
    main.replace("eth_getBlockByHash", &json!([side["hash"], true]), &Value::Null);
    let unknown = format!("0x{}", "77".repeat(32));
    for recording in [&mut main, &mut other] {
        recording.replace("eth_getBlockByHash", &json!([unknown, true]), &Value::Null);
    }
    other.replace("eth_getBlockByHash", &json!([side["hash"], true]), &side);
    for order in [[0, 1], [1, 0]] {
        let actors = order.map(|who| Actor::new(if who == 0 { &main } else { &other }, ActorTrick::Honest));
        let mut network = HostileNetwork::regtest(actors.into());
        assert!(network.sync(LIMIT));
        let answer = network.call("eth_getBlockByHash", &json!([side["hash"], false])).unwrap();
        assert_eq!((&answer["hash"], &answer["number"]), (&side["hash"], &side["number"]));
        assert_eq!(network.call("eth_getBlockByHash", &json!([unknown, false])), Ok(Value::Null));
    }
}

/// A resting upstream is asked for facts that no other can prove, and not for an absence.
#[test]
fn those_that_rest_are_asked_last() {
    let Some(mut recording) = recording(HEAD) else { return };
    let unknown = json!([format!("0x{}", "77".repeat(32))]);
    for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
        recording.replace(method, &unknown, &Value::Null);
    }
    let actors =
        vec![Actor::new(&recording, ActorTrick::NoProofs), Actor::new(&recording, ActorTrick::Honest)];
    let mut network = HostileNetwork::regtest(actors);
    assert!(network.sync(LIMIT));
    network.actors[1].trick = ActorTrick::Silent;
    network.run(20_000);
    assert!(network.is_resting(1) && !network.is_resting(0));
    network.actors[1].trick = ActorTrick::Honest;
    let asked = |network: &HostileNetwork<'_>| network.actors[1].asked.len();
    let before = asked(&network);
    assert_eq!(network.call("eth_getTransactionByHash", &unknown), Ok(Value::Null));
    assert_eq!(asked(&network), before, "it may not answer for long");
    assert!(network.call("eth_getBalance", &json!([COW, "0x7a"])).is_ok());
    assert!(asked(&network) > before);
}

/// Proofs that are wrong count against whoever gave them; it is not said of it that it proves no absence.
#[test]
fn wrong_proofs_are_written_down() {
    let Some(recording) = recording(HEAD) else { return };
    for trick in [ActorTrick::StaleRoots, ActorTrick::OtherKeys, ActorTrick::AbsentForPresent] {
        let mut network = HostileNetwork::regtest(vec![Actor::new(&recording, trick.clone())]);
        assert!(network.sync(LIMIT));
        network.call("eth_getBalance", &json!([COW, "0x7a"])).unwrap_err();
        let state = network.client.sync().upstreams().remove(0);
        assert!(state.record.demerits > 0 && state.can.absence.is_none(), "{trick:?} {state:?}");
        let is_about_branch = |rule: &str| rule.contains("about another branch");
        assert!(
            state.record.evidence.iter().any(|evidence| is_about_branch(&evidence.rule)),
            "{trick:?} {state:?}"
        );
        assert!(state.record.evidence.iter().all(|evidence| !evidence.lie), "it may be on another branch");
    }
}

/// An honest upstream whose branch has another block at a height proves the state of its own block where it is asked by
/// number. However often it does, it is not taken for a liar: it is still asked for what another one withholds.
#[test]
fn an_upstream_on_another_branch_is_not_taken_for_a_liar() {
    let (Some(main), Some(mut side)) = (recording(160), side_branch()) else { return };
    // For the state of its own block.
    let proof = |number: &str| UpstreamRequest::new("eth_getProof", json!([COW, [], number]).to_string());
    let own: Value = serde_json::from_str(&main.answer(&proof("0x7a")).unwrap()).unwrap();
    side.replace("eth_getProof", &json!([COW, [], "0x9b"]), &own);
    let withhold =
        ActorTrick::Withhold(&["eth_getProof", "eth_getTransactionReceipt", "eth_getTransactionByHash"]);
    let mut network =
        HostileNetwork::regtest(vec![Actor::new(&main, withhold), Actor::new(&side, ActorTrick::Honest)]);
    assert!(network.sync(LIMIT));
    network.run(10_000);
    for _ in 0..10 {
        network.call("eth_getBalance", &json!([COW, "0x9b"])).unwrap_err();
    }
    assert!(network.actors[1].asked.contains(&proof("0x9b")), "it was asked by number");
    assert!(network.lies(1).is_empty() && !network.is_resting(1), "{:?}", network.lies(1));
    let found = network.call("eth_getTransactionReceipt", &json!([TRANSACTION])).unwrap();
    assert!(found["blockHash"].is_string(), "{found}");
}

/// Facts about a block off the chain are requested by the block's hash first.
#[test]
fn blocks_off_the_chain_are_asked_for_by_their_hashes() {
    let (Some(main), Some(side)) = (recording(160), side_block()) else { return };
    let hash = side["hash"].as_str().unwrap();
    let mut network = HostileNetwork::regtest(vec![Actor::new(&main, ActorTrick::Honest)]);
    assert!(network.sync(LIMIT));
    network.run(10_000);
    let block = network.call("eth_getBlockByHash", &json!([hash, true])).unwrap();
    assert_eq!(block["transactions"], side["transactions"]);
    assert_eq!(network.client.sync().upstreams().remove(0).record.demerits, 0);
    network.call("eth_getBalance", &json!([COW, { "blockHash": hash }])).ok();
    let proofs = network.actors[0].asked.iter().filter(|call| call.method == "eth_getProof");
    let params: Vec<&str> = proofs.map(|call| call.params.as_str()).collect();
    assert!(params.first().is_some_and(|first| first.contains(hash)), "{params:?}");
}
