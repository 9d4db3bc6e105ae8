//! The tracers of `debug_trace*` on a development chain: what they show, and their options. `tests/vectors/tracers.json`
//! has the traces of the same transactions by anvil, without gas, balances and nonces, with names for addresses.

use serde_json::{Map, Value, json};

use crate::dev_traces::{STORE, TracesFixture, word};

/// Calls [`STORE`] with gas 0xffff and no data.
const CALLER: [&str; 2] = ["5f5f5f5f5f73", "61fffff100"];
/// Reverts with one word, 42.
const REVERTER: &str = "602a5f5260205ffd";
/// Creates a contract without code.
const CREATOR: &str = "625f5ff35f526003601d5ff000";
/// Destroys itself in favour of its caller.
const ENDING: &str = "33ff";

/// The contracts of the recording, and what is sent to them.
struct Recorded {
    fixture: TracesFixture,
    labels: Vec<(String, &'static str)>,
}

impl Recorded {
    fn new() -> Self {
        let mut fixture = TracesFixture::new();
        let store = fixture.deploy(STORE);
        let caller = fixture.deploy(&format!("{}{}{}", CALLER[0], &store[2..], CALLER[1]));
        let contracts = [REVERTER, CREATOR, ENDING].map(|code| fixture.deploy(code));
        let sender = fixture.from.as_str().unwrap().to_owned();
        let labels = [sender, store, caller].into_iter().chain(contracts);
        let names = ["SENDER", "STORE", "CALLER", "REVERTER", "CREATOR", "ENDING"];
        Self { fixture, labels: labels.map(|address| address[2..].to_lowercase()).zip(names).collect() }
    }

    fn address(&self, label: &str) -> String {
        let found = self.labels.iter().find(|(_, name)| *name == label);
        format!("0x{}", found.unwrap().0)
    }

    /// Sends a transaction to a contract or an address, and returns its hash.
    fn send(&mut self, to: &str, data: &str, value: &str) -> Value {
        let to = if to.starts_with("0x") { to.to_owned() } else { self.address(to) };
        let call =
            json!({ "from": self.fixture.from, "to": to, "data": data, "value": value, "gas": "0x30d40" });
        self.fixture.dev.ask("eth_sendTransaction", json!([call]));
        let block = self.fixture.dev.get("eth_getBlockByNumber", json!(["latest", false]));
        block["transactions"][0].clone()
    }

    fn trace(&mut self, hash: &Value, options: &Value) -> Value {
        self.fixture.dev.get("debug_traceTransaction", json!([hash, options]))
    }

    /// The text with names for addresses.
    fn named(&self, value: &Value, created: &str) -> Value {
        let mut text = value.to_string().to_lowercase();
        let created = created.get(2..).map(|address| (address.to_lowercase(), "CREATED"));
        for (address, name) in self.labels.iter().cloned().chain(created) {
            text = text.replace(&address, name).replace(address.trim_start_matches('0'), name);
        }
        serde_json::from_str(&text).unwrap()
    }
}

/// Fields that depend on gas, and empty ones that anvil shows and geth does not.
fn reduce(value: &mut Value) {
    const LEFT_OUT: [&str; 9] =
        ["gas", "gasused", "gascost", "codehash", "balance", "nonce", "refund", "position", "index"];
    match value {
        Value::Array(items) => items.iter_mut().for_each(reduce),
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let lower = name.to_lowercase();
                !(LEFT_OUT.contains(&lower.as_str()) || lower == "input" && value == "0x")
            });
            fields.values_mut().for_each(reduce);
        }
        _ => {}
    }
}

fn drop_empty(accounts: &mut Value) {
    accounts.as_object_mut().unwrap().retain(|_, account| !account.as_object().unwrap().is_empty());
}

