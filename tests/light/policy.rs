//! How a light client handles data without a proof: unproven answers, and transactions to forward.

use crate::support;

use std::sync::{Arc, Mutex};

use rootlight::consensus::Network;
use rootlight::light::{RequestFailure, UnprovenPolicy, UpstreamRequest, UpstreamResponse};
use serde_json::{Value, json, value::RawValue};
use support::{
    dev::DevClient,
    errors::is_documented,
    light::{ExecutedUpstream, Light},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// Methods that a reference node does not have.
const PROOFS: [&str; 4] =
    ["eth_getProof", "rsk_getProof", "rootlight_getWitness", "rootlight_getBlockWitness"];

fn dev() -> DevClient {
    let mut dev = DevClient::instant();
    for value in 1..=15 {
        dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": BOB, "value": value}]));
    }
    dev
}

fn raw(text: &str) -> UpstreamResponse {
    Ok(RawValue::from_string(text.into()).unwrap())
}

/// An upstream without proofs, which may report another balance.
fn without_proofs(dev: &DevClient, balance: Option<&'static str>) -> ExecutedUpstream {
    let mut upstream = ExecutedUpstream::new(dev.client.snapshot());
    upstream.without = PROOFS.to_vec();
    upstream.change = Some(Box::new(move |call: &UpstreamRequest, answer| match (call.method, balance) {
        ("eth_getBalance", Some(balance)) => raw(balance),
        _ => answer,
    }));
    upstream
}

/// A wrong balance.
const LIE: Option<&str> = Some("\"0x1\"");

/// Upstreams by their addresses, each with the false balance that it reports, if it lies.
type NamedUpstreams = &'static [(&'static str, Option<&'static str>)];

fn among(dev: &DevClient, unproven: UnprovenPolicy, named: NamedUpstreams) -> Light {
    let upstreams = named.iter().map(|(name, balance)| (*name, without_proofs(dev, *balance))).collect();
    Light::among(Network::regtest(), upstreams, unproven)
}

const ONE: &str = "https://rpc.one.example/key";
const ONE_AGAIN: &str = "https://archive.one.example";
const TWO: &str = "https://two.example";
const THREE: &str = "https://three.example";

#[test]
fn an_unproven_answer_is_refused_with_advice() {
    let dev = dev();
    let mut light = among(&dev, UnprovenPolicy::Refuse, &[(ONE, None), (TWO, None)]);
    let params = json!([BOB, "latest"]);
    let error = light.call("eth_getBalance", &params).unwrap_err();
    let text = error["message"].as_str().unwrap();
    assert!(
        text.contains("no proof of account") && text.contains("add an upstream that gives proofs"),
        "{text}"
    );
    for name in [ONE, TWO] {
        assert!(is_documented("no proofs", name, text), "{text}");
    }
    assert!(!text.contains("rootlight follow"), "{text}");
    assert_eq!(error["code"], -32002);
    assert!(!light.asked().contains(&"eth_getBalance"), "no upstream is asked for an unproven answer");
}

#[test]
fn a_quorum_counts_domains_and_marks_the_answer() {
    let dev = dev();
    let truth = without_proofs(&dev, None).call("eth_getBalance", &json!([BOB, "latest"])).unwrap();
    let params = json!([BOB, "latest"]);
    let cases: [(UnprovenPolicy, NamedUpstreams, Option<&Value>); 9] = [
        (UnprovenPolicy::Quorum(2), &[(ONE, None), (TWO, None)], Some(&truth)),
        (UnprovenPolicy::Quorum(2), &[(ONE, None), (ONE_AGAIN, None)], None),
        (UnprovenPolicy::Quorum(2), &[(ONE, None), (TWO, LIE)], None),
        (UnprovenPolicy::Quorum(2), &[(ONE, None), (TWO, LIE), (THREE, None)], Some(&truth)),
        (
            UnprovenPolicy::Quorum(2),
            &[(ONE, LIE), (ONE_AGAIN, LIE), (TWO, None), (THREE, None)],
            Some(&truth),
        ),
        (UnprovenPolicy::Quorum(3), &[(ONE, None), (TWO, None)], None),
        (UnprovenPolicy::Trust, &[(ONE, None)], Some(&truth)),
        (UnprovenPolicy::Trust, &[(ONE, None), (TWO, LIE)], Some(&truth)),
        (UnprovenPolicy::Quorum(0), &[(ONE, None), (TWO, LIE)], Some(&truth)),
    ];
    for (policy, named, expected) in cases {
        let mut light = among(&dev, policy, named);
        let answer = light.send("eth_getBalance", &params);
        match expected {
            Some(expected) => {
                assert_eq!(&answer["result"], expected, "{policy:?} {named:?} {answer}");
                assert_eq!(answer["level"], "unproven", "{answer}");
            }
            None => assert_eq!(answer["error"]["code"], -32002, "{policy:?} {named:?} {answer}"),
        }
        // A proven answer needs no quorum and no mark.
        let block = light.send("eth_getBlockByNumber", &json!(["0x5", true]));
        assert!(block["result"].is_object() && block.get("level").is_none(), "{block}");
        // All upstreams are asked about the same block, although their heads and branches may differ.
        let asked = light.upstream.asked.iter().find(|call| call.method == "eth_getBalance");
        let head = light.client.sync().chain().unwrap().head().hash().to_string();
        assert!(asked.is_none_or(|call| call.params.contains(&head)), "{asked:?}");
    }
}

/// A request that goes to several upstreams names its block so that all of them understand the same one.
#[test]
fn a_poll_names_the_pinned_block() {
    let mut dev = dev();
    // A contract whose constructor emits a log, in block 16.
    dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": "0x60006000a0", "gas": "0x30d40"}]));
    let mut light = among(&dev, UnprovenPolicy::Trust, &[(ONE, None)]);
    light.upstream.without.extend(["eth_getTransactionReceipt", "rsk_getRawTransactionReceiptByHash"]);
    let chain = light.client.sync().chain().unwrap().clone();
    let hash = |number: u64| json!(chain.view().by_number(number).unwrap().hash());
    let (fourth, fifth, head) = (hash(4), hash(5), hash(16));
    let by_hash = |hash: &Value| json!({ "blockHash": hash, "requireCanonical": "true" });
    let call = json!({ "to": BOB, "data": "0x" });
    let cases = [
        ("eth_getBalance", json!([BOB, "latest"]), json!([BOB, by_hash(&head)])),
        ("eth_getBalance", json!([BOB, "0x5"]), json!([BOB, by_hash(&fifth)])),
        ("eth_getBalance", json!([BOB, fifth]), json!([BOB, by_hash(&fifth)])),
        ("eth_getTransactionCount", json!([BOB]), json!([BOB, by_hash(&head)])),
        ("eth_getStorageAt", json!([BOB, "0x0", "safe"]), json!([BOB, "0x0", by_hash(&fourth)])),
        ("eth_call", json!([call, "5"]), json!([call, by_hash(&fifth)])),
        ("eth_getBlockReceipts", json!(["latest"]), json!(["0x10"])),
        ("eth_getLogs", json!([{}]), json!([{ "fromBlock": "0x10", "toBlock": "0x10" }])),
        (
            "eth_getLogs",
            json!([{ "toBlock": "0x11", "topics": [] }]),
            json!([{ "fromBlock": "0x10", "toBlock": "0x11", "topics": [] }]),
        ),
        (
            "eth_getLogs",
            json!([{ "fromBlock": "SAFE", "toBlock": "latest" }]),
            json!([{ "fromBlock": "0x4", "toBlock": "0x10" }]),
        ),
        ("eth_getLogs", json!([{ "blockHash": head }]), json!([{ "blockHash": head }])),
    ];
    for (method, params, expected) in cases {
        light.upstream.asked.clear();
        let answer = light.send(method, &params);
        let asked = light.upstream.asked.iter().find(|call| call.method == method);
        let asked = asked.map(|call| serde_json::from_str::<Value>(&call.params).unwrap());
        assert_eq!(asked, Some(expected), "{method} {params} {answer}");
        // An upstream without receipts has no logs either.
        let answered = answer["level"] == "unproven" || method == "eth_getLogs";
        assert!(answered, "{method} {params} {answer}");
    }
}

/// Two groups with different answers that are both large enough are no agreement.
#[test]
fn two_quorums_with_different_answers_are_no_agreement() {
    let dev = dev();
    let named: NamedUpstreams = &[(ONE, None), (TWO, None), (THREE, LIE), ("https://four.example", LIE)];
    let mut light = among(&dev, UnprovenPolicy::Quorum(2), named);
    assert_eq!(light.send("eth_getBalance", &json!([BOB, "latest"]))["error"]["code"], -32002);
}

/// A node that is down has not shown that it lacks a proof.
#[test]
fn upstreams_that_are_down_are_told_from_upstreams_without_proofs() {
    let dev = dev();
    let mut light = among(&dev, UnprovenPolicy::Refuse, &[(ONE, None), (TWO, None)]);
    for upstream in std::iter::once(&mut light.upstream).chain(&mut light.others) {
        upstream.change = Some(Box::new(|_, _| Err(RequestFailure::Transport("connection refused".into()))));
    }
    let error = light.call("eth_getBalance", &json!([BOB, "latest"])).unwrap_err();
    let text = error["message"].as_str().unwrap();
    assert!(text.contains("no response about") && text.contains("connection refused"), "{text}");
    assert!(text.contains("check that the upstreams can be reached") && !text.contains("proof"), "{text}");
    for name in [ONE, TWO] {
        assert!(text.contains(&format!("{name}: eth_getProof: no response")), "{text}");
    }
}

/// An upstream that records the transactions it gets and answers with `answer`.
fn sink(
    dev: &DevClient,
    answer: fn(&str) -> UpstreamResponse,
) -> (ExecutedUpstream, Arc<Mutex<Vec<String>>>) {
    let mut upstream = ExecutedUpstream::new(dev.client.snapshot());
    let got = Arc::new(Mutex::new(Vec::new()));
    let noted = got.clone();
    upstream.change = Some(Box::new(move |call: &UpstreamRequest, honest| {
        if call.method != "eth_sendRawTransaction" {
            return honest;
        }
        noted.lock().unwrap().push(call.params.clone());
        answer(&call.params)
    }));
    (upstream, got)
}

fn error(message: &str) -> UpstreamResponse {
    Err(RequestFailure::Rpc { code: -32010, message: message.into() })
}

fn hash_of(params: &str) -> UpstreamResponse {
    let raw_bytes = support::bytes(serde_json::from_str::<Vec<String>>(params).unwrap()[0].as_str());
    raw(&format!("\"{}\"", alloy_primitives::keccak256(raw_bytes)))
}

/// A transaction is checked before it is forwarded to several upstreams, and the answer is the hash that was computed
/// here.
#[test]
fn transactions_are_checked_forwarded_and_hashed_here() {
    let mut dev = dev();
    let fields = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3b9aca00",
        "nonce": "0xf"}]);
    let signed = dev.get("eth_signTransaction", fields);
    let signed = signed.get("raw").cloned().unwrap_or(signed);
    let hash = format!("{}", alloy_primitives::keccak256(support::bytes(signed.as_str().unwrap())));
    let send = |answers: [fn(&str) -> UpstreamResponse; 2], dev: &DevClient, transaction: &Value| {
        let (a, got_a) = sink(dev, answers[0]);
        let (b, got_b) = sink(dev, answers[1]);
        let mut light = Light::among(Network::regtest(), vec![(ONE, a), (TWO, b)], UnprovenPolicy::Refuse);
        let before = light.rounds;
        let answer = light.call("eth_sendRawTransaction", &json!([transaction]));
        let counts = (got_a.lock().unwrap().len(), got_b.lock().unwrap().len());
        (answer, counts, light.rounds - before, light)
    };
    let (answer, counts, rounds, mut light) = send([hash_of, hash_of], &dev, &signed);
    assert_eq!((answer, counts, rounds), (Ok(json!(hash)), (1, 1), 1));
    // Upstreams do not show the transaction yet. It is pending here, and the next one gets the next nonce.
    let waiting = light.call("eth_getTransactionByHash", &json!([hash])).unwrap();
    assert_eq!((&waiting["hash"], &waiting["blockHash"]), (&json!(hash), &Value::Null));
    for (tag, nonce) in [("latest", "0xf"), ("pending", "0x10")] {
        assert_eq!(light.call("eth_getTransactionCount", &json!([ALICE, tag])), Ok(json!(nonce)), "{tag}");
    }
    assert_eq!(light.call("eth_getTransactionCount", &json!([BOB, "pending"])), Ok(json!("0x0")));
    // Once it is mined, it is proven like any other.
    assert_eq!(dev.get("eth_sendRawTransaction", json!([signed])), json!(hash));
    for upstream in std::iter::once(&mut light.upstream).chain(&mut light.others) {
        upstream.chain = dev.client.snapshot();
    }
    light.sync();
    assert_eq!(light.call("eth_getTransactionReceipt", &json!([hash])).unwrap()["status"], "0x1");
    assert_eq!(light.call("eth_getTransactionCount", &json!([ALICE, "pending"])), Ok(json!("0x10")));
    let (answer, ..) = send([hash_of, |_| error("already known")], &dev, &signed);
    assert_eq!(answer, Ok(json!(hash)));
    let (answer, ..) = send([|_| error("no"), hash_of], &dev, &signed);
    assert_eq!(answer, Ok(json!(hash)), "one upstream that accepts it is enough");
    // The error of the best upstream is the answer, and the transaction does not count as sent.
    let silent: fn(&str) -> UpstreamResponse = |_| Err(RequestFailure::Transport("gone".into()));
    let low: fn(&str) -> UpstreamResponse = |_| error("nonce too low");
    let no: fn(&str) -> UpstreamResponse = |_| error("no");
    let answered = [[low, no], [silent, low], [low, silent]];
    let unsent = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0x10"}]);
    let unsent = dev.get("eth_signTransaction", unsent);
    for answers in answered {
        let (answer, _, _, mut light) = send(answers, &dev, &unsent);
        assert_eq!(answer, Err(json!({"code": -32010, "message": "nonce too low"})));
        assert_eq!(light.call("eth_getTransactionCount", &json!([ALICE, "pending"])), Ok(json!("0x10")));
    }
    let (answer, ..) = send([silent, silent], &dev, &signed);
    assert_eq!(answer.unwrap_err()["code"], -32002);
    // A response with another hash does not confirm the transaction.
    let other: fn(&str) -> UpstreamResponse =
        |_| raw("\"0x1111111111111111111111111111111111111111111111111111111111111111\"");
    let (answer, _, _, mut light) = send([other, other], &dev, &signed);
    assert_eq!(answer.unwrap_err()["code"], -32002);
    let answered = light.call("rootlight_upstreams", &json!([])).unwrap();
    assert!(answered[0]["misbehaviour"][0]["rule"].as_str().unwrap().contains("another hash"), "{answered}");

    // A transaction for another chain, or bytes that are not a transaction, are sent to no upstream.
    let mut garbled = signed.as_str().unwrap().to_owned();
    garbled.truncate(garbled.len() - 2);
    for bad in [json!(garbled), json!("0x02f800"), json!("0x")] {
        let (answer, counts, ..) = send([hash_of, hash_of], &dev, &bad);
        assert_eq!(counts, (0, 0), "{answer:?}");
        assert_eq!(answer.unwrap_err()["code"], -32602);
    }
}

