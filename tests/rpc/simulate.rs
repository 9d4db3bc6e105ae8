//! `eth_simulateV1` on a development chain: simulated calls do what the same transactions do, and bad input is refused.

use crate::fixture::{ALICE, BOB, LOGGER, NOBODY, REVERTS, TOPIC};
use crate::support::{dev::DevClient, u64_of};
use alloy_primitives::{Address, U256};
use rootlight::dev::{DevAccounts, DevConfig, Mining};
use rootlight::exec::CallPolicy;
use serde_json::{Value, json};

const METHOD: &str = "eth_simulateV1";
const ETHER: &str = "0xeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee";
const TRANSFER: &str = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef";
const GAS_PRICE: &str = "0x3938700";

/// Stores its argument in slot 0; clearing it has a refund.
const STORE: &str = "600035600055";
/// Destroys itself for BOB.
const DESTROYS: &str = "7370997970c51812dc3a010c7d01b50e0d17dc79c8ff";

fn creation(runtime: &str) -> String {
    let length = runtime.len() / 2;
    format!("0x60{length:02x}80600b6000396000f3{runtime}")
}

pub(crate) fn word(number: u64) -> String {
    format!("{:#066x}", U256::from(number))
}

pub(crate) fn padded(address: &str) -> String {
    format!("0x{:0>64}", &address[2..])
}

/// A chain that mines on request, and the nonce of its sender.
pub(crate) struct SimulationFixture {
    pub(crate) dev: DevClient,
    nonce: u64,
}

impl SimulationFixture {
    pub(crate) fn new() -> Self {
        let config = DevConfig { mining: Mining::Manual, ..DevConfig::new(&DevAccounts::default()) };
        Self { dev: DevClient::new(config), nonce: 0 }
    }

    pub(crate) fn deploy(&mut self, runtime: &str) -> String {
        let data = creation(runtime);
        let sent =
            self.dev.get("eth_sendTransaction", json!([{"from": ALICE, "data": data, "gas": "0x61a80"}]));
        self.dev.get("evm_mine", json!([]));
        self.nonce += 1;
        let receipt = self.dev.get("eth_getTransactionReceipt", json!([sent]));
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        receipt["contractAddress"].as_str().unwrap().to_owned()
    }

    fn simulate(&mut self, input: Value) -> Value {
        self.dev.get(METHOD, json!([input, "latest"]))
    }

    /// The calls of the only block.
    fn calls(&mut self, calls: Value) -> Value {
        self.simulate(json!({"blockStateCalls": [{"calls": calls}]}))[0]["calls"].clone()
    }

    fn code_of(&mut self, blocks: Value) -> (i64, String) {
        self.dev.refused(METHOD, json!([{"blockStateCalls": blocks}, "latest"]))
    }
}

/// The calls as transactions of ALICE, with nonces and gas prices.
fn as_transactions(calls: &[Value], first: u64) -> Vec<Value> {
    let full = |(index, call): (usize, &Value)| {
        let mut call = call.clone();
        call["from"] = json!(ALICE);
        call["gasPrice"] = json!(GAS_PRICE);
        call["nonce"] = json!(format!("{:#x}", first + index as u64));
        call
    };
    calls.iter().enumerate().map(full).collect()
}

/// What a log says, without its place.
fn contents(logs: &Value) -> Vec<Value> {
    let one = |log: &Value| json!([log["address"], log["topics"], log["data"]]);
    logs.as_array().unwrap().iter().map(one).collect()
}

