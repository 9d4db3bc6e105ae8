//! Estimates, traces, logs and filters on a development chain, as a contract developer uses them.

use crate::support;

use rootlight::dev::DevConfig;
use serde_json::{Value, json};
use support::dev::DevClient;
use support::u64_of;

/// Stores its first argument in slot 0, emits a log with topic 0x11, and returns 42.
pub(super) const STORE: &str = "5f355f5560115f5fa1602a5f5260205ff3";

pub(super) struct TracesFixture {
    pub(super) dev: DevClient,
    pub(super) from: Value,
}

impl TracesFixture {
    pub(super) fn new() -> Self {
        let mut dev = DevClient::new(DevConfig::reference());
        let from = dev.get("eth_accounts", json!([]))[0].clone();
        Self { dev, from }
    }

    /// Sends a transaction and returns its receipt.
    pub(super) fn send(&mut self, mut call: Value) -> Value {
        call["from"] = self.from.clone();
        let hash = self.dev.get("eth_sendTransaction", json!([call]));
        self.dev.get("eth_getTransactionReceipt", json!([hash]))
    }

    /// Deploys a contract with this code of at most 255 bytes.
    pub(super) fn deploy(&mut self, runtime: &str) -> String {
        let init = format!("0x60{:02x}8060095f395ff3{runtime}", runtime.len() / 2);
        let gas = self.dev.get("eth_estimateGas", json!([{ "from": self.from, "data": init }]));
        let receipt = self.send(json!({ "data": init, "gas": gas }));
        assert_eq!(receipt["status"], "0x1", "{receipt}");
        let address = receipt["contractAddress"].as_str().unwrap().to_owned();
        assert_eq!(self.dev.get("eth_getCode", json!([address, "latest"])), format!("0x{runtime}"));
        address
    }

    /// Deploys a contract that calls another one with 32 bytes and stops.
    pub(super) fn caller_of(&mut self, callee: &str) -> String {
        self.deploy(&format!("60205f60205f5f73{}5af100", &callee[2..]))
    }
}

pub(super) fn word(number: u64) -> String {
    format!("0x{number:064x}")
}

#[test]
fn an_estimate_is_the_least_gas_that_suffices() {
    let mut fixture = TracesFixture::new();
    let store = fixture.deploy(STORE);
    let caller = fixture.caller_of(&store);
    for (to, data) in [(&store, word(7)), (&caller, "0x".to_owned()), (&store, word(0))] {
        let call = json!({ "from": fixture.from, "to": to, "data": data });
        let gas = fixture.dev.number("eth_estimateGas", json!([call]));
        let sent = |fixture: &mut TracesFixture, gas: u64| {
            let snapshot = fixture.dev.get("evm_snapshot", json!([]));
            let gas = format!("{gas:#x}");
            let call = json!({ "from": fixture.from, "to": to, "data": data, "gas": gas });
            // The failure is reported by eth_sendTransaction, as in the reference node.
            let answer = fixture.dev.ask("eth_sendTransaction", json!([call]));
            let block = fixture.dev.get("eth_getBlockByNumber", json!(["latest", false]));
            let receipt = fixture.dev.get("eth_getTransactionReceipt", json!([block["transactions"][0]]));
            assert_eq!(receipt["status"] == "0x0", answer.get("error").is_some(), "{answer}");
            fixture.dev.get("evm_revert", json!([snapshot]));
            receipt["status"].clone()
        };
        if to == &store {
            assert_eq!(sent(&mut fixture, gas), "0x1");
            assert_eq!(sent(&mut fixture, gas * 99 / 100), "0x0", "{to} {data} {gas}");
        } else {
            // This contract ignores a failure of the inner call; with the estimate the inner call does not fail.
            let receipt = fixture.send(json!({ "to": to, "data": data, "gas": format!("{gas:#x}") }));
            assert_eq!(receipt["logs"].as_array().unwrap().len(), 1);
        }
    }
    let poor = json!({ "from": fixture.from, "to": store, "value": "0xffffffffffffffffffffffffffffffff" });
    let (code, text) = fixture.dev.refused("eth_estimateGas", json!([poor]));
    assert_eq!((code, text.as_str()), (-32000, "insufficient funds for transfer"));
    // Without a sender no balance is checked: the caller may not know yet who will pay.
    let unsigned = json!({ "to": store, "value": poor["value"] });
    let zero = json!({ "from": fixture.from, "to": store });
    let gas = fixture.dev.get("eth_estimateGas", json!([zero]));
    assert_eq!(fixture.dev.get("eth_estimateGas", json!([unsigned])), gas);
    // JUMPDEST PUSH0 JUMP: the gas limit of the pending block is the highest possible.
    let endless = fixture.deploy("5b5f56");
    let limit = fixture.dev.get("eth_getBlockByNumber", json!(["pending", false]))["gasLimit"].clone();
    let (code, text) =
        fixture.dev.refused("eth_estimateGas", json!([{ "from": fixture.from, "to": endless }]));
    let limit = u64_of(limit.as_str().unwrap());
    assert_eq!((code, text), (-32000, format!("gas required exceeds allowance ({limit})")));
}