/// A transaction that was sent from here. While the sender's proven nonce is not above the transaction's, it is not
/// mined, and no upstream is asked for its location. Once the nonce is used, it is mined or replaced: an upstream
/// that shows it proves it, and its absence is marked as unproven.
#[test]
fn the_proven_nonce_tells_whether_a_transaction_is_mined() {
    let mut dev = dev();
    let sign = |dev: &mut DevClient, value: &str| {
        let fields = json!([{"from": ALICE, "to": BOB, "value": value, "gas": "0x5208", "gasPrice": "0x3b9aca00",
            "nonce": "0xf"}]);
        let signed = dev.get("eth_signTransaction", fields);
        let signed = signed.get("raw").cloned().unwrap_or(signed);
        let hash = format!("{}", alloy_primitives::keccak256(support::bytes(signed.as_str().unwrap())));
        (signed, hash)
    };
    let ((first, mined), (second, replaced)) = (sign(&mut dev, "0x1"), sign(&mut dev, "0x2"));
    let mut light = many(&dev, 2, |dev| sink(dev, hash_of).0, UnprovenPolicy::Refuse);
    for signed in [&first, &second] {
        assert!(light.call("eth_sendRawTransaction", &json!([signed])).is_ok());
    }
    for hash in [&mined, &replaced] {
        let receipt = light.send("eth_getTransactionReceipt", &json!([hash]));
        assert_eq!((&receipt["result"], receipt.get("level")), (&Value::Null, None));
        let waiting = light.send("eth_getTransactionByHash", &json!([hash]));
        assert_eq!((&waiting["result"]["hash"], waiting.get("level")), (&json!(hash), None));
    }
    // The same if the caller gives the signed transaction and it was not sent from here.
    let mut other = many(&dev, 2, |dev| sink(dev, hash_of).0, UnprovenPolicy::Refuse);
    let receipt = other.send("eth_getTransactionReceipt", &json!([mined, first]));
    assert_eq!((&receipt["result"], receipt.get("level")), (&Value::Null, None), "{receipt}");
    let error = other.call("eth_getTransactionReceipt", &json!([mined, second])).unwrap_err();
    assert_eq!(error["code"], -32602, "{error}");
    for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
        assert_eq!(asked(&mut light, method) + asked(&mut other, method), 0, "{method}");
    }
    assert_eq!(dev.get("eth_sendRawTransaction", json!([first])), json!(mined));
    for upstream in std::iter::once(&mut light.upstream).chain(&mut light.others) {
        upstream.chain = dev.client.snapshot();
    }
    light.sync();
    let receipt = light.send("eth_getTransactionReceipt", &json!([mined]));
    assert_eq!((&receipt["result"]["status"], receipt.get("level")), (&json!("0x1"), None));
    for method in ["eth_getTransactionReceipt", "eth_getTransactionByHash"] {
        let answer = light.send(method, &json!([replaced]));
        assert_eq!(
            (&answer["result"], &answer["level"]),
            (&Value::Null, &json!("unproven-absence")),
            "{method}"
        );
    }
}

