//! Compares `debug_trace*` of the recorded chain, executed locally, with the answers of the reference node.

use crate::support;

use std::collections::{BTreeMap, BTreeSet};

use rootlight::consensus::Network;
use serde_json::{Value, json};
use support::chain::{lines, text};
use support::executed::Executed;
use support::shared;

/// Head of the chain when `rpc_debug` was recorded.
const HEAD: usize = 0x286;

type HaltCounts = BTreeMap<&'static str, usize>;

fn short(value: &Value, len: usize) -> String {
    value.to_string().chars().take(len).collect()
}

/// The names of a halt in our call tracer and in our default tracer, for the error text of the reference
/// node.
fn halt(text: &str) -> Option<[&'static str; 2]> {
    let names = [
        ("Not enough gas", ["out of gas", "Out of gas"]),
        ("Invalid operation code", ["invalid opcode", "Bad instruction"]),
        ("inside STATICCALL", ["state change inside a static call", "Mutable Call In Static Context"]),
        (
            "cannot start with 0xEF",
            ["contract code must not start with 0xef", "Contract code starts with 0xef"],
        ),
        ("Maximum contract size", ["contract code too long", "Contract code too long"]),
    ];
    names.iter().find(|(part, _)| text.contains(part)).map(|(_, names)| *names)
}

