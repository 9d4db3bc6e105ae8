//! Traces of calls: those of the same transactions, on the state and in the block that the call names.

use crate::fixture::{ALICE, BOB, NOBODY, REVERTS};
use crate::simulate::{SimulationFixture, padded, word};
use crate::support::u64_of;
use serde_json::{Value, json};

/// Stores its argument in slot 0 and returns what was there.
const SWAP: &str = "60005460005260003560005560206000f3";
const CALLS: &str = "callTracer";

struct CallsFixture {
    base: SimulationFixture,
    swap: String,
    outer: String,
}

impl CallsFixture {
    fn new() -> Self {
        let mut base = SimulationFixture::new();
        let swap = base.deploy(SWAP);
        let outer = format!("6000356000526020600060206000600073{}5af15060206000f3", &swap[2..]);
        let outer = base.deploy(&outer);
        Self { base, swap, outer }
    }

    fn get(&mut self, method: &str, params: Value) -> Value {
        self.base.dev.get(method, params)
    }

    /// Sends a call of ALICE as a transaction, and returns its hash.
    fn send(&mut self, call: &Value) -> Value {
        let hash = self.get("eth_sendTransaction", json!([call]));
        self.get("evm_mine", json!([]));
        hash
    }
}

fn call(to: &str, argument: u64) -> Value {
    json!({"from": ALICE, "to": to, "data": word(argument), "gas": "0x30d40", "gasPrice": "0x0"})
}

#[test]
fn the_trace_of_a_call_is_that_of_the_transaction() {
    let mut fixture = CallsFixture::new();
    let sent = call(&fixture.outer, 7);
    let options = [
        json!({"tracer": CALLS, "tracerConfig": {"withLog": true}}),
        json!({"tracer": "structLogger", "enableMemory": true}),
        json!({"tracer": "prestateTracer"}),
        json!({"tracer": "prestateTracer", "tracerConfig": {"diffMode": true}}),
        json!({"tracer": "4byteTracer"}),
        json!({"tracer": "muxTracer", "tracerConfig": {CALLS: {}, "4byteTracer": {}}}),
    ];
    let before: Vec<Value> = options
        .iter()
        .map(|options| fixture.get("debug_traceCall", json!([sent, "latest", options])))
        .collect();
    let types = json!(["trace", "stateDiff"]);
    let parity = fixture.get("trace_call", json!([sent, types, "latest"]));
    let hash = fixture.send(&sent);
    for (options, ours) in options.iter().zip(before) {
        let theirs = fixture.get("debug_traceTransaction", json!([hash, options]));
        assert_eq!(ours, theirs, "{options}");
    }
    let replayed = fixture.get("trace_replayTransaction", json!([hash, types]));
    assert_eq!(parity, replayed);
    assert_eq!(parity["output"], word(0));
    let traces = fixture.get("trace_transaction", json!([hash]));
    for (index, entry) in traces.as_array().unwrap().iter().enumerate() {
        for field in ["action", "result", "subtraces", "traceAddress", "type"] {
            assert_eq!(parity["trace"][index][field], entry[field], "{field}");
        }
    }
    assert!(parity["trace"][0].get("blockHash").is_none());
    let slot = json!({word(0): {"*": {"from": word(0), "to": word(7)}}});
    assert_eq!(parity["stateDiff"][&fixture.swap]["storage"], slot);
    assert_eq!(parity["stateDiff"][&fixture.swap]["balance"], "=");
    assert_eq!(parity["stateDiff"][ALICE]["nonce"]["*"]["to"], "0x3");
    assert!(parity["stateDiff"].get(&fixture.outer).is_none(), "nothing changed");
}