#[test]
fn simulated_calls_do_what_sent_transactions_do() {
    let mut fixture = SimulationFixture::new();
    let (store, destroys) = (fixture.deploy(STORE), fixture.deploy(DESTROYS));
    // JUMPDEST PUSH1 0 JUMP: never ends.
    let (endless, reverts) = (fixture.deploy("5b600056"), fixture.deploy(&REVERTS[2..]));
    let logger = ALICE.parse::<Address>().unwrap().create(fixture.nonce + 2).to_string();
    let calls = [
        json!({"to": store, "data": word(7), "gas": "0x186a0"}),
        json!({"to": NOBODY, "value": "0x5", "gas": "0x5208"}),
        json!({"data": LOGGER, "gas": "0x30d40"}),
        json!({"to": logger, "gas": "0x186a0"}),
        json!({"to": store, "data": word(0), "gas": "0x186a0"}),
        json!({"to": reverts, "gas": "0x186a0", "value": "0x1"}),
        json!({"to": endless, "gas": "0x186a0"}),
        json!({"to": destroys, "gas": "0x186a0", "value": "0x9"}),
        json!({"to": destroys, "gas": "0x186a0"}),
        // The identity contract, directly, and the Bridge.
        json!({"to": "0x0000000000000000000000000000000000000004", "data": word(3), "gas": "0x186a0", "value": "0x2"}),
        json!({"to": "0x0000000000000000000000000000000001000006", "data": "0x14c89c01", "gas": "0x186a0"}),
        // A creation without code.
        json!({"gas": "0x186a0", "value": "0x3"}),
    ];
    let transactions = as_transactions(&calls, fixture.nonce);
    let input = json!({"blockStateCalls": [{"calls": transactions}], "validation": true});
    let simulated = fixture.simulate(input)[0].clone();
    let hashes: Vec<Value> = transactions
        .iter()
        .map(|transaction| fixture.dev.get("eth_sendTransaction", json!([transaction])))
        .collect();
    fixture.dev.get("evm_mine", json!([]));
    for (index, hash) in hashes.iter().enumerate() {
        let (ours, receipt) =
            (&simulated["calls"][index], fixture.dev.get("eth_getTransactionReceipt", json!([hash])));
        assert_eq!(ours["gasUsed"], receipt["gasUsed"], "{}: {ours}", calls[index]);
        assert_eq!(ours["status"], receipt["status"], "{}: {ours}", calls[index]);
        assert_eq!(contents(&ours["logs"]), contents(&receipt["logs"]), "{}", calls[index]);
        assert_eq!(ours["status"] == "0x0", ours.get("error").is_some(), "{ours}");
    }
    let block = fixture.dev.get("eth_getBlockByNumber", json!([simulated["number"], false]));
    for field in
        ["number", "parentHash", "gasUsed", "gasLimit", "logsBloom", "paidFees", "miner", "sha3Uncles"]
    {
        assert_eq!(simulated[field], block[field], "{field}");
    }
    assert!(simulated["calls"][4]["gasUsed"] != simulated["calls"][4]["maxUsedGas"], "a refund");
    assert_eq!(simulated["calls"][5]["error"]["code"], 3);
    assert_eq!(simulated["calls"][5]["error"]["message"], "execution reverted: no");
    assert_eq!(simulated["calls"][5]["error"]["data"], simulated["calls"][5]["returnData"]);
    assert_eq!(simulated["calls"][6]["error"], json!({"code": -32015, "message": "out of gas"}));
}

/// A block after simulated calls sees the balances, nonces, storage and code that they left.
#[test]
fn later_calls_and_blocks_see_what_earlier_ones_left() {
    let mut fixture = SimulationFixture::new();
    let store = fixture.deploy(STORE);
    let nonce = fixture.nonce;
    let balance = |address: &str| format!("0x73{}3160005260206000f3", &address[2..]);
    let calls = [
        json!({"to": NOBODY, "value": "0x5", "gas": "0x5208"}),
        json!({"to": store, "data": word(7), "gas": "0x186a0"}),
    ];
    let transactions = as_transactions(&calls, nonce);
    let reads = json!({"stateOverrides": {BOB: {"code": balance(ALICE)}}, "calls": [{"to": BOB}]});
    let nobody = json!({"stateOverrides": {BOB: {"code": balance(NOBODY)}}, "calls": [{"to": BOB}]});
    // SLOAD of the contract, whose code is replaced.
    let slot =
        json!({"stateOverrides": {&store: {"code": "0x60005460005260206000f3"}}, "calls": [{"to": store}]});
    let blocks = fixture.simulate(json!({"blockStateCalls": [{"calls": transactions}, reads, nobody, slot]}));
    for transaction in &transactions {
        fixture.dev.get("eth_sendTransaction", json!([transaction]));
    }
    fixture.dev.get("evm_mine", json!([]));
    let left = fixture.dev.get("eth_getBalance", json!([ALICE, "latest"]));
    let left: U256 = left.as_str().unwrap().parse().unwrap();
    assert_eq!(blocks[1]["calls"][0]["returnData"], format!("{left:#066x}"));
    assert_eq!(blocks[2]["calls"][0]["returnData"], word(5));
    assert_eq!(blocks[3]["calls"][0]["returnData"], word(7));
    // The creations of one sender have different addresses.
    let created = fixture.simulate(json!({
        "blockStateCalls": [{"calls": [{"from": ALICE, "data": LOGGER}, {"from": ALICE, "data": LOGGER}]}],
        "returnFullTransactions": true,
    }));
    let nonce = |index: usize| u64_of(created[0]["transactions"][index]["nonce"].as_str().unwrap());
    assert_eq!(nonce(1), nonce(0) + 1);
    assert_eq!(created[0]["transactions"][0]["from"], ALICE);
    let again: Address = ALICE.parse::<Address>().unwrap().create(nonce(1));
    let both = json!([{"from": ALICE, "data": LOGGER}, {"from": ALICE, "data": LOGGER}, {"to": again}]);
    assert_eq!(contents(&fixture.calls(both)[2]["logs"])[0][1], json!([TOPIC]));
}

