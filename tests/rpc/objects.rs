//! Arrays where an object is meant: a parser that takes the values of an array for the members of an object would read
//! other questions than the caller's rules saw.

use crate::support;

use std::sync::Arc;

use rootlight::engine::HostInput;
use rootlight::rpc::methods;
use rootlight::rpc::{Caller, MessageProgress, Method, Param};
use rootlight::types::B256;
use serde_json::{Value, json};
use support::dev::DevClient;

const BRIDGE: &str = "0x0000000000000000000000000000000001000006";

/// Kinds of parameters that are objects, or may be.
const OBJECTS: [&str; 13] = [
    "BLOCK_OVERRIDE",
    "CELLS",
    "SIMULATION",
    "STATE_CONTEXT",
    "TRACE_CALL_OPTIONS",
    "BLOCK",
    "CALL",
    "TRANSACTION",
    "LOG_FILTER",
    "TRACE_FILTER",
    "OVERRIDE",
    "TRACE_OPTIONS",
    "MINE_OPTIONS",
];

fn ask(dev: &mut DevClient, method: &str, params: &Value) -> Value {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
    let caller = Arc::new(Caller::default().with_subscriptions(100));
    let message = MessageProgress::read_from(&dev.client.dispatcher(), caller, message.as_bytes());
    let host_input = HostInput { now: dev.now, entropy: B256::repeat_byte(9) };
    let answer = dev.client.answer(message, host_input, &|| false).into_text().unwrap();
    serde_json::from_str(&answer).unwrap()
}

/// A value that the method accepts.
fn good(param: &Param, genesis: &Value) -> Value {
    match param.kind {
        "BLOCK" => json!("0x0"),
        "CALL" | "TRANSACTION" => json!({"from": BRIDGE, "to": BRIDGE}),
        "LOG_FILTER" | "TRACE_FILTER" | "OVERRIDE" | "TRACE_OPTIONS" | "MINE_OPTIONS"
        | "TRACE_CALL_OPTIONS" | "BLOCK_OVERRIDE" => {
            json!({})
        }
        "CELLS" => json!({BRIDGE: ["0x0"]}),
        "SIMULATION" => json!({"blockStateCalls": [{}]}),
        "BUNDLES" | "TRACED_CALLS" => json!([]),
        "STATE_CONTEXT" => json!("latest"),
        "ADDRESS" => json!(BRIDGE),
        "HASH" => genesis.clone(),
        kind if kind.starts_with("newHeads") => json!("logs"),
        kind if kind.starts_with("array of one") => json!(["0x0"]),
        kind if kind.starts_with("array") => json!([]),
        kind if kind.starts_with("DATA") => json!("0x00"),
        "boolean" | "BOOLEAN" => json!(false),
        _ => json!("0x1"),
    }
}

fn arrays(kind: &str) -> Vec<Value> {
    let mut all = vec![
        json!([]),
        json!([null]),
        json!(["0x0"]),
        json!([BRIDGE]),
        json!([BRIDGE, BRIDGE]),
        json!(["0x0", "latest", null, BRIDGE]),
        json!([{}]),
        json!([[]]),
    ];
    if kind == "OVERRIDE" {
        all.extend([
            json!({BRIDGE: []}),
            json!({BRIDGE: ["0x1"]}),
            json!({BRIDGE: ["0x1", null, "0x00"]}),
            json!({BRIDGE: {"state": [["0x0", "0x1"]]}}),
            json!({BRIDGE: {"stateDiff": []}}),
        ]);
    }
    if kind == "BLOCK_OVERRIDE" {
        all.push(json!({"number": ["0x1"]}));
    }
    if kind == "SIMULATION" {
        all.extend([
            json!({"blockStateCalls": [[]]}),
            json!({"blockStateCalls": [{"calls": [[BRIDGE, BRIDGE]]}]}),
            json!({"blockStateCalls": [{"stateOverrides": []}]}),
            json!({"blockStateCalls": [{"stateOverrides": {BRIDGE: ["0x1"]}}]}),
            json!({"blockStateCalls": [{"blockOverrides": ["0x1"]}]}),
        ]);
    }
    if kind == "TRACE_CALL_OPTIONS" {
        all.extend([
            json!({"stateOverrides": []}),
            json!({"stateOverrides": {BRIDGE: ["0x1"]}}),
            json!({"blockOverrides": ["0x1"]}),
        ]);
    }
    if kind == "STATE_CONTEXT" {
        all.push(json!({"blockNumber": ["latest"]}));
    }
    if kind == "TRACE_OPTIONS" {
        all.push(json!({"tracer": "callTracer", "tracerConfig": [true]}));
    }
    all
}

fn with(row: &Method, position: usize, value: &Value, genesis: &Value) -> Value {
    let count = row.required().max(position + 1);
    let param = |at: usize| if at == position { value.clone() } else { good(&row.params[at], genesis) };
    (0..count).map(param).collect::<Vec<_>>().into()
}

#[test]
fn an_array_where_an_object_is_meant_is_refused_by_every_method() {
    let mut dev = DevClient::instant();
    let genesis = dev.get("eth_getBlockByNumber", json!(["0x0", false]))["hash"].clone();
    let mut refused = 0;
    for row in methods() {
        for (position, param) in row.params.iter().enumerate().filter(|(_, p)| OBJECTS.contains(&p.kind)) {
            for value in arrays(param.kind) {
                let params = with(row, position, &value, &genesis);
                for name in std::iter::once(&row.name).chain(row.aliases) {
                    let answer = ask(&mut dev, name, &params);
                    assert_eq!(answer["error"]["code"], -32602, "{name} {params}: {answer}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 300, "{refused}");
}
