//! Every method of the service's specification on a development chain: it exists, takes the stated parameters, and its
//! result has the stated types and fields. `cargo xtask spec` says when the page of the table has changed.

use crate::fixture::{ALICE, BOB, Fixture, NOBODY, REVERTS, TOPIC};
use serde_json::{Value, json};

fn table() -> Value {
    serde_json::from_str(include_str!("../specification.json")).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn name(fact: &Value) -> &str {
    fact["name"].as_str().unwrap()
}

/// Compares values with the types of the table.
struct Types<'a> {
    table: &'a Value,
    /// Whether the object is of the pending block or pool.
    pending: bool,
    /// Whether logs are of a filter or subscription.
    notified: bool,
}

fn is_hex(text: &str, bytes: Option<usize>) -> bool {
    let Some(digits) = text.strip_prefix("0x") else { return false };
    let fits = bytes.is_none_or(|bytes| digits.len() == 2 * bytes);
    digits.len() % 2 == 0 && fits && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

fn is_quantity(text: &str) -> bool {
    let Some(digits) = text.strip_prefix("0x") else { return false };
    let canonical = digits == "0" || !digits.starts_with('0');
    !digits.is_empty() && canonical && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

impl Types<'_> {
    /// Why a value is not of a type.
    fn check(&self, kind: &str, value: &Value) -> Result<(), String> {
        let wrong = || Err(format!("{value} is not {kind}"));
        let text = value.as_str();
        let fits = match kind {
            "QUANTITY" => text.is_some_and(is_quantity),
            "ADDRESS" => text.is_some_and(|text| is_hex(text, Some(20))),
            "HASH" => text.is_some_and(|text| is_hex(text, Some(32))),
            "DATA" => text.is_some_and(|text| is_hex(text, None)),
            "boolean" => value.is_boolean(),
            "string" => text.is_some(),
            "number" => value.is_u64(),
            "array" => value.is_array(),
            "sync status or false" if *value == json!(false) => true,
            "sync status or false" => return self.object("sync status", value),
            "uncle" => {
                self.object("block", value)?;
                value["transactions"] == json!([])
            }
            "array of three HASH" => {
                return if list(value).len() == 3 { self.check("array of HASH", value) } else { wrong() };
            }
            kind if kind.contains(" | ") => {
                return kind.split(" | ").find_map(|one| self.check(one, value).ok()).ok_or(kind.to_owned());
            }
            kind if kind.starts_with("DATA ") => {
                let bytes = kind.split(' ').nth(1).and_then(|bytes| bytes.parse().ok());
                assert!(bytes.is_some(), "{kind}");
                text.is_some_and(|text| is_hex(text, bytes))
            }
            kind if kind.starts_with("array of ") => {
                let Some(items) = value.as_array() else { return wrong() };
                return items.iter().try_for_each(|item| self.check(&kind["array of ".len()..], item));
            }
            kind => return self.object(kind, value),
        };
        if fits { Ok(()) } else { wrong() }
    }

    fn object(&self, kind: &str, value: &Value) -> Result<(), String> {
        let fields = &self.table["objects"][kind];
        assert!(fields.is_array(), "the table has no object {kind:?}");
        let mut fields = list(fields).to_vec();
        // The specification shows actions and results of calls only.
        if kind == "trace" && value["type"] != json!("call") {
            fields.retain(|field| !["action", "result"].contains(&name(field)));
        }
        self.fields(&fields, value).map_err(|why| format!("{kind}: {why}"))
    }

    fn fields(&self, fields: &[Value], value: &Value) -> Result<(), String> {
        for field in fields {
            let (key, kind) = (name(field), field["type"].as_str().unwrap());
            let optional =
                field["optional"] == json!(true) || field["notified"] == json!(true) && !self.notified;
            let null = field["null"].as_str();
            match value.get(key) {
                None if optional => {}
                None => return Err(format!("no field {key}")),
                Some(Value::Null) if null.is_some_and(|when| when != "pending" || self.pending) => {}
                Some(found) if self.pending && null == Some("pending") => {
                    return Err(format!("{key} is {found} while pending"));
                }
                Some(found) => {
                    let inner = list(&field["fields"]);
                    let checked = match kind {
                        "object" => self.fields(inner, found),
                        "array of object" => list(found).iter().try_for_each(|item| self.fields(inner, item)),
                        kind => self.check(kind, found),
                    };
                    checked.map_err(|why| format!("{key}: {why}"))?;
                }
            }
        }
        Ok(())
    }
}

/// Other forms of a parameter that the specification allows.
fn forms(param: &Value, fixture: &Fixture) -> Vec<Value> {
    let block = &fixture.block;
    match param["type"].as_str().unwrap() {
        "BLOCK" => {
            let mut forms = vec![json!("latest"), json!("earliest"), json!("0x2")];
            for also in list(&param["also"]) {
                match also.as_str().unwrap() {
                    "hash" => forms.push(block.clone()),
                    _ => forms.extend([json!({"blockHash": block}), json!({"blockNumber": "0x2"})]),
                }
            }
            forms
        }
        "boolean" => vec![json!(true), json!(false)],
        "string" => list(&param["values"]).to_vec(),
        _ => Vec::new(),
    }
}

/// A value that no parameter of this type can have.
fn invalid(param: &Value) -> Option<Value> {
    Some(match param["type"].as_str().unwrap() {
        "ADDRESS" | "HASH" => json!("0x12"),
        "DATA" | "DATA 8 bytes" | "DATA 32 bytes" | "QUANTITY" => json!("0xzz"),
        "BLOCK" => json!("newest"),
        "array of HASH" | "transaction call" | "filter options" | "object" | "state override" => json!("0x"),
        "boolean" => json!("maybe"),
        _ => return None,
    })
}

/// The parameters of the specification with the arguments of the fixture, without those that only Rootlight has.
fn stated(fixture: &mut Fixture, method: &Value) -> Vec<Value> {
    let mut all = list(&fixture.arguments(name(method))).to_vec();
    all.truncate(list(&method["params"]).len());
    all
}

#[test]
fn methods_take_the_stated_parameters_and_give_the_stated_results() {
    let table = table();
    let mut fixture = Fixture::new();
    let mut answers = 0;
    for method in list(&table["methods"]).iter().filter(|method| !method["params"].is_null()) {
        let (called, params) = (name(method), list(&method["params"]));
        let types = Types { table: &table, pending: called == "eth_pendingTransactions", notified: false };
        let kind = method["result"]["type"].as_str().unwrap();
        let mut take = |fixture: &mut Fixture, given: Vec<Value>| {
            let answer = fixture.ask(called, &json!(given));
            let result = &answer["result"];
            assert!(answer["error"].is_null(), "{called} {given:?}: {answer}");
            if !(result.is_null() && method["result"]["null"] == json!(true)) {
                types.check(kind, result).unwrap_or_else(|why| panic!("{called} {given:?}: {why}"));
            }
            answers += 1;
        };
        let all = stated(&mut fixture, method);
        assert!(
            all.len() >= params.iter().filter(|param| param["required"] == json!(true)).count(),
            "{called}"
        );
        take(&mut fixture, all);
        let required = params.iter().take_while(|param| param["required"] == json!(true)).count();
        let mut fewer = stated(&mut fixture, method);
        fewer.truncate(required);
        take(&mut fixture, fewer);
        for (index, param) in params.iter().enumerate() {
            for form in forms(param, &fixture) {
                let mut given = stated(&mut fixture, method);
                given.resize(given.len().max(index + 1), Value::Null);
                // The uncle and the transactions are those of block 2.
                if called.ends_with("AndIndex") && form != json!("0x2") {
                    continue;
                }
                given[index] = form;
                take(&mut fixture, given);
            }
        }
    }
    println!("{answers} answers");
    assert!(answers > 150, "{answers}");
}

#[test]
fn missing_surplus_and_malformed_parameters_are_refused() {
    let table = table();
    let mut fixture = Fixture::new();
    let mut refused = 0;
    for method in list(&table["methods"]).iter().filter(|method| !method["params"].is_null()) {
        let (called, params) = (name(method), list(&method["params"]));
        let mut wrong = vec![vec![json!("0x1"); 9]];
        if params.first().is_some_and(|first| first["required"] == json!(true)) {
            wrong.push(Vec::new());
        }
        for (index, param) in params.iter().enumerate() {
            let mut given = stated(&mut fixture, method);
            if let Some(invalid) = invalid(param).filter(|_| index < given.len()) {
                given[index] = invalid;
                wrong.push(given);
            }
        }
        for given in wrong {
            let answer = fixture.ask(called, &json!(given));
            assert_eq!(answer["error"]["code"], json!(-32602), "{called} {given:?}: {answer}");
            refused += 1;
        }
    }
    println!("{refused} refusals");
    assert!(refused > 120, "{refused}");
}

/// The specification shows neither parameters nor results of these methods: they answer.
#[test]
fn methods_that_are_only_named_answer() {
    let table = table();
    // The methods about the server's bans are tested in native/server/tests/methods/modes.rs.
    let of_core = |method: &&Value| method["params"].is_null() && !name(method).starts_with("sco_");
    for method in list(&table["methods"]).iter().filter(of_core) {
        let called = name(method);
        let mut fixture = Fixture::new();
        let arguments = fixture.arguments(called);
        let answer = fixture.ask(called, &arguments);
        assert!(
            answer["error"].is_null() && answer.get("result").is_some(),
            "{called} {arguments}: {answer}"
        );
    }
}

#[test]
fn methods_that_are_not_available_are_refused_by_name() {
    let mut fixture = Fixture::new();
    for method in list(&table()["unavailable"]).iter().map(|name| name.as_str().unwrap()) {
        let (called, text) = match method {
            "shh_*" => ("shh_version", "method not found".to_owned()),
            method => (method, format!("the method {method} does not exist/is not available")),
        };
        let error = json!({"code": -32601, "message": text});
        assert_eq!(fixture.ask(called, &json!([]))["error"], error, "{called}");
    }
}

#[test]
fn pending_blocks_and_transactions_have_null_where_stated() {
    let table = table();
    let mut fixture = Fixture::new();
    let types = Types { table: &table, pending: true, notified: false };
    let pending = &fixture.ask("eth_getBlockByNumber", &json!(["pending", true]))["result"];
    types.check("block", pending).unwrap();
    let waiting = &fixture.ask("eth_pendingTransactions", &json!([]))["result"];
    assert_eq!(list(waiting).len(), 1);
    types.check("array of transaction", waiting).unwrap();
    let receipt = fixture.ask("eth_getTransactionReceipt", &json!([waiting[0]["hash"]]));
    assert_eq!(receipt["result"], Value::Null);
}

#[test]
fn fields_of_creations_calls_logs_and_uncles_are_those_of_the_specification() {
    let table = table();
    let mut fixture = Fixture::new();
    let types = Types { table: &table, pending: false, notified: false };
    let mut get = |method: &str, params: Value| fixture.ask(method, &params)["result"].clone();
    let block = get("eth_getBlockByNumber", json!(["0x2", true]));
    types.check("array of transaction", &block["transactions"]).unwrap();
    assert_eq!(list(&block["uncles"]).len(), 1);
    types.check("uncle", &get("eth_getUncleByBlockNumberAndIndex", json!(["0x2", "0x0"]))).unwrap();
    let logs = get("eth_getLogs", json!([{"fromBlock": "earliest", "topics": [[null, TOPIC]]}]));
    assert_eq!((list(&logs).len(), &logs[0]["topics"]), (1, &json!([TOPIC])));
    let traces = get("trace_block", json!(["0x2"]));
    assert!(list(&traces).iter().any(|trace| trace["type"] == json!("call") && trace["error"].is_null()));
    types.check("array of trace", &traces).unwrap();
    let hashes = [fixture.created.clone(), fixture.called.clone()];
    for (hash, creates) in hashes.into_iter().zip([true, false]) {
        let receipt = fixture.ask("eth_getTransactionReceipt", &json!([hash]))["result"].clone();
        assert_eq!((receipt["to"].is_null(), receipt["contractAddress"].is_null()), (creates, !creates));
        assert!(receipt.get("status").is_some() != receipt.get("root").is_some(), "either status or root");
        types.check("transaction receipt", &receipt).unwrap();
    }
}

#[test]
fn notifications_have_the_stated_shapes() {
    let table = table();
    let mut fixture = Fixture::new();
    let types = Types { table: &table, pending: false, notified: true };
    for (kind, shape) in table["notifications"].as_object().unwrap() {
        let filter = if kind == "logs" { json!([kind, {"topics": []}]) } else { json!([kind]) };
        let id = fixture.ask("eth_subscribe", &filter)["result"].clone();
        let contract = fixture.contract.clone();
        fixture.dev.get("eth_sendTransaction", json!([{"from": ALICE, "to": contract, "gas": "0x186a0"}]));
        fixture.dev.get("evm_mine", json!([]));
        let changes = fixture.ask("eth_getFilterChanges", &json!([id]))["result"].clone();
        // The development chain never synchronizes.
        assert_eq!(list(&changes).is_empty(), kind == "syncing", "{kind}: {changes}");
        for one in list(&changes) {
            match shape["type"].as_str().unwrap() {
                "header" => {
                    let names: Vec<&Value> = list(&shape["fields"]).iter().collect();
                    let block = list(&table["objects"]["block"]);
                    let fields = block.iter().filter(|field| names.contains(&&field["name"])).cloned();
                    let fields: Vec<Value> = fields.collect();
                    assert_eq!(fields.len(), names.len());
                    types.fields(&fields, one).unwrap();
                }
                kind => types.check(kind, one).unwrap(),
            }
        }
    }
}

#[test]
fn failures_have_the_stated_codes() {
    let table = table();
    let mut fixture = Fixture::new();
    let code = json!({BOB: {"code": REVERTS}});
    let revert = json!([{"to": BOB}, "latest", code]);
    let poor = json!([{"from": NOBODY, "to": BOB, "value": "0x1"}]);
    let mut met = 0;
    for error in list(&table["errors"]).iter().filter(|error| !error["code"].is_null()) {
        let (method, params) = match error["method"].as_str().unwrap() {
            "eth_call" => ("eth_call", &revert),
            "eth_estimateGas" => ("eth_estimateGas", &poor),
            other => panic!("no failure of {other}"),
        };
        let found = fixture.ask(method, params)["error"].clone();
        assert_eq!(found["code"], error["code"], "{method}: {found}");
        let start = error["messages"][0].as_str().unwrap();
        assert!(found["message"].as_str().unwrap().starts_with(start), "{method}: {found}");
        assert_eq!(found.get("data").is_some(), error["data"] == json!(true), "{method}");
        met += 1;
    }
    assert_eq!(met, 2);
    let reverted = fixture.ask("eth_call", &revert)["error"].clone();
    assert_eq!(reverted["message"], json!("VM Exception while processing transaction: revert no"));
    // Subscriptions need a connection that receives notifications.
    assert_eq!(fixture.dev.refused("eth_subscribe", json!(["newHeads"])).0, -32601);
}

/// Numbers in the table of limits, checked where the limits are: here only that the code has the same ones.
#[test]
fn limits_are_those_of_the_specification() {
    let table = table();
    let numbers = |name: &str| table["limits"][name]["numbers"].clone();
    let (logs, blocks) = (rootlight::engine::MAX_LOGS, rootlight::engine::FREE_LOG_BLOCKS);
    assert_eq!(numbers("eth_getLogs"), json!([logs, blocks]));
    let node = &table["traceFilter"]["count"]["node"]["maximum"];
    let mut fixture = Fixture::new();
    let mut count = |count: u64| fixture.ask("trace_filter", &json!([{"count": count}]))["error"].clone();
    assert_eq!(count(node.as_u64().unwrap()), Value::Null);
    assert_eq!(count(node.as_u64().unwrap() + 1)["code"], json!(-32602));
    // Without a gas limit, a transaction has the default one.
    let sent = fixture.dev.get("eth_sendTransaction", json!([{"from": BOB, "to": ALICE}]));
    let sent = fixture.dev.get("eth_getTransactionByHash", json!([sent]));
    let gas = numbers("eth_sendTransaction")[0].as_u64().unwrap();
    assert_eq!(sent["gas"], json!(format!("{gas:#x}")));
}
