//! How many round trips calls on proven state take, and which data of the responses they accept.

use crate::support;

use alloy_primitives::{Address, B256, U256, hex, keccak256};
use rootlight::consensus::Network;
use rootlight::light::{Now, RequestFailure, UpstreamRequest, UpstreamResponse};
use rootlight::rpc::SessionStep;
use serde_json::{Value, json, value::RawValue};
use support::{
    dev::DevClient,
    light::{ExecutedUpstream, Light},
};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";

/// `balanceOf` for any selector: the word at keccak256(argument . 0). Padded beyond 32 bytes, so that the state holds
/// the code by its hash.
const TOKEN: &str = "60043560005260006020526040600020546000526020 6000f3 00000000000000000000000000000000";
/// Forwards every call to the contract in slot 0.
const PROXY: &str =
    "366000600037 6000 6000 36 6000 600054 5a f4 50 3d 6000 6000 3e 3d 6000 f3 0000000000000000";
/// Returns the hash of the block in its argument.
const HASHES: &str = "600035 40 600052 6020 6000 f3";
/// Reads as many slots as its argument says.
const READER: &str = "6000 5b 80 54 50 6001 01 80 600035 11 6002 57 600052 6020 6000 f3";
/// Follows a chain of slots from slot 0 to its end, a zero.
const CHAIN: &str = "6000 5b 54 80 6002 57 00";

/// Initialisation code that stores words and returns a program.
fn creation(program: &str, words: &[(U256, U256)]) -> String {
    let program = hex::decode(program.replace(' ', "")).unwrap();
    let mut code = Vec::new();
    for (slot, word) in words {
        code.push(0x7f);
        code.extend(word.to_be_bytes::<32>());
        code.push(0x7f);
        code.extend(slot.to_be_bytes::<32>());
        code.push(0x55);
    }
    let (length, offset) = (program.len() as u8, (code.len() + 14) as u16);
    code.extend([0x60, length, 0x61, (offset >> 8) as u8, offset as u8, 0x60, 0, 0x39]);
    code.extend([0x60, length, 0x60, 0, 0xf3, 0x00]);
    code.extend(program);
    hex::encode_prefixed(code)
}

fn balance_slot(owner: &str) -> U256 {
    let owner: Address = owner.parse().unwrap();
    keccak256([owner.into_word().0, B256::ZERO.0].concat()).into()
}

pub(crate) fn balance_of(owner: &str) -> String {
    format!("0x70a08231000000000000000000000000{}", &owner[2..])
}

/// A chain with a token, a proxy of it and a contract that reads block hashes.
pub(crate) struct TokenFixture {
    pub(crate) dev: DevClient,
    token: String,
    pub(crate) proxy: String,
    pub(crate) hashes: String,
    reader: String,
}

impl TokenFixture {
    pub(crate) fn new() -> Self {
        let mut dev = DevClient::instant();
        let mut deploy = |code: String| -> String {
            let sent =
                dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": code, "gas": "0x1e8480"}]));
            let receipt = dev.get("eth_getTransactionReceipt", json!([sent]));
            assert_eq!(receipt["status"], "0x1", "{receipt}");
            receipt["contractAddress"].as_str().unwrap().to_owned()
        };
        let balances = [(balance_slot(ALICE), U256::from(1_000)), (balance_slot(BOB), U256::from(7))];
        let token = deploy(creation(TOKEN, &balances));
        let address: Address = token.parse().unwrap();
        let implementation = [(U256::ZERO, U256::from_be_bytes(address.into_word().0))];
        let proxy = deploy(creation(PROXY, &[implementation.as_slice(), &balances].concat()));
        let hashes = deploy(creation(HASHES, &[]));
        let reader = deploy(creation(READER, &[]));
        Self { dev, token, proxy, hashes, reader }
    }