#[test]
fn traces_of_the_same_calls_equal_those_of_anvil() {
    let recording: Value = serde_json::from_str(include_str!("../vectors/tracers.json")).unwrap();
    let mut chain = Recorded::new();
    let steps = [
        ("store", "STORE", word(7), "0x0"),
        ("store again", "STORE", word(8), "0x0"),
        ("inner call", "CALLER", "0x".into(), "0x0"),
        ("revert", "REVERTER", "0x11223344".into(), "0x0"),
        ("creation", "CREATOR", "0x".into(), "0x0"),
        ("destruction", "ENDING", "0x".into(), "0x0"),
        ("transfer", "0x7777777777777777777777777777777777777777", "0x".into(), "0x5"),
        ("clear", "STORE", word(0), "0x0"),
    ];
    for ((name, to, data, value), recorded) in
        steps.into_iter().zip(recording["transactions"].as_array().unwrap())
    {
        assert_eq!(recorded["name"], name);
        let hash = chain.send(to, &data, value);
        let created = chain.trace(&hash, &json!({ "tracer": "callTracer" }))["calls"][0]["to"].clone();
        let created = if name == "creation" { created.as_str().unwrap().to_owned() } else { String::new() };
        for (tracer, theirs) in recorded["traces"].as_object().unwrap() {
            let options = match tracer.as_str() {
                "diff" => json!({ "tracer": "prestateTracer", "tracerConfig": { "diffMode": true } }),
                "struct" => {
                    json!({ "tracer": "structLogger", "enableMemory": true, "enableReturnData": true })
                }
                "callTracer" => json!({ "tracer": tracer, "tracerConfig": { "withLog": true } }),
                _ => json!({ "tracer": tracer }),
            };
            let mut ours = chain.trace(&hash, &options);
            reduce(&mut ours);
            match tracer.as_str() {
                "prestateTracer" => drop_empty(&mut ours),
                "diff" => drop_empty(&mut ours["pre"]),
                _ => {}
            }
            let mut theirs: Value = serde_json::from_str(&theirs.to_string().to_lowercase()).unwrap();
            let ours = serde_json::from_str(&chain.named(&ours, &created).to_string().to_lowercase());
            let ours: Value = ours.unwrap();
            reduce(&mut theirs);
            assert_eq!(ours, theirs, "{name}: {tracer}");
        }
    }
}

#[test]
fn logs_have_their_position_among_the_inner_calls() {
    let mut fixture = TracesFixture::new();
    let store = fixture.deploy(STORE);
    // LOG0, a call of the native contract 2, a call of the other contract, LOG0, the same call, LOG0.
    let call = |to: &str| format!("5f5f5f5f5f73{to}5af150");
    let (native, other) = (format!("{:040x}", 2), &store[2..]);
    let code = format!("5f5fa0{}{}5f5fa0{}5f5fa000", call(&native), call(other), call(other));
    let contract = fixture.deploy(&code);
    let hash = fixture.send(json!({ "to": contract, "gas": "0x30d40" }))["transactionHash"].clone();
    let options = json!({ "tracer": "callTracer", "tracerConfig": { "withLog": true } });
    let trace = fixture.dev.get("debug_traceTransaction", json!([hash, options]));
    let logs = trace["logs"].as_array().unwrap();
    let positions: Vec<_> = logs.iter().map(|log| (log["position"].clone(), log["index"].clone())).collect();
    assert_eq!(json!(positions), json!([["0x0", 0], ["0x1", 2], ["0x2", 4]]), "{trace}");
    assert_eq!(trace["calls"][1]["logs"][0]["position"], "0x0");
}