#[test]
fn simulated_blocks_have_the_shape_of_blocks_and_are_linked() {
    let mut fixture = SimulationFixture::new();
    let base = fixture.dev.get("eth_getBlockByNumber", json!(["latest", false]));
    let number = u64_of(base["number"].as_str().unwrap());
    let later = format!("{:#x}", number + 3);
    let input =
        json!({"blockStateCalls": [{}, {"blockOverrides": {"number": later}, "calls": [{"to": BOB}]}]});
    let blocks = fixture.simulate(input);
    let blocks = blocks.as_array().unwrap();
    assert_eq!(blocks.len(), 3, "with the one between");
    let keys = |block: &Value| block.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut parent = base.clone();
    for block in blocks {
        assert_eq!(block["parentHash"], parent["hash"]);
        assert_eq!(u64_of(block["number"].as_str().unwrap()), u64_of(parent["number"].as_str().unwrap()) + 1);
        assert!(u64_of(block["timestamp"].as_str().unwrap()) > u64_of(parent["timestamp"].as_str().unwrap()));
        let total = |block: &Value| u64_of(block["totalDifficulty"].as_str().unwrap());
        assert_eq!(total(block), total(&parent) + u64_of(block["difficulty"].as_str().unwrap()));
        let mut own = keys(block);
        own.retain(|key| key != "calls");
        assert_eq!(own, keys(&base));
        parent = block.clone();
    }
    // BLOCKHASH of the simulated block before, and of the one below all.
    let hash = |number: u64| json!({"to": NOBODY, "data": word(number)});
    let code = json!({NOBODY: {"code": "0x6000354060005260206000f3"}});
    let input =
        json!({"blockStateCalls": [{}, {"stateOverrides": code, "calls": [hash(number + 1), hash(number)]}]});
    let blocks = fixture.simulate(input);
    assert_eq!(blocks[1]["calls"][0]["returnData"], blocks[0]["hash"]);
    assert_eq!(blocks[1]["calls"][1]["returnData"], base["hash"]);
}

#[test]
fn overrides_of_blocks_are_what_instructions_read() {
    let mut fixture = SimulationFixture::new();
    // NUMBER, TIMESTAMP, COINBASE, DIFFICULTY, GASLIMIT and BASEFEE.
    let code: String = [0x43u8, 0x42, 0x41, 0x44, 0x45, 0x48]
        .iter()
        .enumerate()
        .map(|(index, opcode)| format!("{opcode:02x}60{:02x}52", index * 32))
        .collect();
    let input = json!({"blockStateCalls": [{
        "blockOverrides": {
            "number": "0x20", "time": "0xffffffff", "feeRecipient": BOB, "difficulty": "0x99",
            "gasLimit": "0x500000", "baseFeePerGas": "0x7",
        },
        "stateOverrides": {NOBODY: {"code": format!("0x{code}60c06000f3")}},
        "calls": [{"to": NOBODY}],
    }]});
    let block = fixture.simulate(input).as_array().unwrap().last().unwrap().clone();
    let words = [word(0x20), word(0xffff_ffff), padded(BOB), word(0x99), word(0x50_0000), word(7)];
    let expected: String = words.iter().map(|word| &word[2..]).collect();
    assert_eq!(block["calls"][0]["returnData"], format!("0x{expected}"));
    assert_eq!((&block["miner"], &block["minimumGasPrice"]), (&json!(BOB), &json!("0x7")));
    assert_eq!((&block["gasLimit"], &block["difficulty"]), (&json!("0x500000"), &json!("0x99")));
}