#[test]
fn traces_of_a_sent_transaction() {
    let mut fixture = TracesFixture::new();
    let store = fixture.deploy(STORE);
    let caller = fixture.caller_of(&store);
    let receipt = fixture.send(json!({ "to": caller, "gas": "0x30d40" }));
    let hash = &receipt["transactionHash"];
    let traces = fixture.dev.get("trace_transaction", json!([hash]));
    assert_eq!(traces.as_array().unwrap().len(), 2);
    assert_eq!(traces[0]["action"]["to"], caller);
    assert_eq!(traces[0]["result"]["gasUsed"], receipt["gasUsed"]);
    assert_eq!((&traces[1]["action"]["from"], &traces[1]["action"]["to"]), (&json!(caller), &json!(store)));
    assert_eq!(traces[1]["action"]["input"], word(0));
    assert_eq!(traces[1]["result"]["output"], word(42));
    assert_eq!(traces[1]["traceAddress"], json!([0]));
    assert_eq!(fixture.dev.get("trace_get", json!([hash, ["0x1"]])), traces[1]);

    let options = json!({ "tracer": "callTracer", "tracerConfig": { "withLog": true } });
    let tree = fixture.dev.get("debug_traceTransaction", json!([hash, options]));
    assert_eq!((&tree["type"], &tree["calls"][0]["output"]), (&json!("CALL"), &json!(word(42))));
    assert_eq!(tree["calls"][0]["logs"][0]["address"], store);
    assert!(tree.get("logs").is_none());
    let top = json!({ "tracer": "callTracer", "tracerConfig": { "onlyTopCall": true } });
    assert!(fixture.dev.get("debug_traceTransaction", json!([hash, top])).get("calls").is_none());

    let run = fixture.dev.get("debug_traceTransaction", json!([hash]));
    let steps = run["structLogs"].as_array().unwrap();
    assert_eq!((&steps[0]["op"], &steps[0]["depth"]), (&json!("PUSH1"), &json!(0)));
    assert!(steps.iter().any(|step| step["op"] == "SSTORE" && step["depth"] == 1));
    let bare = json!({ "disableMemory": true, "disableStack": true, "disableStorage": true });
    let bare = fixture.dev.get("debug_traceTransaction", json!([hash, bare]));
    assert!(bare["structLogs"][0].get("memory").is_none() && bare["structLogs"][0].get("stack").is_none());

    let block = fixture.dev.get("trace_block", json!([receipt["blockNumber"]]));
    assert_eq!(block.as_array().unwrap().len(), 3, "with REMASC's: {block}");
    let filter = json!({ "fromBlock": "earliest", "toAddress": caller });
    assert_eq!(fixture.dev.get("trace_filter", json!([filter])), traces);
}

