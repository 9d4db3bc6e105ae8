//! The rules of a key over the whole table: each method with each of its names and each form of its parameters.

use crate::methods::methods;
use alloy_primitives::U256;
use data_encoding::HEXLOWER_PERMISSIVE;
use rootlight::rpc::{Method, Param, ParamSubject};
use rootlight::types::Transaction;
use serde_json::{Map, Value, json};

use super::inspect::{NotAllowed, inspect};
use super::rules::KeyRules;
use crate::service::read;

const SHOP: &str = "0x77045e71a7a2c50903d88e564cd72fab11e82051";
const OTHER: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

/// Kinds of parameters in which no account and no contract can be named.
const PLAIN: [&str; 19] = [
    "array of TRACE_TYPE",
    "BLOCK_OVERRIDE",
    // The block of traced calls.
    "STATE_CONTEXT",
    "BLOCK",
    "HASH",
    "BOOLEAN",
    "boolean",
    "string",
    "hex number",
    "IP address or range",
    "MINE_OPTIONS",
    "TRACE_OPTIONS",
    "array of HASH",
    "array of one QUANTITY",
    "hashes separated by spaces",
    "newHeads, logs, newPendingTransactions or syncing",
    // `evm_reset` takes and ignores it.
    "object",
    // The data to be signed refers to no account of the chain.
    "typed data object, or its JSON as a string",
    "QUANTITY or {timestamp, blocks}",
];

/// Parameters of bytes that are no transaction that is sent, by the name of the parameter.
const BYTES: [&str; 16] = [
    "block",
    "keyStart",
    "data",
    "message",
    "signature",
    "rawTransaction",
    "bitcoinBlock",
    "blockHeader",
    "coinbase",
    "code",
    "key",
    // A dump of accounts, as direct changes of them.
    "state",
    "value",
    "nonce",
    "hashrate",
    "clientId",
];

fn signed(to: &str) -> Value {
    let one = U256::from(1);
    let to = Some(to.parse().unwrap());
    let transaction = Transaction { to, v: 27, r: one, s: one, ..Transaction::remasc(2) };
    json!(format!("0x{}", HEXLOWER_PERMISSIVE.encode(&transaction.encode())))
}

/// The forms in which a parameter names contracts. Without any, the parameter cannot name one.
fn naming(subject: ParamSubject, of: &[&str]) -> Vec<Value> {
    let one = of[0];
    match subject {
        ParamSubject::Contract if of.len() == 1 => {
            vec![json!(one), json!(one.to_uppercase().replace("0X", "0x")), json!(one[2..])]
        }
        ParamSubject::Call | ParamSubject::Transaction if of.len() == 1 => vec![
            json!({"to": one}),
            json!({"from": one, "to": one, "data": "0x00"}),
            json!({"input": "0x", "to": one[2..], "more": 1}),
        ],
        ParamSubject::Cells => {
            let slots = |name: &str| (name.to_owned(), json!(["0x0", "0x1"]));
            let plain: Map<String, Value> = of.iter().map(|one| slots(one)).collect();
            let short: Map<String, Value> = of.iter().map(|one| slots(&one[2..])).collect();
            vec![json!(plain), json!(short)]
        }
        ParamSubject::Simulation => {
            let calls: Vec<Value> = of.iter().map(|to| json!({"to": to})).collect();
            let apart: Vec<Value> = calls.iter().map(|call| json!({"calls": [call]})).collect();
            vec![json!({"blockStateCalls": [{"calls": calls}]}), json!({"blockStateCalls": apart})]
        }
        ParamSubject::Bundles => {
            let calls: Vec<Value> = of.iter().map(|to| json!({"to": to})).collect();
            let apart: Vec<Value> = calls.iter().map(|call| json!({"transactions": [call]})).collect();
            vec![json!([{"transactions": calls}]), json!(apart)]
        }
        ParamSubject::TracedCalls => {
            let calls: Vec<Value> = of.iter().map(|to| json!([{"to": to}, ["trace"]])).collect();
            vec![json!(calls)]
        }
        ParamSubject::Signed if of.len() == 1 => vec![signed(one)],
        ParamSubject::Logs | ParamSubject::Subscription => vec![
            json!({"address": of}),
            json!({"address": of, "topics": [], "fromBlock": "earliest"}),
            json!({"address": of.iter().map(|one| &one[2..]).collect::<Vec<_>>()}),
        ],
        ParamSubject::Traces => {
            vec![json!({"toAddress": of}), json!({"toAddress": of, "fromBlock": "earliest"})]
        }
        _ => Vec::new(),
    }
}