#[test]
fn the_flat_tracer_shows_reverts_with_their_output_and_errors_in_either_form() {
    let mut chain = Recorded::new();
    let hash = chain.send("REVERTER", "0x", "0x0");
    let flat = |config: Value| json!({ "tracer": "flatCallTracer", "tracerConfig": config });
    let trace = chain.trace(&hash, &flat(json!({})));
    let receipt = chain.fixture.dev.get("eth_getTransactionReceipt", json!([hash]));
    assert_eq!(
        trace,
        json!([{
            "action": {
                "callType": "call",
                "from": chain.fixture.from,
                "gas": "0x30d40",
                "input": "0x",
                "to": chain.address("REVERTER"),
                "value": "0x0",
            },
            "blockHash": receipt["blockHash"],
            "blockNumber": u64::from_str_radix(&receipt["blockNumber"].as_str().unwrap()[2..], 16).unwrap(),
            "error": "execution reverted",
            "result": { "gasUsed": receipt["gasUsed"], "output": word(42) },
            "subtraces": 0,
            "traceAddress": [],
            "transactionHash": hash,
            "transactionPosition": 0,
            "type": "call",
        }])
    );
    let parity = chain.trace(&hash, &flat(json!({ "convertParityErrors": true })));
    assert_eq!(parity[0]["error"], "Reverted");

    let creation = chain.send("CREATOR", "0x", "0x0");
    let trace = chain.trace(&creation, &flat(json!({})));
    assert_eq!((&trace[0]["subtraces"], &trace[1]["traceAddress"]), (&json!(1), &json!([0])));
    assert_eq!(
        (&trace[1]["type"], &trace[1]["action"]["creationMethod"]),
        (&json!("create"), &json!("create"))
    );
    let ending = chain.send("ENDING", "0x", "0x0");
    let trace = chain.trace(&ending, &flat(json!({})));
    assert_eq!((&trace[1]["type"], &trace[1].get("result")), (&json!("suicide"), &None));
    assert_eq!(trace[1]["action"]["refundAddress"], chain.fixture.from);
}

/// One contract calls native contract 2, another one the Bridge.
#[test]
fn calls_of_native_contracts_are_shown_on_request() {
    let mut fixture = TracesFixture::new();
    // The selector is in memory, as the last 4 bytes of a word.
    let contract = fixture.deploy("63aabbccdd5f525f5f6004601c5f60025af100");
    let longer = fixture.deploy("63aabbccdd5f525f5f6004601c5f63010000065af100");
    let hash = fixture.send(json!({ "to": contract, "gas": "0x30d40" }))["transactionHash"].clone();
    let mut flat = |natives: bool| {
        let options =
            json!({ "tracer": "flatCallTracer", "tracerConfig": { "includePrecompiles": natives } });
        fixture.dev.get("debug_traceTransaction", json!([hash, options])).as_array().unwrap().len()
    };
    assert_eq!((flat(false), flat(true)), (1, 2));
    let hash = fixture.send(json!({ "to": longer, "gas": "0x30d40" }))["transactionHash"].clone();
    let counts = fixture.dev.get("debug_traceTransaction", json!([hash, { "tracer": "4byteTracer" }]));
    assert_eq!(counts, json!({ "0xaabbccdd-0": 1 }), "the Bridge has methods");
}

#[test]
fn the_validation_tracer_shows_what_the_code_of_each_call_does() {
    let mut fixture = TracesFixture::new();
    let store = fixture.deploy(STORE);
    // SLOAD 1 twice, EXTCODESIZE with and without ISZERO, KECCAK256 of 4 zero bytes, GAS not before a call.
    let probe = fixture.deploy(&format!("60015460015473{}3b1560045f205a00", &store[2..]));
    let hash = fixture.send(json!({ "to": probe, "gas": "0x30d40" }))["transactionHash"].clone();
    let options = json!({ "tracer": "erc7562Tracer", "tracerConfig": { "withLog": true } });
    let trace = fixture.dev.get("debug_traceTransaction", json!([hash, options]));
    assert_eq!(trace["accessedSlots"]["reads"], json!({ word(1): [word(0)] }));
    assert_eq!(trace["accessedSlots"]["writes"], json!({}));
    assert_eq!(trace["extCodeAccessInfo"], json!([]), "only a test whether there is code");
    assert_eq!(trace["contractSize"], json!({ &store: { "contractSize": STORE.len() / 2, "opcode": 0x3b } }));
    assert_eq!(trace["usedOpcodes"], json!({ "0x0": 1, "0x20": 1, "0x3b": 1, "0x54": 2, "0x5a": 1 }));
    assert_eq!(trace["keccak"], json!(["0x00000000"]));
    assert_eq!((&trace["type"], &trace["outOfGas"]), (&json!("CALL"), &json!(false)));

    // EXTCODEHASH is an access; the call with gas 10 runs out of gas.
    let poor = fixture.deploy(&format!("73{0}3f505f8080808073{0}600af100", &store[2..]));
    let hash = fixture.send(json!({ "to": poor, "gas": "0x30d40" }))["transactionHash"].clone();
    let ignoring =
        json!({ "tracer": "erc7562Tracer", "tracerConfig": { "ignoredOpcodes": ["0x3f", "0x5f"] } });
    let trace = fixture.dev.get("debug_traceTransaction", json!([hash, ignoring]));
    assert_eq!(trace["extCodeAccessInfo"], json!([store]));
    assert_eq!((trace["usedOpcodes"].get("0x3f"), &trace["usedOpcodes"]["0x73"]), (None, &json!(2)));
    assert_eq!((&trace["outOfGas"], &trace["calls"][0]["outOfGas"]), (&json!(false), &json!(true)));

    let caller = fixture.caller_of(&store);
    let hash = fixture.send(json!({ "to": caller, "gas": "0x30d40" }))["transactionHash"].clone();
    let trace = fixture.dev.get("debug_traceTransaction", json!([hash, options]));
    let inner = &trace["calls"][0];
    assert_eq!(inner["accessedSlots"]["writes"], json!({ word(0): 1 }));
    assert_eq!((&inner["logs"][0]["address"], inner.get("keccak")), (&json!(store), None));
    assert_eq!(trace["usedOpcodes"].get("0x5a"), None, "GAS before a call");
}