    /// A light client of an upstream without these methods.
    pub(crate) fn light(&self, without: &[&'static str]) -> Light {
        let mut upstream = ExecutedUpstream::new(self.dev.client.snapshot());
        upstream.without = without.to_vec();
        let mut light = Light::new(Network::regtest(), upstream);
        light.asked();
        light
    }

    /// Sets the first slots of a contract directly.
    fn fill(&mut self, contract: &Value, slots: u64, value: impl Fn(u64) -> u64) {
        for number in 0..slots {
            let value = format!("{:#066x}", U256::from(value(number)));
            self.dev.get("anvil_setStorageAt", json!([contract, format!("{number:#x}"), value]));
        }
        self.dev.get("evm_mine", json!([]));
    }

    /// Mines a block and lets the client synchronize.
    pub(crate) fn mine(&mut self, light: &mut Light) {
        self.dev.get("evm_mine", json!([]));
        light.upstream.chain = self.dev.client.snapshot();
        light.sync();
        light.asked();
    }
}

fn word(number: u64) -> Value {
    format!("{:#066x}", U256::from(number)).into()
}

const WITNESS: &str = "rootlight_getWitness";
/// Methods that an upstream with plain proofs does not have.
const PLAIN: [&str; 2] = [WITNESS, "rootlight_getBlockWitness"];

#[test]
fn a_call_is_one_round_trip_with_a_witness_and_none_when_repeated() {
    let mut stage = TokenFixture::new();
    let mut light = stage.light(&[]);
    // The first call tests whether the upstream offers witnesses, and requests proofs at the same time.
    let call = json!([{"to": stage.token, "data": balance_of(ALICE)}, "latest"]);
    assert_eq!(light.count("eth_call", &call), (Ok(word(1_000)), 1));
    assert_eq!(light.asked(), [WITNESS, "eth_getProof"]);
    assert_eq!(light.count("eth_call", &call), (Ok(word(1_000)), 0), "before a new head");

    stage.mine(&mut light);
    for contract in [&stage.token, &stage.proxy] {
        let call = json!([{"to": contract, "from": ALICE, "data": balance_of(BOB)}, "latest"]);
        assert_eq!(light.count("eth_call", &call), (Ok(word(7)), 1));
        assert_eq!(light.asked(), [WITNESS]);
        assert_eq!(light.count("eth_call", &call), (Ok(word(7)), 0));
    }
    stage.mine(&mut light);
    let estimate = json!([{"to": stage.proxy, "from": ALICE, "data": balance_of(ALICE)}]);
    let theirs = light.upstream.call("eth_estimateGas", &estimate);
    let (ours, rounds) = light.count("eth_estimateGas", &estimate);
    assert_eq!((ours, rounds), (theirs, 1), "{:?}", light.upstream.asked);
    assert_eq!(light.asked(), [WITNESS]);
    assert_eq!(light.call("rootlight_upstreams", &json!([])).unwrap()[0]["witnesses"], true);
}

#[test]
fn a_call_is_three_round_trips_with_plain_proofs_then_one_per_head() {
    let mut stage = TokenFixture::new();
    let mut light = stage.light(&PLAIN);
    let call = json!([{"to": stage.token, "data": balance_of(ALICE)}, "latest"]);
    let (answer, rounds) = light.count("eth_call", &call);
    assert_eq!(answer, Ok(word(1_000)));
    assert!(rounds <= 3, "{rounds}");
    let head = light.call("eth_getBlockByNumber", &json!(["latest", false])).unwrap()["hash"].clone();
    let canonical = json!([ALICE, {"blockHash": head, "requireCanonical": true}]);
    assert_eq!(light.call("eth_getBalance", &canonical), light.upstream.call("eth_getBalance", &canonical));
    let absent = json!([stage.token, "0x999", "latest"]);
    assert_eq!(light.call("rsk_getStorageBytesAt", &absent), Ok(json!("0x0")));
    assert_eq!(light.call("eth_getStorageAt", &absent), Ok(word(0)));
    assert_eq!(
        light.asked().iter().filter(|method| **method == WITNESS).count(),
        1,
        "a witness is requested once"
    );
    assert_eq!(light.count("eth_call", &call).1, 0, "before a new head");

    // The code is cached by its hash. Account and slot are requested together, because the earlier call read them.
    stage.mine(&mut light);
    assert_eq!(light.count("eth_call", &call), (Ok(word(1_000)), 1));
    assert_eq!(light.asked(), ["eth_getProof"], "no witness is requested again");
    // Another owner in the same state: only data that are not proven yet are requested.
    let other = json!([{"to": stage.token, "data": balance_of(BOB)}, "latest"]);
    light.upstream.asked.clear();
    assert!(light.count("eth_call", &other).1 <= 1);
    let known = format!("{:#066x}", balance_slot(ALICE));
    assert!(
        light.upstream.asked.iter().all(|call| !call.params.contains(&known)),
        "{:?}",
        light.upstream.asked
    );
    // In another state, the data that the contract's calls have in common are requested too.
    stage.mine(&mut light);
    assert!(light.count("eth_call", &other).1 <= 2);

    let proxied = json!([{"to": stage.proxy, "data": balance_of(ALICE)}, "latest"]);
    let (answer, rounds) = light.count("eth_call", &proxied);
    assert_eq!(answer, Ok(word(1_000)));
    // Proxy, its code, slot 0, the implementation, the balance; the token's code is known.
    assert!(rounds <= 5, "{rounds}");
    stage.mine(&mut light);
    assert_eq!(light.count("eth_call", &proxied), (Ok(word(1_000)), 1));
    assert_eq!(light.call("rootlight_upstreams", &json!([])).unwrap()[0]["witnesses"], false);
}

/// State that several earlier calls read is prefetched together with the data that this call misses. If the prefetch
/// has no proof, the missing data are requested alone.
#[test]
fn a_failed_prefetch_does_not_fail_the_call() {
    let mut stage = TokenFixture::new();
    let reader = json!(stage.reader);
    stage.fill(&reader, 200, |number| number + 1);
    let mut light = stage.light(&PLAIN);
    let read = |count: u64| json!([{ "to": reader, "data": format!("{count:#066x}") }, "latest"]);
    for count in [6, 5] {
        assert_eq!(light.call("eth_call", &read(count)), Ok(word(count)));
        stage.fill(&reader, 200, |number| number + 10 * count);
        stage.mine(&mut light);
    }
    let fourth = format!("{:#066x}", 3);
    light.upstream.change =
        Some(Box::new(move |call: &UpstreamRequest, answer: UpstreamResponse| {
            match call.params.contains(&fourth) {
                true => Err(RequestFailure::Rpc { code: -32000, message: "no such proof".into() }),
                false => answer,
            }
        }));
    assert_eq!(light.call("eth_call", &read(2)), Ok(word(2)));
    let ahead = light.upstream.asked.iter().filter(|asked| asked.params.contains("000003\"")).count();
    assert!(ahead > 0, "{:?}", light.upstream.asked);
    let refused = light.call("eth_call", &read(4)).unwrap_err();
    assert_eq!(refused["code"], -32002, "missing data without a proof are refused: {refused}");
}

/// A long message is not sent to an upstream to request its witness.
#[test]
fn no_witness_is_requested_for_a_long_message() {
    let stage = TokenFixture::new();
    for (bytes, asked) in [(100_000, true), (140_000, false)] {
        let mut light = stage.light(&[]);
        let call = json!([{ "to": stage.token, "data": format!("0x{}", "00".repeat(bytes)) }, "latest"]);
        let _ = light.call("eth_call", &call);
        assert_eq!(light.asked().contains(&WITNESS), asked, "{bytes}");
    }
}

/// Changes the responses that contain witnesses.
fn with_witness(light: &mut Light, mut change: impl FnMut(&mut Value) + 'static) {
    light.upstream.change = Some(Box::new(move |call: &UpstreamRequest, answer: UpstreamResponse| {
        if call.method != WITNESS {
            return answer;
        }
        let mut value: Value = serde_json::from_str(answer?.get()).unwrap();
        change(&mut value);
        Ok(RawValue::from_string(value.to_string()).unwrap())
    }));
}

/// A witness that lacks required nodes, or shows another state, does not lead to a wrong answer: the missing data are
/// requested and proven.
#[test]
fn a_false_or_incomplete_witness_only_costs_rounds() {
    let mut stage = TokenFixture::new();
    let call = json!([{"to": stage.proxy, "data": balance_of(ALICE)}, "latest"]);
    let omit = |count: usize| {
        move |value: &mut Value| {
            let nodes = value["nodes"].as_array_mut().unwrap();
            nodes.truncate(nodes.len().saturating_sub(count));
        }
    };
    for count in [1, 2, 4, 100] {
        let mut light = stage.light(&[]);
        with_witness(&mut light, omit(count));
        let (answer, rounds) = light.count("eth_call", &call);
        assert_eq!(answer, Ok(word(1_000)), "{count} nodes omitted");
        assert!((1..=8).contains(&rounds), "{rounds}");
        if count == 100 {
            let upstreams = light.call("rootlight_upstreams", &json!([])).unwrap();
            let rule = upstreams[0]["misbehaviour"][0]["rule"].as_str().unwrap_or_default();
            assert!(rule.contains("nothing of the witness belongs to the state"), "{upstreams}");
        }
    }
    // A response without a witness is not a lie.
    let mut light = stage.light(&[]);
    with_witness(&mut light, |value| *value = Value::Null);
    assert_eq!(light.call("eth_call", &call), Ok(word(1_000)));
    let upstreams = light.call("rootlight_upstreams", &json!([])).unwrap();
    let rule = upstreams[0]["misbehaviour"][0]["rule"].as_str().unwrap_or_default();
    assert!(rule.contains("says there is none"), "{upstreams}");
    // Block 0 executes nothing.
    let mut light = stage.light(&[]);
    let genesis =
        light.upstream.call("eth_getBlockByNumber", &json!(["0x0", false])).unwrap()["hash"].clone();
    assert_eq!(light.upstream.call("rootlight_getBlockWitness", &json!([genesis])), Ok(Value::Null));
    // The witness of an earlier state.
    let hash = light.upstream.call("eth_getBlockByNumber", &json!(["0x2", false])).unwrap()["hash"].clone();
    let old = light.upstream.call(WITNESS, &json!([call[0], { "blockHash": hash }])).unwrap();
    with_witness(&mut light, move |value| *value = old.clone());
    assert_eq!(light.call("eth_call", &call), Ok(word(1_000)));
    // A changed balance in a node, whose hash then belongs to no state.
    let mut light = stage.light(&[]);
    with_witness(&mut light, |value| {
        for node in value["nodes"].as_array_mut().unwrap() {
            *node = node.as_str().unwrap().replace("3e8", "3e9").into();
        }
    });
    assert_eq!(light.call("eth_call", &call), Ok(word(1_000)));
    stage.mine(&mut light);
}

/// Nodes and values that belong to no state are dropped, however many there are.
#[test]
fn surplus_data_of_a_witness_are_dropped() {
    let stage = TokenFixture::new();
    let call = json!([{"to": stage.token, "data": balance_of(ALICE)}, "latest"]);
    let mut light = stage.light(&[]);
    with_witness(&mut light, |value| {
        let junk = Value::from(hex::encode_prefixed([0x47; 60]));
        value["nodes"].as_array_mut().unwrap().splice(0..0, std::iter::repeat_n(junk, 100));
        value["values"].as_array_mut().unwrap().push(hex::encode_prefixed([1; 50_000]).into());
    });
    assert_eq!(light.count("eth_call", &call), (Ok(word(1_000)), 1));
    // A witness above the size limit is refused, and plain proofs take its place.
    let mut light = stage.light(&[]);
    with_witness(&mut light, |value| value["values"] = vec!["00".repeat(1 << 20); 17].into());
    assert_eq!(light.call("eth_call", &call), Ok(word(1_000)));
    let upstreams = light.call("rootlight_upstreams", &json!([])).unwrap();
    assert!(
        upstreams[0]["misbehaviour"][0]["rule"].as_str().unwrap().contains("a witness of more than"),
        "{upstreams}"
    );
}

#[test]
fn calls_of_block_hashes_and_native_contracts_take_few_round_trips() {
    let mut stage = TokenFixture::new();
    for _ in 0..20 {
        stage.dev.get("evm_mine", json!([]));
    }
    let hash = "0x739e364f";
    // BlockHeader: gas used and hash of ancestors; Bridge: heights, the federation, long values.
    let number = |selector: &str, n: u64| format!("{selector}{n:064x}");
    let bridge = "0x0000000000000000000000000000000001000006";
    let headers = "0x0000000000000000000000000000000001000010";
    let block_hash = number(hash, 3);

    let calls = [
        json!([{"to": stage.hashes, "data": format!("{:#066x}", 5)}, "latest"]),
        json!([{"to": stage.hashes, "data": format!("{:#066x}", 5)}, "0x9"]),
        json!([{"to": headers, "data": block_hash}, "latest"]),
        // getBtcBlockchainBestChainHeight(), getFederationSize(), getFederationAddress(), getStateForBtcReleaseClient()
        json!([{"to": bridge, "data": "0x14c89c01"}, "latest"]),
        json!([{"to": bridge, "data": "0x802ad4b6"}, "latest"]),
        json!([{"to": bridge, "data": "0x6923fa85"}, "latest"]),
        json!([{"to": bridge, "data": "0xc4fbca20"}, "latest"]),
    ];
    for without in [&[][..], &PLAIN] {
        let mut light = stage.light(without);
        let fifth = light.call("eth_getBlockByNumber", &json!(["0x5", false])).unwrap()["hash"].clone();
        for call in &calls[..2] {
            assert_eq!(light.call("eth_call", call), Ok(fifth.clone()), "{call}");
        }
        let mut light = stage.light(without);
        for call in &calls {
            let theirs = light.upstream.call("eth_call", call);
            let (ours, rounds) = light.count("eth_call", call);
            println!("{call} {rounds} {ours:.60?}");
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{call} {ours:?} {theirs:?}");
            if theirs.is_ok() {
                assert_eq!(ours, theirs, "{call}");
            }
            assert!(rounds <= if without.is_empty() { 2 } else { 4 }, "{rounds}");
        }
    }
}

/// Keys are fetched in rounds of limited size, and their total number is limited.
#[test]
fn a_call_may_read_a_limited_number_of_keys() {
    let mut stage = TokenFixture::new();
    let reader = json!(stage.reader);
    stage.fill(&reader, 2_500, |number| number + 1);
    let call = |count: u64| json!([{"to": reader, "data": format!("{count:#066x}")}, "latest"]);
    for without in [&[][..], &PLAIN] {
        let mut light = stage.light(without);
        assert_eq!(light.call("eth_call", &call(2_000)), Ok(word(2_000)));
        // Another client, which has no facts yet.
        let mut light = stage.light(without);
        let error = light.call("eth_call", &call(40_000)).unwrap_err();
        assert_eq!(error["code"], -32005, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains("more than 16384 blocks and values of the state"),
            "{error}"
        );
        // 16,384 keys, 512 of them in a round, 256 in a request.
        let proofs = light.upstream.asked.iter().filter(|asked| asked.method == "eth_getProof");
        let slots = proofs
            .map(|asked| serde_json::from_str::<Value>(&asked.params).unwrap()[1].as_array().unwrap().len());
        assert_eq!(slots.max(), Some(256));
        let requests = light.asked().len();
        assert!((4..=40).contains(&light.rounds) && requests <= 80, "{} {requests}", light.rounds);
    }
}

/// Hosts limit the time of a run: an interrupted run ends with an error.
#[test]
fn interrupted_runs_end_with_an_error() {
    let stage = TokenFixture::new();
    let call = json!([{"to": stage.reader, "data": format!("{:#066x}", 2_000)}, "latest"]);
    for (method, params) in [
        ("eth_call", call.clone()),
        ("eth_estimateGas", json!([call[0]])),
        ("eth_getLogs", json!([{"fromBlock": "0x1"}])),
        ("trace_block", json!(["0x1"])),
    ] {
        let mut light = stage.light(&[]);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let mut session = light.client.open(message.as_bytes(), Now::default());
        let answer: Value = loop {
            match light.client.step(&mut session, &|| true) {
                SessionStep::Done(reply) => break serde_json::from_str(&reply.into_text().unwrap()).unwrap(),
                SessionStep::Fetch(round) => {
                    let upstream = &mut light.upstream;
                    let answers = round
                        .answered(|part| part.requests.iter().map(|asked| upstream.answer(asked)).collect());
                    light.client.feed(&mut session, answers);
                }
            }
        };
        assert_eq!(answer["error"]["code"], -32011, "{method}: {answer}");
    }
}

/// Each read may depend on the one before and then needs a round of its own; the number of rounds is limited.
#[test]
fn dependent_reads_end_after_256_rounds() {
    let mut stage = TokenFixture::new();
    let sent = stage.dev.get(
        "eth_sendTransaction",
        json!([{"from": ALICE, "data": creation(CHAIN, &[]), "gas": "0x1e8480"}]),
    );
    let contract = stage.dev.get("eth_getTransactionReceipt", json!([sent]))["contractAddress"].clone();
    for (length, allowed) in [(200, true), (1_000, false)] {
        stage.fill(&contract, length, |number| if number + 1 == length { 0 } else { number + 1 });
        let mut light = stage.light(&PLAIN);
        let answer = light.call("eth_call", &json!([{"to": contract}, "latest"]));
        if allowed {
            // The proof of a slot also proves some neighbouring slots.
            assert_eq!(answer, Ok(json!("0x")));
            assert!(light.rounds > 50, "{}", light.rounds);
        } else {
            let error = answer.unwrap_err();
            assert_eq!((error["code"].as_i64(), light.rounds), (Some(-32005), 256), "{error}");
            assert!(error["message"].as_str().unwrap().contains("more than 256 rounds"), "{error}");
        }
    }
}

/// The replay of a block may miss more facts than one message may request; its witness contains all of them.
#[test]
fn a_block_with_thousands_of_keys_needs_a_witness() {
    let mut stage = TokenFixture::new();
    let reader = json!(stage.reader);
    stage.fill(&reader, 5_000, |number| number + 1);
    let data = format!("{:#066x}", 5_000);
    let sent = json!([{"from": ALICE, "to": stage.reader, "data": data, "gas": "0x4c4b40"}]);
    let hash = stage.dev.get("eth_sendTransaction", sent);
    let params = json!([hash]);
    let mut light = stage.light(&[]);
    assert_eq!(light.call("trace_transaction", &params), light.upstream.call("trace_transaction", &params));
    let mut light = stage.light(&PLAIN);
    let error = light.call("trace_transaction", &params).unwrap_err();
    assert_eq!(error["code"], -32005, "{error}");
    assert!(
        error["message"].as_str().unwrap().contains("more than 4096 blocks and values of the state at once"),
        "{error}"
    );
}

/// A witness is limited in size, as every answer is: here the call reads six codes of 1 MiB each.
#[test]
fn a_witness_is_limited_in_size() {
    let mut stage = TokenFixture::new();
    let mut program = String::new();
    for number in 0..6_u8 {
        let address = Address::repeat_byte(0xa0 + number);
        let code = hex::encode_prefixed(vec![number; 1 << 20]);
        stage.dev.get("anvil_setCode", json!([address, code]));
        program.push_str(&format!("600160006000 73{} 3c", hex::encode(address)));
    }
    let code = hex::decode(program.replace(' ', "")).unwrap();
    stage.dev.get("anvil_setCode", json!([stage.reader, hex::encode_prefixed(code)]));
    stage.dev.get("evm_mine", json!([]));
    let light = stage.light(&[]);
    let call = json!([{"to": stage.reader}, "latest"]);
    assert_eq!(light.upstream.call("eth_call", &call), Ok(json!("0x")));
    let error = light.upstream.call(WITNESS, &call).unwrap_err();
    assert_eq!(error["code"], -32005, "{error}");
    assert!(error["message"].as_str().unwrap().contains("5242880"), "{error}");
}

/// Each call may miss thousands of facts, and a batch has a thousand calls.
#[test]
fn the_calls_of_a_batch_wait_for_each_other_where_they_miss_too_much_at_once() {
    let stage = TokenFixture::new();
    let mut light = stage.light(&PLAIN);
    let call = |id: u64| {
        let account = |number: u64| format!("{:#042x}", (id * 1_000 + number + 1) * 0x0123_4567);
        let cells: serde_json::Map<_, _> =
            (0..1_000).map(|number| (account(number), json!(["0x1"]))).collect();
        json!({"jsonrpc": "2.0", "id": id, "method": "eth_getStorageValues", "params": [cells, "latest"]})
    };
    let answers = light.message(&(0..12).map(call).collect());
    assert!(answers.as_array().unwrap().iter().all(|answer| answer["result"].is_object()), "{answers}");
    assert!((4 << 20..24 << 20).contains(&light.most_bytes), "{}", light.most_bytes);
}