/// The transaction is signed for chain 30; this is chain 33.
#[test]
fn a_transaction_for_another_chain_is_not_forwarded() {
    let dev = dev();
    let (upstream, got) = sink(&dev, hash_of);
    let mut light = Light::among(Network::regtest(), vec![(ONE, upstream)], UnprovenPolicy::Refuse);
    let foreign = "0xf8630184039387008252089470997970c51812dc3a010c7d01b50e0d17dc79c801805fa00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20a00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20";
    let error = light.call("eth_sendRawTransaction", &json!([foreign])).unwrap_err();
    assert_eq!((error["code"].as_i64(), got.lock().unwrap().len()), (Some(-32602), 0), "{error}");
    assert!(error["message"].as_str().unwrap().contains("30"), "the error names the other chain: {error}");
}

/// A client with `count` upstreams of different domains.
fn many(
    dev: &DevClient,
    count: usize,
    upstream: impl Fn(&DevClient) -> ExecutedUpstream,
    policy: UnprovenPolicy,
) -> Light {
    let names: Vec<String> = (0..count).map(|index| format!("https://node{index}.example")).collect();
    let named = names.iter().map(|name| (name.as_str(), upstream(dev))).collect();
    Light::among(Network::regtest(), named, policy)
}

/// How many upstreams got a request with this method.
fn asked(light: &mut Light, method: &str) -> usize {
    let all = std::iter::once(&light.upstream).chain(&light.others);
    all.filter(|upstream| upstream.asked.iter().any(|call| call.method == method)).count()
}