#[test]
fn transfers_are_logs_in_their_order_and_go_with_failed_frames() {
    let mut fixture = SimulationFixture::new();
    let (logger, destroys) = (fixture.deploy(&LOGGER[24..]), fixture.deploy(DESTROYS));
    // Sends 1 wei to NOBODY, calls a contract that logs, sends 2 wei to NOBODY.
    let send = |wei: u8, to: &str| format!("600060006000600060{wei:02x}73{}5af1", &to[2..]);
    let sends = format!("{}{}{}", send(1, NOBODY), send(0, &logger), send(2, NOBODY));
    let (sends, fails) =
        (fixture.deploy(&format!("{sends}00")), fixture.deploy(&format!("{sends}60006000fd")));
    let outer = fixture.deploy(&format!("{}{}00", send(3, &fails), send(4, &destroys)));
    let log =
        |from: &str, to: &str, wei: u64| json!([ETHER, [TRANSFER, padded(from), padded(to)], word(wei)]);
    let traced = |fixture: &mut SimulationFixture, to: &Value, value: &str| {
        let call = json!({"from": ALICE, "to": to, "value": value});
        let input = json!({"blockStateCalls": [{"calls": [call]}], "traceTransfers": true});
        let block = fixture.simulate(input)[0].clone();
        for (index, log) in block["calls"][0]["logs"].as_array().unwrap().iter().enumerate() {
            assert_eq!(log["logIndex"], format!("{index:#x}"));
            assert_eq!(log["blockHash"], block["hash"]);
        }
        contents(&block["calls"][0]["logs"])
    };
    let logged = contents(&fixture.calls(json!([{"to": logger}]))[0]["logs"])[0].clone();
    let seen = traced(&mut fixture, &json!(sends), "0x9");
    let expected = vec![log(ALICE, &sends, 9), log(&sends, NOBODY, 1), logged, log(&sends, NOBODY, 2)];
    assert_eq!(seen, expected);
    assert_eq!(traced(&mut fixture, &json!(fails), "0x9"), Vec::<Value>::new());
    let seen = traced(&mut fixture, &json!(outer), "0x9");
    let expected = vec![log(ALICE, &outer, 9), log(&outer, &destroys, 4), log(&destroys, BOB, 4)];
    assert_eq!(seen, expected);
    let identity = "0x0000000000000000000000000000000000000004";
    assert_eq!(traced(&mut fixture, &json!(identity), "0x2"), vec![log(ALICE, identity, 2)]);
    assert_eq!(traced(&mut fixture, &json!(NOBODY), "0x2"), vec![log(ALICE, NOBODY, 2)]);
    assert_eq!(traced(&mut fixture, &json!(NOBODY), "0x0"), Vec::<Value>::new());
    let created = ALICE.parse::<Address>().unwrap().create(fixture.nonce).to_string().to_lowercase();
    assert_eq!(traced(&mut fixture, &Value::Null, "0x2"), vec![log(ALICE, &created, 2)]);
    let plain = fixture.calls(json!([{"from": ALICE, "to": NOBODY, "value": "0x2"}]));
    assert_eq!(plain[0]["logs"], json!([]));
}