/// Forms in which a parameter selects any contract, creates one, or that no handler accepts.
fn any(subject: ParamSubject) -> Vec<Value> {
    match subject {
        ParamSubject::Cells => vec![
            json!([SHOP]),
            json!([[SHOP, ["0x0"]]]),
            json!({SHOP: "0x0"}),
            json!({"0x12": ["0x0"]}),
            json!({SHOP: ["zz"]}),
        ],
        ParamSubject::Contract => vec![json!(7), json!([SHOP]), json!({"address": SHOP}), json!("0x12")],
        ParamSubject::Call | ParamSubject::Transaction => vec![
            json!({}),
            json!({"to": ""}),
            json!({"to": [SHOP]}),
            json!([SHOP]),
            json!([SHOP, SHOP]),
            json!([null, SHOP]),
            json!(SHOP),
        ],
        ParamSubject::Simulation => vec![
            json!({}),
            json!({"to": SHOP}),
            json!({"blockStateCalls": [{"calls": [{"data": "0x00"}]}]}),
            json!({"blockStateCalls": [{"calls": [{"to": SHOP}, {}]}]}),
            json!({"blockStateCalls": [{"calls": [[SHOP]]}]}),
            json!({"blockStateCalls": {"to": SHOP}}),
        ],
        ParamSubject::Bundles => vec![
            json!({}),
            json!([{"transactions": [{"data": "0x00"}]}]),
            json!([{"transactions": [{"to": SHOP}, {}]}]),
            json!([[[{"to": SHOP}]]]),
        ],
        ParamSubject::TracedCalls => {
            vec![json!({}), json!([[{}, ["trace"]]]), json!([[{"to": SHOP}, "trace"]]), json!([{"to": SHOP}])]
        }
        ParamSubject::Signed => vec![json!("0x00"), json!("zz"), json!(7), json!([signed(SHOP)])],
        ParamSubject::Transactions => vec![json!([[{"to": SHOP}, 0]]), json!([[signed(SHOP), 0]]), json!(7)],
        ParamSubject::Logs | ParamSubject::Subscription | ParamSubject::Traces => vec![
            json!({}),
            json!([]),
            json!([SHOP, SHOP]),
            json!(["earliest", "latest", null, SHOP]),
            json!(["earliest", "latest", SHOP, SHOP]),
            json!({"address": [], "toAddress": []}),
            json!({"address": null, "toAddress": null}),
            json!({"address": {"0": SHOP}, "toAddress": {"0": SHOP}}),
            json!({"Address": SHOP, "to_address": SHOP}),
        ],
        _ => Vec::new(),
    }
}

fn other_value(param: &Param) -> Value {
    match param.kind {
        kind if kind.starts_with("newHeads") => json!("logs"),
        kind if kind.starts_with("array") => json!([]),
        "ADDRESS" => json!(SHOP),
        "BLOCK" => json!("latest"),
        _ => json!("0x1"),
    }
}

/// Calls of a method by each of its names, with this value at a position.
fn calls(row: &Method, position: usize, value: &Value) -> Vec<String> {
    let params: Vec<Value> = (0..row.required().max(position + 1))
        .map(|at| if at == position { value.clone() } else { other_value(&row.params[at]) })
        .collect();
    let names = std::iter::once(&row.name).chain(row.aliases);
    let call = |name| json!({"jsonrpc": "2.0", "id": 7, "method": name, "params": params}).to_string();
    names.map(call).collect()
}

fn subjects() -> impl Iterator<Item = (&'static Method, usize, ParamSubject)> {
    methods().flat_map(|row| row.params.iter().enumerate().map(move |(at, param)| (row, at, param.subject)))
}

#[test]
fn each_parameter_that_could_name_an_account_says_what_it_refers_to() {
    for row in methods() {
        for param in row.params {
            let fits = match param.kind {
                "ADDRESS" => matches!(param.subject, ParamSubject::Account | ParamSubject::Contract),
                "CELLS" => param.subject == ParamSubject::Cells,
                "CALL" => param.subject == ParamSubject::Call,
                "BUNDLES" => param.subject == ParamSubject::Bundles,
                "TRACED_CALLS" => param.subject == ParamSubject::TracedCalls,
                kind if kind.starts_with("array of [transaction object") => {
                    param.subject == ParamSubject::Transactions
                }
                "TRACE_CALL_OPTIONS" => param.subject == ParamSubject::CallOptions,
                "SIMULATION" => param.subject == ParamSubject::Simulation,
                "TRANSACTION" => param.subject == ParamSubject::Transaction,
                "LOG_FILTER" => matches!(param.subject, ParamSubject::Logs | ParamSubject::Subscription),
                "TRACE_FILTER" => param.subject == ParamSubject::Traces,
                "OVERRIDE" => param.subject == ParamSubject::Overrides,
                _ if ["filterId", "subscriptionId"].contains(&param.name) => {
                    param.subject == ParamSubject::Filter
                }
                kind if kind.starts_with("DATA") => {
                    param.subject == ParamSubject::Signed || BYTES.contains(&param.name)
                }
                kind => PLAIN.contains(&kind) || kind.starts_with("QUANTITY"),
            };
            assert!(
                fits,
                "{}: {param:?} could name an account or is of a kind that this test does not know",
                row.name
            );
        }
    }
}