/// At most four upstreams get a transaction, and at most sixteen are asked for an unproven answer.
#[test]
fn the_number_of_upstreams_asked_at_once_is_limited() {
    let mut dev = dev();
    let unsigned = json!([{"from": ALICE, "to": BOB, "value": "0x1", "gas": "0x5208", "gasPrice": "0x3938700", "nonce": "0xf"}]);
    let signed = dev.get("eth_signTransaction", unsigned);
    let mut light = many(&dev, 6, |dev| sink(dev, hash_of).0, UnprovenPolicy::Refuse);
    assert!(light.call("eth_sendRawTransaction", &json!([signed])).is_ok());
    assert_eq!(asked(&mut light, "eth_sendRawTransaction"), 4);
    let mut light = many(&dev, 18, |dev| without_proofs(dev, None), UnprovenPolicy::Quorum(16));
    assert_eq!(light.send("eth_getBalance", &json!([BOB, "latest"]))["level"], "unproven");
    assert_eq!(asked(&mut light, "eth_getBalance"), 16);
    let mut light = many(&dev, 18, |dev| without_proofs(dev, None), UnprovenPolicy::Quorum(17));
    assert_eq!(light.send("eth_getBalance", &json!([BOB, "latest"]))["error"]["code"], -32002);
}

/// Tags and numbers of blocks are replaced by the hash of the pinned chain's block before upstreams are asked.
#[test]
fn requests_for_unproven_answers_name_the_pinned_block() {
    let dev = dev();
    for (params, number) in [
        (json!([BOB]), "0xf"),
        (json!([BOB, null]), "0xf"),
        (json!([BOB, "latest"]), "0xf"),
        (json!([BOB, "pending"]), "0xf"),
        (json!([BOB, "safe"]), "0x3"),
        (json!([BOB, "finalized"]), "0x0"),
        (json!([BOB, "0x7"]), "0x7"),
    ] {
        let mut light = among(&dev, UnprovenPolicy::Trust, &[(ONE, None)]);
        let theirs = light.upstream.call("eth_getBalance", &json!([BOB, number])).unwrap();
        let answer = light.send("eth_getBalance", &params);
        assert_eq!((&answer["result"], &answer["level"]), (&theirs, &json!("unproven")), "{params}");
        let asked = light.upstream.asked.iter().find(|call| call.method == "eth_getBalance").unwrap();
        let asked: Value = serde_json::from_str(&asked.params).unwrap();
        let block = by_hash(&mut light.upstream, number);
        assert_eq!(asked, json!([BOB, block]), "{params}");
    }
    let mut light = among(&dev, UnprovenPolicy::Trust, &[(ONE, None)]);
    assert_eq!(light.send("eth_call", &json!([{"to": BOB}, "latest", null]))["level"], "unproven");
    let asked = light.upstream.asked.iter().find(|call| call.method == "eth_call").unwrap();
    let (asked, block) = (asked.params.clone(), by_hash(&mut light.upstream, "0xf"));
    let asked: Value = serde_json::from_str(&asked).unwrap();
    assert_eq!(asked, json!([{ "to": BOB }, block, null]), "nothing else is replaced");
}