#[test]
fn the_pending_block_can_be_traced() {
    let mut fixture = TracesFixture::new();
    let store = fixture.deploy(STORE);
    fixture.dev.get("evm_setAutomine", json!([false]));
    let call = json!({ "from": fixture.from, "to": store, "data": word(3), "gas": "0x30d40" });
    let hash = fixture.dev.get("eth_sendTransaction", json!([call]));
    let traces = fixture.dev.get("trace_block", json!(["pending"]));
    assert_eq!((&traces[0]["transactionHash"], &traces[0]["result"]["output"]), (&hash, &json!(word(42))));
    let options = json!({ "tracer": "callTracer" });
    let trees = fixture.dev.get("debug_traceBlockByNumber", json!(["pending", options]));
    assert_eq!(trees[0]["txHash"], hash);
    assert_eq!(fixture.dev.get("trace_transaction", json!([hash])), Value::Null, "not mined yet");
}

#[test]
fn filters_follow_the_chain_and_its_reverts() {
    let mut fixture = TracesFixture::new();
    let store = fixture.deploy(STORE);
    let logs = fixture.dev.get("eth_newFilter", json!([{ "address": store, "topics": [word(0x11)] }]));
    let blocks = fixture.dev.get("eth_newBlockFilter", json!([]));
    let pending = fixture.dev.get("eth_newPendingTransactionFilter", json!([]));
    let poll = |fixture: &mut TracesFixture, id: &Value| fixture.dev.get("eth_getFilterChanges", json!([id]));
    assert_eq!(poll(&mut fixture, &logs), json!([]));
    let snapshot = fixture.dev.get("evm_snapshot", json!([]));
    let receipt = fixture.send(json!({ "to": store, "data": word(1), "gas": "0x30d40" }));
    let found = poll(&mut fixture, &logs);
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(
        (&found[0]["transactionHash"], &found[0]["removed"]),
        (&receipt["transactionHash"], &json!(false))
    );
    assert_eq!(poll(&mut fixture, &blocks), json!([receipt["blockHash"]]));
    assert_eq!(poll(&mut fixture, &pending), json!([receipt["transactionHash"]]));
    assert_eq!(poll(&mut fixture, &logs), json!([]));

    fixture.dev.get("evm_revert", json!([snapshot]));
    let taken_back = poll(&mut fixture, &logs);
    assert_eq!(taken_back[0]["removed"], true, "{taken_back}");
    let again = fixture.send(json!({ "to": store, "data": word(2), "gas": "0x30d40" }));
    let found = poll(&mut fixture, &logs);
    assert_eq!(found.as_array().unwrap().len(), 1);
    assert_eq!(
        (&found[0]["transactionHash"], &found[0]["removed"]),
        (&again["transactionHash"], &json!(false))
    );
    let all = fixture.dev.get("eth_getFilterLogs", json!([logs]));
    assert_eq!(all.as_array().unwrap().len(), 1);
    assert_eq!(fixture.dev.get("eth_uninstallFilter", json!([logs])), true);
    assert_eq!(fixture.dev.refused("eth_getFilterChanges", json!([logs])).0, -32000);
}

/// Endless loops and runs that use ever more memory end at the gas cap or at the time limit.
#[test]
fn endless_runs_are_interrupted() {
    let mut fixture = TracesFixture::new();
    // JUMPDEST PUSH0 JUMP, and a loop that hashes ever more memory.
    let endless = fixture.deploy("5b5f56");
    let bomb = fixture.deploy("5b595f20505f59525f56");
    for to in [&endless, &bomb] {
        let (code, text) = fixture.dev.refused("eth_call", json!([{ "to": to }, "latest"]));
        assert_eq!(code, -32015, "{text}");
        for (method, params) in
            [("eth_call", json!([{ "to": to }, "latest"])), ("eth_estimateGas", json!([{ "to": to }]))]
        {
            let message =
                json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
            let message = fixture.dev.client.open(message.as_bytes());
            let asked = std::cell::Cell::new(0);
            let interrupt = || asked.replace(asked.get() + 1) > 3;
            let reply = message.read(&*fixture.dev.client.snapshot(), fixture.dev.now, &interrupt);
            let reply = reply.into_text().unwrap();
            assert!(reply.contains("-32011"), "{method}: {reply}");
        }
    }
}