#[test]
fn calls_of_one_request_see_what_the_earlier_ones_left() {
    let mut fixture = CallsFixture::new();
    let (swap, outer) = (fixture.swap.clone(), fixture.outer.clone());
    let bundles =
        json!([{"transactions": [call(&swap, 5), call(&outer, 6)]}, {"transactions": [call(&swap, 7)]}]);
    let context = json!({"blockNumber": "latest", "transactionIndex": -1});
    let traces = fixture.get("debug_traceCallMany", json!([bundles, context, {"tracer": CALLS}]));
    let outputs: Vec<&Value> =
        [(0, 0), (0, 1), (1, 0)].iter().map(|(b, c)| &traces[b][c]["output"]).collect();
    assert_eq!(outputs, [&json!(word(0)), &json!(word(5)), &json!(word(6))]);
    assert_eq!(traces[1].as_array().unwrap().len(), 1);
    let calls = json!([[call(&swap, 5), ["trace"]], [call(&outer, 6), ["stateDiff"]], [call(&swap, 7), []]]);
    let many = fixture.get("trace_callMany", json!([calls, "latest"]));
    let outputs: Vec<&Value> = (0..3).map(|index| &many[index]["output"]).collect();
    assert_eq!(outputs, [&json!(word(0)), &json!(word(5)), &json!(word(6))]);
    assert_eq!(many[0]["stateDiff"], Value::Null);
    assert_eq!(
        (&many[1]["trace"], &many[2]["trace"], &many[2]["vmTrace"]),
        (&json!([]), &json!([]), &Value::Null)
    );
    let slot = json!({word(0): {"*": {"from": word(5), "to": word(6)}}});
    assert_eq!(many[1]["stateDiff"][&swap]["storage"], slot);
    // A single call is not changed by those of another request.
    let trace = fixture.get("debug_traceCall", json!([call(&swap, 1), "latest", {"tracer": CALLS}]));
    assert_eq!(trace["output"], word(0));
}

#[test]
fn overrides_change_what_a_traced_call_sees() {
    let mut fixture = CallsFixture::new();
    // NUMBER, COINBASE and BASEFEE.
    let code = "0x4360005241602052486040 5260606000f3".replace(' ', "");
    let options = json!({
        "tracer": CALLS,
        "stateOverrides": {NOBODY: {"code": code}},
        "blockOverrides": {"number": "0x77", "feeRecipient": BOB, "baseFeePerGas": "0x9"},
    });
    let expected = format!("0x{}{}{}", &word(0x77)[2..], &padded(BOB)[2..], &word(9)[2..]);
    let trace = fixture.get("debug_traceCall", json!([{"to": NOBODY}, "latest", options]));
    assert_eq!(trace["output"], expected);
    let bundles = json!([
        {"transactions": [{"to": NOBODY}], "blockOverride": {"number": "0x78", "coinbase": BOB, "baseFee": "0x9"}},
        {"transactions": [{"to": NOBODY}]},
    ]);
    let traces = fixture.get("debug_traceCallMany", json!([bundles, "latest", options]));
    assert_eq!(traces[0][0]["output"], expected.replace(&word(0x77)[2..], &word(0x78)[2..]));
    assert_eq!(traces[1][0]["output"], expected);
    // BLOCKHASH of a block that is not below the one of the call, and of one that is.
    let hash = |number: u64| format!("0x60{number:02x}4060005260206000f3");
    for (number, expected) in [
        (0x70, word(0)),
        (1, fixture.get("eth_getBlockByNumber", json!(["0x1", false]))["hash"].as_str().unwrap().into()),
    ] {
        let options = json!({
            "tracer": CALLS,
            "stateOverrides": {NOBODY: {"code": hash(number)}},
            "blockOverrides": {"number": "0x77"},
        });
        let trace = fixture.get("debug_traceCall", json!([{"to": NOBODY}, "latest", options]));
        assert_eq!(trace["output"], expected, "{number}");
    }
    let over = json!({NOBODY: {"code": REVERTS}});
    let reverted = fixture.get("trace_call", json!([{"to": NOBODY}, ["trace"], "latest", over]));
    assert_eq!(
        (&reverted["trace"][0]["error"], &reverted["trace"][0]["result"]),
        (&json!("Reverted"), &Value::Null)
    );
    assert!(reverted["output"].as_str().unwrap().starts_with("0x08c379a0"));
    let tree = fixture
        .get("debug_traceCall", json!([{"to": NOBODY}, "latest", {"tracer": CALLS, "stateOverrides": over}]));
    assert_eq!((&tree["error"], &tree["revertReason"]), (&json!("execution reverted"), &json!("no")));
    // The default tracer, and the state after an earlier block.
    let steps = fixture.get("debug_traceCall", json!([call(&fixture.swap.clone(), 1)]));
    assert_eq!(steps["structLogs"][0]["op"], "PUSH1");
    let early =
        fixture.get("debug_traceCall", json!([call(&fixture.swap.clone(), 1), "0x0", {"tracer": CALLS}]));
    assert!(early.get("output").is_none(), "no contract yet: {early}");
}