/// A block number as a block selector by hash.
fn by_hash(upstream: &mut ExecutedUpstream, number: &str) -> Value {
    let block = upstream.call("eth_getBlockByNumber", &json!([number, false])).unwrap();
    json!({ "blockHash": block["hash"], "requireCanonical": "true" })
}

/// Filters are kept by this client, and only it knows its own state: upstreams are asked about neither.
#[test]
fn only_methods_that_nodes_answer_are_asked_unproven() {
    let dev = dev();
    let mut light = among(&dev, UnprovenPolicy::Trust, &[(ONE, None)]);
    light.upstream.without.clear();
    light.upstream.change = Some(Box::new(|call, honest| match call.method {
        "eth_getTransactionReceipt" | "rsk_getRawTransactionReceiptByHash" => raw("null"),
        "eth_getProof" | "rsk_getProof" => raw("null"),
        _ => honest,
    }));
    let filter = light.call("eth_newFilter", &json!([{"fromBlock": "0x1"}])).unwrap();
    for (method, params) in
        [("eth_getFilterChanges", json!([filter])), ("rootlight_getWitness", json!([{"to": BOB}, "latest"]))]
    {
        light.asked();
        let answer = light.send(method, &params);
        assert_eq!(answer["error"]["code"], -32002, "{method}: {answer}");
        assert!(!light.asked().contains(&method), "{method}");
    }
}

#[test]
fn policies_for_unproven_answers_are_parsed() {
    for (text, policy) in [
        ("refuse", UnprovenPolicy::Refuse),
        ("trust", UnprovenPolicy::Trust),
        ("quorum:1", UnprovenPolicy::Quorum(1)),
        ("quorum:3", UnprovenPolicy::Quorum(3)),
    ] {
        assert_eq!(text.parse(), Ok(policy));
    }
    for text in ["", "quorum", "quorum:", "quorum:0", "quorum:-1", "quorum:two", "Trust", "refuse "] {
        assert!(text.parse::<UnprovenPolicy>().is_err(), "{text}");
    }
}