/// Bytes in the number format of the reference node: without leading zeros.
fn as_quantity(data: &str) -> String {
    let digits = data.trim_start_matches("0x").trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

fn calls(call: &mut Value) -> Option<&mut Vec<Value>> {
    call.get_mut("calls")?.as_array_mut()
}

/// Converts one of our calls to the form of the reference node.
fn align_call(ours: &mut Value, theirs: &mut Value, top: bool, counts: &mut HaltCounts) {
    let mut count = |what| *counts.entry(what).or_default() += 1;
    if theirs["type"] == "NONE" {
        count("a self-destruction shows its fields");
        assert_eq!(ours["type"], "SELFDESTRUCT");
        *ours = json!({ "type": "NONE", "from": ours["from"] });
        return;
    }
    if let Some([name, _]) = theirs["error"].as_str().and_then(halt) {
        count("error text of a halt");
        theirs["error"] = name.into();
    }
    if top && theirs["gas"] == "0x0" && ours["gas"] != "0x0" {
        count("gas of a transaction without code");
        ours["gas"] = "0x0".into();
    }
    if ours["type"].as_str().unwrap().starts_with("CREATE") {
        count("a creation shows its code as output and its address in `to`");
        if ours["type"] == "CREATE2" {
            ours["type"] = "CREATE".into();
        }
        let created = ours.as_object_mut().unwrap().remove("to");
        let failed = theirs.get("error").is_some();
        assert!(failed || created.as_ref() == theirs.get("output"), "{created:?} {theirs}");
        ours["output"] = theirs["output"].clone();
    } else {
        let output = ours["output"].as_str().unwrap_or("0x").to_owned();
        if top && output != "0x" {
            count("output of a transaction");
        }
        ours["output"] = if top { "0x0".into() } else { as_quantity(&output).into() };
    }
    if top && ours.get("revertReason").is_some() {
        count("reason of a transaction's revert");
        ours.as_object_mut().unwrap().remove("revertReason");
    }
    let (Some(ours), Some(theirs)) = (calls(ours), calls(theirs)) else { return };
    for (ours, theirs) in ours.iter_mut().zip(theirs) {
        align_call(ours, theirs, false, counts);
    }
}

/// Removes failed creations, which the reference node leaves out.
fn drop_failed_creations(call: &mut Value, counts: &mut HaltCounts) {
    let Some(below) = calls(call) else { return };
    let before = below.len();
    below.retain(|call| call.get("error").is_none() || !text(call, "type").starts_with("CREATE"));
    *counts.entry("failed creations").or_default() += before - below.len();
    below.iter_mut().for_each(|call| drop_failed_creations(call, counts));
    if below.is_empty() {
        call.as_object_mut().unwrap().remove("calls");
    }
}

/// Removes the logs from a call tree and collects them. We show logs with their calls; the reference node
/// shows all of them at the top.
fn take_logs(call: &mut Value, logs: &mut Vec<Value>) {
    if let Some(own) = call.as_object_mut().unwrap().remove("logs") {
        logs.extend(own.as_array().unwrap().clone());
    }
    for call in calls(call).into_iter().flatten() {
        take_logs(call, logs);
    }
}

fn align_logs(ours: &mut Value, theirs: &mut Value) {
    let (mut own, mut recorded) = (Vec::new(), Vec::new());
    take_logs(ours, &mut own);
    own.sort_by_key(|log| log["index"].as_u64());
    recorded.extend(theirs.get("logs").and_then(Value::as_array).cloned().unwrap_or_default());
    take_logs(theirs, &mut Vec::new());
    for log in own.iter_mut().chain(&mut recorded) {
        log.as_object_mut().unwrap().remove("index");
        log.as_object_mut().unwrap().remove("position");
        if log["data"] == "0x00" {
            log["data"] = "0x".into();
        }
    }
    assert_eq!(own, recorded);
}

fn align_calls(ours: &mut Value, theirs: &mut Value, counts: &mut HaltCounts) {
    match (&mut *ours, &mut *theirs) {
        (Value::Array(ours), Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter_mut().zip(theirs) {
                assert_eq!(ours["txHash"], theirs["txHash"]);
                align_calls(&mut ours["result"], &mut theirs["result"], counts);
            }
        }
        (ours @ Value::Object(_), theirs @ Value::Object(_)) => {
            drop_failed_creations(ours, counts);
            align_logs(ours, theirs);
            align_call(ours, theirs, true, counts);
        }
        _ => {}
    }
}

/// Converts our steps to the form of the reference node: constructors are left out, and the cost of a call is
/// shown with the last instruction inside it.
fn reference_steps(steps: &[Value], counts: &mut HaltCounts) -> Vec<Value> {
    let depth = |step: &Value| step["depth"].as_u64().unwrap();
    let mut out: Vec<Value> = Vec::new();
    let mut at = 0;
    while at < steps.len() {
        let step = &steps[at];
        let inner = steps[at + 1..].iter().take_while(|next| depth(next) > depth(step)).count();
        let mut shown = step.clone();
        let creates = step["op"].as_str().is_some_and(|op| op.starts_with("CREATE"));
        if inner > 0 && creates {
            *counts.entry("constructor's instructions").or_default() += inner;
            out.push(shown);
        } else if inner > 0 {
            *counts.entry("the cost of a call is shown with the call").or_default() += 1;
            let cost = std::mem::replace(&mut shown["gasCost"], 0.into());
            out.push(shown);
            let mut below = reference_steps(&steps[at + 1..=at + inner], counts);
            below.last_mut().unwrap()["gasCost"] = cost;
            out.append(&mut below);
        } else {
            out.push(shown);
        }
        at += 1 + inner;
    }
    out
}

/// Removes slots that are cleared later. The reference node leaves them out of earlier steps too.
fn drop_cleared_slots(ours: &mut Value, theirs: &mut Value, counts: &mut HaltCounts) {
    let keys = |value: &Value| value.as_object().map(|map| map.keys().cloned().collect::<BTreeSet<_>>());
    let Some(last) = keys(&ours["currentStorage"]) else { return };
    let first = keys(&ours["initStorage"]).unwrap();
    let cleared: Vec<_> = first.difference(&last).collect();
    for (ours, theirs) in ours["structLogs"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip(theirs["structLogs"].as_array_mut().unwrap())
    {
        for key in &cleared {
            let there = theirs["storage"].as_object().is_some_and(|map| map.contains_key(*key));
            if let Some(map) = ours["storage"].as_object_mut().filter(|_| !there) {
                let gone = map.remove(*key).is_some();
                *counts.entry("steps with a slot cleared later").or_default() += usize::from(gone);
            }
        }
    }
}

fn align_steps(ours: &mut Value, theirs: &mut Value, counts: &mut HaltCounts) {
    if let (Value::Array(ours), Value::Array(theirs)) = (&mut *ours, &mut *theirs) {
        assert_eq!(ours.len(), theirs.len());
        ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| align_steps(ours, theirs, counts));
        return;
    }
    if theirs.get("transferInvoke").is_some() {
        // The reference node shows base64, we show hex.
        if !theirs["transferInvoke"]["msgData"].is_null() {
            *counts.entry("hex data").or_default() += 1;
            assert!(ours["transferInvoke"]["msgData"].is_string());
            ours["transferInvoke"]["msgData"] = theirs["transferInvoke"]["msgData"].clone();
        }
        return;
    }
    if let Some([_, name]) = theirs["error"].as_str().and_then(halt) {
        *counts.entry("error text of a halt").or_default() += 1;
        theirs["error"] = name.into();
    }
    if let Some(steps) = ours["structLogs"].as_array() {
        ours["structLogs"] = reference_steps(steps, counts).into();
    }
    drop_cleared_slots(ours, theirs, counts);
}

fn first_difference(ours: &Value, theirs: &Value) -> String {
    let empty = Vec::new();
    let steps = |value: &Value| value["structLogs"].as_array().unwrap_or(&empty).clone();
    let (a, b) = (steps(ours), steps(theirs));
    for (at, (x, y)) in a.iter().zip(&b).enumerate() {
        if x != y {
            return format!("step {at}:\n  ours   {}\n  theirs {}", short(x, 1500), short(y, 1500));
        }
    }
    let bare = |value: &Value| {
        let mut value = value.clone();
        if let Some(map) = value.as_object_mut() {
            map.remove("structLogs");
        }
        value
    };
    format!(
        "{} and {} steps\n  ours   {}\n  theirs {}",
        a.len(),
        b.len(),
        short(&bare(ours), 1500),
        short(&bare(theirs), 1500)
    )
}

fn is_steps(theirs: &Value) -> bool {
    let one = theirs.as_array().and_then(|list| list.first()).unwrap_or(theirs);
    one.get("structLogs").is_some() || one.get("transferInvoke").is_some()
}

fn compare(chain: &Executed, file: &str) -> (usize, HaltCounts, Vec<String>) {
    let (mut equal, mut counts, mut different) = (0, HaltCounts::new(), Vec::new());
    for line in lines(&shared().unwrap().join("vectors/chain").join(format!("{file}.jsonl"))) {
        let (request, response) = (&line["request"], &line["response"]);
        let method = text(request, "method");
        if request["params"][0] == "pending" {
            continue;
        }
        match (chain.call(method, &request["params"]), response.get("result")) {
            (Ok(mut ours), Some(theirs)) => {
                let mut theirs = theirs.clone();
                if is_steps(&theirs) {
                    align_steps(&mut ours, &mut theirs, &mut counts);
                } else {
                    align_calls(&mut ours, &mut theirs, &mut counts);
                }
                if ours == theirs {
                    equal += 1;
                } else {
                    different.push(format!(
                        "{} {}: {}",
                        line["label"],
                        request["params"],
                        first_difference(&ours, &theirs)
                    ));
                }
            }
            (Err(error), None) if error == response["error"] => equal += 1,
            (Err(error), None) if error["code"] == -32602 => {
                *counts.entry("bad input is an invalid parameter").or_default() += 1;
            }
            (Ok(_), None) if response["error"]["code"] == -32603 => {
                *counts.entry("internal error of the reference node").or_default() += 1;
            }
            (Err(error), Some(_)) if error["code"] == -32602 && !request["params"][1].is_object() => {
                *counts.entry("options must be an object").or_default() += 1;
            }
            (ours, _) => different.push(format!(
                "{}: {ours:.300?}, recorded {}",
                request["params"],
                short(response, 300)
            )),
        }
    }
    (equal, counts, different)
}

fn report(chain: &Executed, file: &str, least: usize) {
    let (equal, counts, different) = compare(chain, file);
    println!("{file}: {equal} equal; {counts:?}");
    let shown = different.iter().take(4).cloned().collect::<Vec<_>>().join("\n");
    assert!(different.is_empty(), "{file}: {} differ:\n{shown}", different.len());
    assert!(equal >= least, "{file}: only {equal} equal");
}

#[test]
fn call_traces_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), 676);
    report(&chain, "debug_callTracer", 356);
}

#[test]
fn instruction_traces_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), 676);
    report(&chain, "debug_traceTransaction", 55);
}

#[test]
fn trace_options_and_invalid_input_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), HEAD);
    report(&chain, "rpc_debug", 30);
}