/// The state differences of a block's transactions, REMASC's included, and of accounts that begin and end.
#[test]
fn replays_of_a_block_are_those_of_its_transactions() {
    let mut fixture = CallsFixture::new();
    let destroys = fixture.base.deploy("7370997970c51812dc3a010c7d01b50e0d17dc79c8ff");
    let gas_price = "0x3938700";
    let transactions = [
        json!({"from": ALICE, "to": fixture.swap, "data": word(3), "gas": "0x30d40", "gasPrice": gas_price}),
        json!({"from": ALICE, "to": NOBODY, "value": "0x5", "gas": "0x5208", "gasPrice": gas_price}),
        json!({"from": ALICE, "to": destroys, "value": "0x6", "gas": "0x30d40", "gasPrice": gas_price}),
    ];
    let calls: Vec<Value> = transactions.iter().map(|call| json!([call, ["trace", "stateDiff"]])).collect();
    let called = fixture.get("trace_callMany", json!([calls, "latest"]));
    for transaction in &transactions {
        fixture.get("eth_sendTransaction", json!([transaction]));
    }
    fixture.get("evm_mine", json!([]));
    let replayed = fixture.get("trace_replayBlockTransactions", json!(["latest", ["trace", "stateDiff"]]));
    let replayed = replayed.as_array().unwrap();
    assert_eq!(replayed.len(), 4, "with REMASC's");
    for (index, ours) in called.as_array().unwrap().iter().enumerate() {
        for field in ["output", "trace", "stateDiff"] {
            assert_eq!(ours[field], replayed[index][field], "{index} {field}");
        }
        assert!(replayed[index]["transactionHash"].is_string());
    }
    let born = json!({"balance": {"+": "0x5"}, "code": {"+": "0x"}, "nonce": {"+": "0x0"}, "storage": {}});
    assert_eq!(called[1]["stateDiff"][NOBODY], born);
    let died = &called[2]["stateDiff"][&destroys];
    assert_eq!((&died["balance"], &died["nonce"]), (&json!({"-": "0x0"}), &json!({"-": "0x0"})));
    let one = fixture
        .get("trace_replayTransaction", json!([replayed[2]["transactionHash"], ["trace", "stateDiff"]]));
    assert_eq!(one["stateDiff"], replayed[2]["stateDiff"]);
    assert_eq!(fixture.get("trace_replayTransaction", json!([word(9), ["trace"]])), Value::Null);
}

#[test]
fn a_raw_transaction_is_traced_and_not_sent() {
    let mut fixture = CallsFixture::new();
    let mut transaction = call(&fixture.swap, 9);
    transaction["gasPrice"] = json!("0x3938700");
    let raw = fixture.get("eth_signTransaction", json!([transaction]));
    let traced = fixture.get("trace_rawTransaction", json!([raw, ["trace", "stateDiff"]]));
    assert_eq!(traced["trace"][0]["action"]["from"], ALICE);
    assert_eq!(traced["stateDiff"][&fixture.swap]["storage"][word(0)]["*"]["to"], word(9));
    let fee = u64_of(traced["trace"][0]["result"]["gasUsed"].as_str().unwrap());
    assert!(fee > 21_000);
    assert_eq!(fixture.get("eth_getStorageAt", json!([fixture.swap.clone(), "0x0", "latest"])), word(0));
    let sent = fixture.get("eth_sendRawTransaction", json!([raw]));
    fixture.get("evm_mine", json!([]));
    let replayed = fixture.get("trace_replayTransaction", json!([sent, ["trace", "stateDiff"]]));
    assert_eq!(traced, replayed);
}