#[test]
fn struct_logs_end_at_their_limit_and_leave_out_what_is_not_asked_for() {
    let mut chain = Recorded::new();
    let hash = chain.send("CALLER", "0x", "0x0");
    let logs = |chain: &mut Recorded, mut options: Value| {
        options["tracer"] = json!("structLogger");
        chain.trace(&hash, &options)["structLogs"].as_array().unwrap().clone()
    };
    let all = logs(&mut chain, json!({}));
    assert!(all.iter().all(|step| step.get("memory").is_none() && step.get("returnData").is_none()));
    assert!(all.iter().all(|step| step.get("stack").is_some()));
    let bare = logs(&mut chain, json!({ "disableStack": true, "disableStorage": true }));
    assert!(bare.iter().all(|step| step.get("stack").is_none() && step.get("storage").is_none()));
    let full = logs(&mut chain, json!({ "enableMemory": true, "enableReturnData": true }));
    assert!(full.iter().any(|step| step.get("memory").is_some()));
    assert_eq!(full.last().unwrap()["returnData"], word(42));
    assert_eq!(logs(&mut chain, json!({ "enableMemory": true, "disableMemory": true })), all);
    let size = |steps: &[Value]| steps.iter().map(|step| step.to_string().len()).sum::<usize>();
    let limit = size(&all[..5]);
    let limited = logs(&mut chain, json!({ "limit": limit }));
    assert_eq!(limited, all[..6], "the entry with which the limit is exceeded is the last");
    assert_eq!(logs(&mut chain, json!({ "limit": 0 })), all);
    let refunds = chain.send("STORE", &word(1), "0x0");
    let cleared = chain.send("STORE", &word(0), "0x0");
    let options = json!({ "tracer": "structLogger" });
    assert!(
        chain.trace(&refunds, &options)["structLogs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s.get("refund").is_none())
    );
    assert_eq!(
        chain.trace(&cleared, &options)["structLogs"].as_array().unwrap().last().unwrap()["refund"],
        15_000
    );
}

#[test]
fn options_of_the_wrong_type_are_refused_by_name() {
    let mut chain = Recorded::new();
    let hash = chain.send("STORE", &word(1), "0x0");
    let config = |tracer: &str, name: &str, value: Value| json!({ "tracer": tracer, "tracerConfig": Map::from_iter([(name.to_owned(), value)]) });
    let cases = [
        (config("callTracer", "withLog", json!(1)), "'withLog'"),
        (config("callTracer", "onlyTopCall", json!("yes")), "'onlyTopCall'"),
        (config("prestateTracer", "diffMode", json!([])), "'diffMode'"),
        (config("flatCallTracer", "includePrecompiles", json!({})), "'includePrecompiles'"),
        (config("erc7562Tracer", "ignoredOpcodes", json!(["5b"])), "'ignoredOpcodes'"),
        (config("erc7562Tracer", "ignoredOpcodes", json!(vec!["0x5b"; 257])), "'ignoredOpcodes'"),
        (config("muxTracer", "callTracer", json!(true)), "'callTracer'"),
        (config("muxTracer", "callTracer", json!({ "withLog": 2 })), "'withLog'"),
        (json!({ "disableStack": 1 }), "'disableStack'"),
        (json!({ "tracer": "structLogger", "limit": -1 }), "'limit'"),
        (json!({ "tracer": "structLogger", "limit": "1" }), "'limit'"),
        (json!({ "tracer": 5 }), "'tracer'"),
        (json!({ "tracer": "callTracer", "tracerConfig": [] }), "'tracerConfig'"),
        (
            json!({ "tracer": "prestateTracer", "tracerConfig": { "diffMode": true, "includeEmpty": true } }),
            "'includeEmpty'",
        ),
    ];
    for (options, name) in cases {
        let (code, text) = chain.fixture.dev.refused("debug_traceTransaction", json!([hash, options]));
        assert_eq!(code, -32602, "{options}: {text}");
        assert!(text.contains(name), "{options}: {text}");
    }
    // The reference node takes flags as text.
    let text = config("callTracer", "onlyTopCall", json!("true"));
    assert!(chain.trace(&hash, &text).get("calls").is_none());
}

#[test]
fn unknown_nested_and_repeated_tracers_are_refused() {
    let mut chain = Recorded::new();
    let hash = chain.send("STORE", &word(1), "0x0");
    let mut refused = |options: Value| {
        let (code, text) = chain.fixture.dev.refused("debug_traceTransaction", json!([hash, options]));
        assert_eq!(code, -32602, "{text}");
        text
    };
    assert!(refused(json!({ "tracer": "bogus" })).contains("flatCallTracer"));
    assert!(refused(json!({ "tracer": "x".repeat(100_000) })).len() < 400);
    assert!(refused(json!({ "tracer": "{fault: function() {}}" })).contains("feature js-tracers"));
    let mux = |config: Value| json!({ "tracer": "muxTracer", "tracerConfig": config });
    assert!(refused(mux(json!({ "muxTracer": {} }))).contains("cannot contain"));
    assert!(refused(mux(json!({ "callTracer": {}, "CALLTRACER": {} }))).contains("callTracer"));
    assert!(refused(mux(json!({ "rskTracer": {}, "structLogger": {} }))).contains("structLogger"));
    assert_eq!(chain.trace(&hash, &mux(json!({}))), json!({}));
    assert_eq!(chain.trace(&hash, &json!({ "tracer": "noopTracer" })), json!({}));
}

/// A loop whose trace exceeds the limit is refused, also with several tracers, which share it.
#[test]
fn endless_loops_are_refused_or_shown_within_the_limit() {
    let mut fixture = TracesFixture::new();
    let endless = fixture.deploy("5b5f56");
    let call = json!({ "from": fixture.from, "to": endless, "gas": "0x4c4b40" });
    fixture.dev.ask("eth_sendTransaction", json!([call]));
    let block = fixture.dev.get("eth_getBlockByNumber", json!(["latest", false]));
    let hash = block["transactions"][0].clone();
    let (code, text) =
        fixture.dev.refused("debug_traceTransaction", json!([hash, { "tracer": "structLogger" }]));
    assert!(code == -32005 || text.contains("larger"), "{code} {text}");
    for (tracer, config) in [
        ("erc7562Tracer", json!({})),
        ("prestateTracer", json!({ "diffMode": true })),
        ("4byteTracer", json!({})),
        ("muxTracer", json!({ "callTracer": {}, "prestateTracer": {}, "4byteTracer": {} })),
    ] {
        let options = json!({ "tracer": tracer, "tracerConfig": config });
        let trace = fixture.dev.get("debug_traceTransaction", json!([hash, options]));
        assert!(trace.to_string().len() < 4_000, "{tracer}");
    }
    let limited = json!({ "tracer": "structLogger", "limit": 1_000 });
    let trace = fixture.dev.get("debug_traceTransaction", json!([hash, limited]));
    assert!(trace["structLogs"].to_string().len() < 1_500);
}