#[test]
fn a_parameter_that_names_another_contract_is_refused_in_each_form_by_each_name() {
    let rules = KeyRules { contracts: vec![SHOP.parse().unwrap()], ..KeyRules::default() };
    let unfit = |call: &String| inspect(&read(call.as_bytes()), &rules).unfit;
    let mut limited = Vec::new();
    for (row, position, subject) in subjects() {
        for value in naming(subject, &[SHOP]).iter().chain(&naming(subject, &[SHOP, SHOP])) {
            limited.push(row.name);
            for call in calls(row, position, value) {
                assert_eq!(unfit(&call), None, "{call}");
            }
        }
        let others = [&[OTHER][..], &[SHOP, OTHER], &[OTHER, SHOP]].map(|of| naming(subject, of));
        for value in others.iter().flatten().chain(&any(subject)) {
            for call in calls(row, position, value) {
                assert!(matches!(unfit(&call), Some(NotAllowed::Contract(_))), "{call}");
            }
        }
    }
    for name in ["eth_call", "eth_getProof", "ext_getStorageBytesAt", "rootlight_getWitness", "anvil_setCode"]
    {
        assert!(limited.contains(&name), "{name}");
    }
}

#[test]
fn parameters_by_name_are_no_call() {
    for (row, position, subject) in subjects() {
        for value in naming(subject, &[OTHER]) {
            let params = json!({row.params[position].name: value});
            let call = json!({"jsonrpc": "2.0", "id": 7, "method": row.name, "params": params}).to_string();
            assert!(read(call.as_bytes()).single().unwrap().call.is_err(), "{call}");
        }
    }
}

#[test]
fn overrides_are_refused_in_each_form_by_each_name() {
    let (none, all) = (KeyRules::default(), KeyRules { state_override: true, ..KeyRules::default() });
    let of = subjects().filter(|(_, _, subject)| *subject == ParamSubject::Overrides);
    let mut seen = 0;
    for (row, position, _) in of {
        for value in [json!({SHOP: {"balance": "0x1"}}), json!({SHOP: {}}), json!([[SHOP, {}]]), json!("x")] {
            for call in calls(row, position, &value) {
                seen += 1;
                assert_eq!(
                    inspect(&read(call.as_bytes()), &none).unfit,
                    Some(NotAllowed::StateOverride),
                    "{call}"
                );
                assert_eq!(inspect(&read(call.as_bytes()), &all).unfit, None, "{call}");
            }
        }
        for value in [json!({}), json!(null)] {
            for call in calls(row, position, &value) {
                // The call object of these calls is no call, which only its handler says.
                let call =
                    call.replace(r#""params":["0x1""#, &format!(r#""params":[{}"#, json!({"to": SHOP})));
                assert_eq!(inspect(&read(call.as_bytes()), &none).unfit, None, "{call}");
            }
        }
    }
    for (row, position, _) in subjects().filter(|(_, _, subject)| *subject == ParamSubject::CallOptions) {
        let over = json!({"tracer": "callTracer", "stateOverrides": {SHOP: {"balance": "0x1"}}});
        for call in calls(row, position, &over) {
            assert_eq!(
                inspect(&read(call.as_bytes()), &none).unfit,
                Some(NotAllowed::StateOverride),
                "{call}"
            );
            assert_eq!(inspect(&read(call.as_bytes()), &all).unfit, None, "{call}");
        }
        for call in calls(row, position, &json!({"stateOverrides": {}})) {
            assert_eq!(inspect(&read(call.as_bytes()), &none).unfit, None, "{call}");
        }
    }
    let simulated = |subject| matches!(subject, ParamSubject::Simulation | ParamSubject::Call);
    for (row, position, _) in subjects().filter(|(_, _, subject)| simulated(*subject)) {
        let block = |over: Value| json!({"blockStateCalls": [{}, {"stateOverrides": over}]});
        for call in calls(row, position, &block(json!({SHOP: {"balance": "0x1"}}))) {
            assert_eq!(
                inspect(&read(call.as_bytes()), &none).unfit,
                Some(NotAllowed::StateOverride),
                "{call}"
            );
            assert_eq!(inspect(&read(call.as_bytes()), &all).unfit, None, "{call}");
        }
        for call in calls(row, position, &block(json!({}))) {
            assert_eq!(inspect(&read(call.as_bytes()), &none).unfit, None, "{call}");
        }
    }
    assert!(seen >= 16, "eth_call, eth_estimateGas, eth_createAccessList and rootlight_getWitness");
}