#[test]
fn state_overrides_replace_or_patch_storage() {
    let mut fixture = SimulationFixture::new();
    let store = fixture.deploy(STORE);
    let read = |mut over: Value| {
        // Slots 0 and 1.
        over["code"] = json!("0x60005460005260015460205260406000f3");
        json!({"stateOverrides": {&store: over}, "calls": [{"to": store}]})
    };
    let (zero, one) = (word(0), word(1));
    let blocks = fixture.simulate(json!({"blockStateCalls": [
        {"calls": [{"to": store, "data": word(9)}]},
        read(json!({"stateDiff": {&one: word(5)}})),
        read(json!({"state": {&one: word(6)}})),
        read(json!({"balance": "0x7"})),
    ]}));
    let pair = |a: u64, b: u64| format!("0x{}{}", &word(a)[2..], &word(b)[2..]);
    let read: Vec<&Value> = (1..4).map(|index| &blocks[index]["calls"][0]["returnData"]).collect();
    assert_eq!(read, [&json!(pair(9, 5)), &json!(pair(0, 6)), &json!(pair(0, 6))]);
    let native =
        json!([{"stateOverrides": {"0x0000000000000000000000000000000001000006": {"balance": "0x1"}}}]);
    assert_eq!(fixture.code_of(native), (-32602, "Precompiled contracts can not be overridden".into()));
    let moved = json!([{"stateOverrides": {"0x0000000000000000000000000000000000000001": {"movePrecompileToAddress": BOB}}}]);
    assert_eq!(fixture.code_of(moved), (-32602, "movePrecompileToAddress is not supported".into()));
    let both = json!([{"stateOverrides": {BOB: {"state": {&zero: &one}, "stateDiff": {&zero: &one}}}}]);
    assert_eq!(fixture.code_of(both).0, -32602);
}

#[test]
fn broken_rules_have_the_codes_of_the_specification() {
    let mut fixture = SimulationFixture::new();
    let store = fixture.deploy(STORE);
    let nonce = format!("{:#x}", fixture.nonce);
    let validated = |call: Value| json!({"blockStateCalls": [{"calls": [call]}], "validation": true});
    let priced = |call: Value| {
        let block = json!({"baseFeePerGas": "0x7"});
        json!({"blockStateCalls": [{"blockOverrides": block, "calls": [call]}], "validation": true})
    };
    let plain = |call: Value| json!({"blockStateCalls": [{"calls": [call]}]});
    let call =
        |nonce: &str, price: &str| json!({"from": ALICE, "to": BOB, "nonce": nonce, "gasPrice": price});
    let numbers = |a: &str, b: &str| json!({"blockStateCalls": [{"blockOverrides": {"number": a}}, {"blockOverrides": {"number": b}}]});
    let times = |a: &str, b: &str| json!({"blockStateCalls": [{"blockOverrides": {"time": a}}, {"blockOverrides": {"time": b}}]});
    for (code, input) in [
        (-38010, validated(call("0x0", GAS_PRICE))),
        (-38011, validated(call("0x9", GAS_PRICE))),
        (-38012, priced(call(&nonce, "0x6"))),
        (-38012, priced(json!({"from": ALICE, "to": BOB}))),
        (-38013, plain(json!({"to": BOB, "gas": "0x5207"}))),
        (-38014, plain(json!({"from": NOBODY, "to": BOB, "value": "0x1"}))),
        (-38014, plain(json!({"from": NOBODY, "to": BOB, "gasPrice": "0x1"}))),
        (-38015, plain(json!({"to": BOB, "gas": "0x7fffffff"}))),
        (-38020, numbers("0x30", "0x2f")),
        (-38020, numbers("0x30", "0x30")),
        (-38020, numbers("0x0", "0x30")),
        (-38021, times("0xffffff02", "0xffffff02")),
        (-38021, times("0x1", "0xffffff02")),
        (-38025, plain(json!({"from": ALICE, "data": format!("0x{}", "00".repeat(49_153))}))),
        (-38026, numbers("0x30", "0x200")),
        (-38026, json!({"blockStateCalls": vec![json!({}); 257]})),
        (-32602, json!({"blockStateCalls": []})),
        (-32602, json!({})),
        (-32602, json!([])),
        (-32602, json!({"blockStateCalls": 7})),
        (-32602, json!({"blockStateCalls": [7]})),
        (-32602, json!({"blockStateCalls": [{"calls": {"to": BOB}}]})),
        (-32602, json!({"blockStateCalls": [{"calls": [[BOB]]}]})),
        (-32602, plain(json!({"to": "0x12"}))),
        (-32602, plain(json!({"to": BOB, "value": "lots"}))),
        (-32602, plain(json!({"to": BOB, "nonce": "0x10000000000000000"}))),
        (-32602, json!({"blockStateCalls": [{}], "validation": 7})),
        (-32602, json!({"blockStateCalls": [{"blockOverrides": {"number": "0xffffffffffffffff"}}]})),
        (-32602, json!({"blockStateCalls": [{"blockOverrides": {"prevRandao": word(1)}}]})),
        (-32602, json!({"blockStateCalls": [{"blockOverrides": {"withdrawals": []}}]})),
    ] {
        let (found, text) = fixture.dev.refused(METHOD, json!([input, "latest"]));
        assert_eq!(found, code, "{text}: {}", input.to_string().chars().take(200).collect::<String>());
    }
    let good = validated(
        json!({"from": ALICE, "to": store, "nonce": nonce, "gasPrice": GAS_PRICE, "gas": "0x186a0"}),
    );
    assert_eq!(fixture.simulate(good)[0]["calls"][0]["status"], "0x1");
    assert_eq!(
        fixture.simulate(json!({"blockStateCalls": vec![json!({}); 256]})).as_array().unwrap().len(),
        256
    );
    let (code, _) = fixture.dev.refused(METHOD, json!([{"blockStateCalls": [{}]}, "0x9999"]));
    assert_eq!(code, -32602);
}

