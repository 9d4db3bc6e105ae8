//! Transaction locations that upstreams report, and how a light client handles false ones.

use crate::support;

use rootlight::consensus::Network;
use rootlight::light::{UnprovenPolicy, UpstreamRequest, UpstreamResponse};
use serde_json::{Value, json, value::RawValue};
use support::{
    dev::DevClient,
    light::{ExecutedUpstream, Light},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Both methods that find a transaction by its hash.
const METHODS: [&str; 2] = ["eth_getTransactionByHash", "eth_getTransactionReceipt"];

/// A chain with one transaction in each block, and the hashes of these transactions.
fn dev() -> (DevClient, Vec<Value>) {
    let mut dev = DevClient::instant();
    let send = |value| dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": value}]));
    let hashes = (1..=15).map(send).collect();
    (dev, hashes)
}

/// A block that is reported as the location of all transactions, by number and hash.
type ReportedBlock = (u64, Value);

/// An upstream that reports all transactions in one block.
fn liar(dev: &DevClient, (number, hash): ReportedBlock) -> ExecutedUpstream {
    let mut upstream = ExecutedUpstream::new(dev.client.snapshot());
    upstream.change = Some(Box::new(move |call: &UpstreamRequest, honest| -> UpstreamResponse {
        if call.method != "eth_getTransactionReceipt" {
            return honest;
        }
        let mut receipt: Value = serde_json::from_str(honest.as_ref().map_or("{}", |raw| raw.get())).unwrap();
        (receipt["blockNumber"], receipt["blockHash"]) = (json!(format!("{number:#x}")), hash.clone());
        receipt["transactionIndex"] = json!("0x0");
        Ok(RawValue::from_string(receipt.to_string()).unwrap())
    }));
    upstream
}

/// The locations that the liar reports: a canonical block without the transaction, a block that is not on the chain,
/// and one above the head.
fn places(dev: &mut DevClient) -> [ReportedBlock; 3] {
    let held = dev.get("eth_getBlockByNumber", json!(["0x2", false]))["hash"].clone();
    let unknown = json!(format!("0x{}", "77".repeat(32)));
    [(2, held), (9, unknown.clone()), (1_000, unknown)]
}

fn batch(calls: &[(&str, &Value)]) -> Value {
    let member = |(id, (method, hash)): (usize, &(&str, &Value))| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": [hash] });
    calls.iter().enumerate().map(member).collect()
}

/// All calls of a message about one transaction wait for the upstreams that were not asked yet, whichever call finds
/// out first that the reported location is false.
#[test]
fn a_false_location_fails_no_call_of_a_batch() {
    let (mut dev, hashes) = dev();
    for place in places(&mut dev) {
        let honest = ExecutedUpstream::new(dev.client.snapshot());
        let upstreams = vec![("liar", liar(&dev, place.clone())), ("honest", honest)];
        let mut light = Light::among(Network::regtest(), upstreams, UnprovenPolicy::Refuse);
        let calls = [(METHODS[0], &hashes[6]), (METHODS[1], &hashes[6]), (METHODS[0], &hashes[6])];
        let answers = light.message(&batch(&calls));
        for answer in answers.as_array().unwrap() {
            assert_eq!(answer["result"]["blockNumber"], "0x7", "{place:?} {answer}");
            assert_eq!(answer.get("level"), None);
        }
    }
}

/// Several transactions may be reported in one block; each is searched on its own.
#[test]
fn several_transactions_reported_in_one_block_are_each_found() {
    let (mut dev, hashes) = dev();
    for place in places(&mut dev) {
        let honest = ExecutedUpstream::new(dev.client.snapshot());
        let upstreams = vec![("liar", liar(&dev, place.clone())), ("honest", honest)];
        let mut light = Light::among(Network::regtest(), upstreams, UnprovenPolicy::Refuse);
        let calls: Vec<(&str, &Value)> =
            METHODS.iter().flat_map(|method| hashes[4..8].iter().map(|hash| (*method, hash))).collect();
        let answers = light.message(&batch(&calls));
        for (answer, (_, hash)) in answers.as_array().unwrap().iter().zip(&calls) {
            let number = 1 + hashes.iter().position(|one| one == *hash).unwrap();
            assert_eq!(answer["result"]["blockNumber"], format!("{number:#x}"), "{place:?} {answer}");
        }
    }
}

/// An upstream that is one block ahead reports a block that this client has not seen. Up to the client's own head,
/// the transaction is not mined.
#[test]
fn a_transaction_above_the_head_is_pending() {
    let (mut dev, _) = dev();
    let mut light = Light::new(Network::regtest(), ExecutedUpstream::new(dev.client.snapshot()));
    let hash = dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": 99}]));
    light.upstream.chain = dev.client.snapshot();
    // The sender's nonce at the head proves that it is not mined up to there, so that the answer is not marked as
    // unproven.
    let waiting = light.send("eth_getTransactionByHash", &json!([hash]));
    assert_eq!((&waiting["result"]["hash"], &waiting["result"]["blockHash"]), (&hash, &Value::Null));
    let receipt = light.message(&batch(&[(METHODS[1], &hash)]))[0].clone();
    assert_eq!(receipt["result"], Value::Null, "{receipt}");
    assert!(receipt.get("error").is_none() && receipt.get("level").is_none(), "{receipt}");
    // The REMASC transaction of a block is never pending.
    let block = dev.get("eth_getBlockByNumber", json!(["latest", false]));
    let remasc = block["transactions"].as_array().unwrap().last().unwrap().clone();
    let absent = light.send("eth_getTransactionByHash", &json!([remasc]));
    assert_eq!((&absent["result"], &absent["level"]), (&Value::Null, &json!("unproven-absence")), "{absent}");
    let record = light.client.sync().upstreams().remove(0).record;
    assert!(record.evidence.is_empty() && record.demerits == 0, "{record:?}");
    light.sync();
    for method in METHODS {
        let answer = light.send(method, &json!([hash]));
        assert_eq!(
            (&answer["result"]["blockNumber"], answer.get("level")),
            (&json!("0x10"), None),
            "{answer}"
        );
    }
}