#[test]
fn traced_calls_that_cannot_run_are_refused() {
    let mut fixture = CallsFixture::new();
    let plain = json!({"to": BOB});
    let poor = json!({"from": NOBODY, "to": BOB, "value": "0x1"});
    let slots: String = (0..200_000).map(|slot| format!("{slot:08x}")).collect();
    let long = json!({"to": BOB, "data": format!("0x{slots}")});
    for (code, method, params) in [
        (-38014, "debug_traceCall", json!([poor])),
        (-38014, "trace_call", json!([poor, ["trace"]])),
        (-38013, "debug_traceCall", json!([{"to": BOB, "gas": "0x1"}])),
        (-32602, "debug_traceCall", json!([plain, "latest", {"tracer": "noTracer"}])),
        (-32602, "debug_traceCall", json!([plain, "latest", {"txIndex": "0x1"}])),
        (-32602, "debug_traceCall", json!([plain, "latest", {"stateOverrides": 7}])),
        (
            -32602,
            "debug_traceCall",
            json!([plain, "latest", {"stateOverrides": {BOB: {"code": long["data"]}}}]),
        ),
        (-32602, "debug_traceCall", json!([plain, "latest", {"blockOverrides": {"blobBaseFee": "0x1"}}])),
        (-32602, "debug_traceCall", json!([[BOB]])),
        (-32602, "debug_traceCall", json!([plain, "0x9999"])),
        (-32602, "debug_traceCallMany", json!([[{"transactions": [long]}]])),
        (-32602, "debug_traceCallMany", json!([[{"transactions": plain}]])),
        (-32602, "debug_traceCallMany", json!([[[[plain]]]])),
        (-32602, "debug_traceCallMany", json!([[{"transactions": [plain]}], {"transactionIndex": 2}])),
        (-32602, "trace_call", json!([plain, ["everything"]])),
        (-32602, "trace_call", json!([plain, "trace"])),
        (-32602, "trace_call", json!([plain, ["vmtrace"]])),
        (-32602, "trace_callMany", json!([[[plain, ["vmtrace"]]]])),
        (-32602, "trace_callMany", json!([[plain]])),
        (-32602, "trace_callMany", json!([[[long, ["trace"]]]])),
        (-32602, "trace_rawTransaction", json!(["0x00", ["trace"]])),
        (-32602, "trace_replayTransaction", json!([word(1), ["what"]])),
    ] {
        let shown: String = params.to_string().chars().take(120).collect();
        let answer = fixture.base.dev.ask(method, params);
        assert_eq!(answer["error"]["code"], code, "{method} {shown}: {answer}");
    }
    // The calls of one request have together the gas of one call.
    let endless = json!({"tracer": CALLS, "stateOverrides": {NOBODY: {"code": "0x5b600056"}}});
    let bundles = json!([{"transactions": vec![json!({"to": NOBODY, "gas": "0x400000"}); 4]}]);
    let (code, text) = fixture.base.dev.refused("debug_traceCallMany", json!([bundles, "latest", endless]));
    assert_eq!((code, text.contains("10000000 gas")), (-38026, true), "{text}");
    // A trace that is too large for an answer.
    let steps = json!({"tracer": "structLogger", "enableMemory": true, "stateOverrides": {NOBODY: {"code": "0x5b600056"}}});
    let (code, text) = fixture.base.dev.refused("debug_traceCall", json!([{"to": NOBODY}, "latest", steps]));
    assert!(code == -32005 || text.contains("bytes"), "{code} {text}");
}

/// Empty calls are short, and take much memory once they are read.
#[test]
fn a_list_of_very_many_calls_is_refused_unread() {
    let mut fixture = CallsFixture::new();
    let many = vec![json!({}); 40_000];
    let typed: Vec<Value> = many.iter().map(|call| json!([call, []])).collect();
    for (method, params) in [
        ("eth_simulateV1", json!([{"blockStateCalls": [{"calls": many}]}])),
        ("debug_traceCallMany", json!([[{"transactions": many}]])),
        ("trace_callMany", json!([typed])),
    ] {
        let (code, text) = fixture.base.dev.refused(method, params);
        assert_eq!((code, text.contains("more than 32768 objects")), (-32602, true), "{method}: {text}");
    }
}