#[test]
fn the_gas_of_all_calls_together_is_bounded() {
    let mut fixture = SimulationFixture::new();
    let endless = json!({NOBODY: {"code": "0x5b600056"}});
    let call = json!({"to": NOBODY, "gas": "0x300000"});
    let block = |calls: usize| json!({"calls": vec![call.clone(); calls]});
    let mut blocks = vec![block(1); 3];
    blocks[0]["stateOverrides"] = endless.clone();
    let used = fixture.simulate(json!({"blockStateCalls": blocks}));
    assert_eq!(used[2]["calls"][0]["error"]["message"], "out of gas");
    blocks.push(block(1));
    // The cap is 10,000,000: the fourth call has what is left of it, a fifth one nothing.
    let used = fixture.simulate(json!({"blockStateCalls": blocks}));
    assert_eq!(used[3]["calls"][0]["gasUsed"], format!("{:#x}", 10_000_000 - 3 * 0x30_0000));
    blocks.push(block(1));
    let (code, text) = fixture.code_of(json!(blocks));
    assert_eq!(
        (code, text.as_str()),
        (-38026, "client limit exceeded: the calls use more than 10000000 gas together")
    );
}

/// Outputs that no answer holds are not collected.
#[test]
fn the_output_of_all_calls_together_is_bounded() {
    let mut fixture = SimulationFixture::new();
    // Returns 100 KiB of zeros, for 50,000 gas.
    let code = json!({NOBODY: {"code": "0x620190006000f3"}});
    let block = |calls: usize| json!([{"stateOverrides": code, "calls": vec![json!({"to": NOBODY}); calls]}]);
    assert_eq!(fixture.code_of(block(100)).0, -32011);
    let blocks = fixture.simulate(json!({"blockStateCalls": block(40)}));
    assert_eq!(blocks[0]["calls"].as_array().unwrap().len(), 40);
}

/// Overrides of a million slots are refused before they are parsed.
#[test]
fn long_simulations_are_refused_unread() {
    let mut fixture = SimulationFixture::new();
    let slots: String = (0..200_000).map(|slot| format!(r#""{slot:#x}":"zz","#)).collect();
    let params = format!(
        r#"{{"blockStateCalls":[{{"stateOverrides":{{"{BOB}":{{"state":{{{slots}"0x0":"0x0"}}}}}}}}]}}"#
    );
    let message = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{METHOD}","params":[{params}]}}"#);
    let answer = fixture.dev.send(&message);
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("more than 1048576 bytes of JSON"), "{text}");
}

#[test]
fn overrides_of_state_follow_the_setting_of_calls() {
    let policy = CallPolicy { overrides: false, ..CallPolicy::default() };
    let config = DevConfig { policy, ..DevConfig::new(&DevAccounts::default()) };
    let mut fixture = SimulationFixture { dev: DevClient::new(config), nonce: 0 };
    let over = json!([{"stateOverrides": {BOB: {"balance": "0x1"}}}]);
    assert_eq!(fixture.code_of(over), (-32602, "State override is not allowed".into()));
    assert_eq!(fixture.calls(json!([{"to": BOB}]))[0]["status"], "0x1");
}
