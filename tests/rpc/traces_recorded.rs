//! Compares `trace_*` of the recorded chain, executed locally, with the answers of the reference node.

use crate::call_trees;
use crate::support;

use std::collections::BTreeMap;

use rootlight::consensus::Network;
use serde_json::Value;
use support::chain::text;
use support::executed::Executed;
use support::recording::{Recording, era_network, regtest_v0, text_of};
use support::shared;

/// Head of the chain when `rpc_trace` was recorded.
const HEAD: usize = 0x286;

/// Parity's short error text for the error of the reference node.
fn short_error(text: &str) -> Option<&'static str> {
    let names = [
        ("Reverted", "Reverted"),
        ("OutOfGasException", "Out of gas"),
        ("IllegalOperationException", "Bad instruction"),
        ("BadJumpDestinationException", "Bad jump destination"),
        ("StaticCallModificationException", "Mutable Call In Static Context"),
        ("cannot start with 0xEF", "Contract code starts with 0xef"),
        ("Maximum contract size", "Contract code too long"),
        ("StackTooSmallException", "Stack underflow"),
        ("StackTooLargeException", "Out of stack"),
        ("Illegal RETURNDATACOPY", "Out of bounds"),
        ("Maximum initcode size", "Init code too long"),
        ("VMException", "Built-in failed"),
        // Exceptions of Java that end a call of the reference node, as a halt does.
        ("ArrayIndexOutOfBoundsException", "Bad instruction"),
        ("InvalidGasException", "Out of gas"),
    ];
    names.iter().find(|(part, _)| text.contains(part)).map(|(_, name)| *name)
}

/// Removes those inner creations from our traces that the reference node leaves out: creations whose
/// constructor failed, and those without initialisation code.
fn drop_creations(ours: &mut Value, theirs: &Value, counts: &mut BTreeMap<&'static str, usize>) {
    let (Some(list), Some(recorded)) = (ours.as_array_mut(), theirs.as_array()) else { return };
    // The position of the transaction in the block, then the address of the trace in the transaction.
    let path_of = |trace: &Value| -> Vec<u64> {
        let within = trace["traceAddress"].as_array().unwrap().iter().map(|at| at.as_u64().unwrap());
        trace["transactionPosition"].as_u64().into_iter().chain(within).collect()
    };
    let key = |trace: &Value| (trace["blockNumber"].as_u64(), path_of(trace));
    let theirs: BTreeMap<_, _> = recorded.iter().map(|trace| (key(trace), trace)).collect();
    let mut at = 0;
    while at < list.len() {
        let (block, path) = key(&list[at]);
        let hollow = list[at].get("error").is_some() || list[at]["action"]["init"] == "0x";
        let there = theirs.get(&(block, path.clone()));
        let same = there.is_some_and(|other| {
            other["action"]["init"] == list[at]["action"]["init"] && other["type"] == "create"
        });
        if path.len() < 2 || list[at]["type"] != "create" || !hollow || same {
            at += 1;
            continue;
        }
        *counts.entry("creation that failed or ran nothing").or_default() += 1;
        let depth = path.len() - 1;
        list.retain(|trace| !(trace["blockNumber"].as_u64() == block && path_of(trace).starts_with(&path)));
        for trace in list.iter_mut().filter(|trace| trace["blockNumber"].as_u64() == block) {
            let own = path_of(trace);
            if own[..] == path[..depth] {
                trace["subtraces"] = (trace["subtraces"].as_u64().unwrap() - 1).into();
            } else if own.len() > depth && own[..depth] == path[..depth] && own[depth] > path[depth] {
                trace["traceAddress"][depth - 1] = (own[depth] - 1).into();
            }
        }
    }
}

/// Converts recorded traces to our form, removes deliberate differences from both (the rows `traces` in docs/differences.md give
/// the reasons), and counts them.
fn align(ours: &mut Value, theirs: &mut Value, counts: &mut BTreeMap<&'static str, usize>) {
    drop_creations(ours, theirs, counts);
    let (Some(ours), Some(theirs)) = (ours.as_array_mut(), theirs.as_array_mut()) else { return };
    for (ours, theirs) in ours.iter_mut().zip(theirs) {
        let mut count = |what| *counts.entry(what).or_default() += 1;
        if let Some(error) = theirs["error"].as_str().and_then(short_error) {
            if theirs["error"] != error {
                count("short error");
            }
            theirs["error"] = error.into();
        }
        let top = theirs["traceAddress"] == serde_json::json!([]);
        if theirs["action"]["callType"] == "callcode" {
            count("address of CALLCODE");
            assert_eq!(theirs["action"]["to"], theirs["action"]["from"]);
            theirs["action"]["to"] = ours["action"]["to"].clone();
        }
        if top && ours["error"].is_string() && theirs["result"]["output"] == "0x" && theirs["error"].is_null()
        {
            count("a native contract without gas fails");
            *theirs = ours.clone();
        }
        if !top
            && theirs["action"]["callType"] == "delegatecall"
            && theirs["result"]["gasUsed"] == "0x0"
            && theirs["action"]["value"] == "0x0"
            && ours["action"]["value"] != "0x0"
        {
            count("value of DELEGATECALL to an account without code");
            theirs["action"]["value"] = ours["action"]["value"].clone();
        }
        // The only halt with different short names.
        if ours["error"] == "Bad instruction" && theirs["error"] == "Stack underflow" {
            count("Bad instruction instead of Stack underflow");
            theirs["error"] = ours["error"].clone();
        }
        if !top && theirs["type"] == "create" && theirs["result"].is_null() && ours["result"]["code"] == "0x"
        {
            count("before RSKIP-453: a creation without code instead of an error");
            *theirs = ours.clone();
        }
        if top && theirs["action"]["gas"] == "0x0" && ours["action"]["gas"] != "0x0" {
            count("gas of a transaction without code");
            theirs["action"]["gas"] = ours["action"]["gas"].clone();
        }
        if !top && theirs["action"]["input"] != ours["action"]["input"] {
            count("input of an inner call");
            theirs["action"]["input"] = ours["action"]["input"].clone();
        }
        if top && theirs["result"]["output"] == "0x" && ours["result"]["output"] != "0x" {
            count("output of a transaction");
            theirs["result"]["output"] = ours["result"]["output"].clone();
        }
    }
}

struct TraceTally {
    equal: usize,
    traces: usize,
    counts: BTreeMap<&'static str, usize>,
    different: Vec<String>,
}

fn compare(chain: &Executed, file: &str) -> TraceTally {
    compare_in(chain, "chain", file)
}

fn compare_in(chain: &Executed, folder: &str, file: &str) -> TraceTally {
    let mut tally = TraceTally { equal: 0, traces: 0, counts: BTreeMap::new(), different: Vec::new() };
    let path = shared().unwrap().join("vectors").join(folder).join(format!("{file}.jsonl"));
    for line in text_of(&path).lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let (request, response) = (&line["request"], &line["response"]);
        // A few answers were too large to be recorded.
        if line.get("response").is_none() {
            continue;
        }
        let ours = chain.call(text(request, "method"), &request["params"]);
        match (ours, response.get("result"), response.get("error")) {
            (Ok(mut ours), Some(theirs), _) if theirs.is_null() == ours.is_null() => {
                let mut theirs = theirs.clone();
                align(&mut ours, &mut theirs, &mut tally.counts);
                if ours == theirs {
                    tally.equal += 1;
                    tally.traces += ours.as_array().map_or(0, Vec::len);
                    continue;
                }
                match why_result_differs(request) {
                    Some(reason) => *tally.counts.entry(reason).or_default() += 1,
                    None => tally.different.push(first_difference(request, &ours, &theirs)),
                }
            }
            (Err(ours), _, Some(theirs)) if ours == *theirs => tally.equal += 1,
            (ours, _, _) => match why_error_differs(request, response) {
                Some(reason) => *tally.counts.entry(reason).or_default() += 1,
                None => tally.different.push(format!(
                    "{}: {:.300}, recorded {:.300}",
                    request["params"],
                    format!("{ours:?}"),
                    response.to_string()
                )),
            },
        }
    }
    tally
}

/// The reason why an answer differs because the method is defined differently here; `None` if there is none.
fn why_result_differs(request: &Value) -> Option<&'static str> {
    if request["method"] == "trace_get" {
        return Some("trace_get counts within the transaction");
    }
    let of = |name: &str| request["params"][0][name].as_str().unwrap_or_default();
    if request["params"][0] == "pending" || of("fromBlock") == "pending" {
        return Some("this view has no pending block");
    }
    if of("fromBlock").len() == 66 {
        return Some("a hash is a block in trace_filter too");
    }
    None
}

/// The reason why an error differs deliberately; `None` if it should be equal.
fn why_error_differs(request: &Value, theirs: &Value) -> Option<&'static str> {
    match theirs["error"]["code"].as_i64() {
        Some(-32603 | -32700) => Some("bad input is an invalid parameter"),
        Some(-32602) if request["method"] != "trace_filter" => Some("error for an invalid block"),
        Some(-32602) => Some("error for an invalid filter"),
        _ => None,
    }
}

fn first_difference(request: &Value, ours: &Value, theirs: &Value) -> String {
    let cut = |value: &Value| value.to_string().chars().take(700).collect::<String>();
    let lists = (ours.as_array(), theirs.as_array());
    let (mut a, mut b) = (ours, theirs);
    if let (Some(ours), Some(theirs)) = lists {
        if ours.len() != theirs.len() {
            return format!("{}: {} traces, recorded {}", request["params"], ours.len(), theirs.len());
        }
        if let Some((x, y)) = ours.iter().zip(theirs).find(|(x, y)| x != y) {
            (a, b) = (x, y);
        }
    }
    format!("{} {}\n  ours   {}\n  theirs {}", request["method"], request["params"], cut(a), cut(b))
}

fn report(name: &str, tally: &TraceTally, least: usize) {
    println!("{name}: {} answers with {} traces equal; {:?}", tally.equal, tally.traces, tally.counts);
    let shown = tally.different.iter().take(5).cloned().collect::<Vec<_>>().join("\n");
    assert!(tally.different.is_empty(), "{name}: {} differ:\n{shown}", tally.different.len());
    assert!(tally.equal >= least, "{name}: only {} equal", tally.equal);
}

#[test]
fn traces_of_blocks_and_transactions_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), 676);
    report("trace_block", &compare(&chain, "trace_block"), 677);
    report("trace_transaction", &compare(&chain, "trace_transaction"), 322);
    assert!(call_trees::compare_with_trace_block(&chain) > 1_000);
}

#[test]
fn trace_filters_and_invalid_input_equal_the_reference() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), HEAD);
    report("rpc_trace", &compare(&chain, "rpc_trace"), 42);
}

fn whole(folder: &str, network: Network, least: usize) {
    let Some(shared) = shared() else { return };
    let recording = Recording::load(&shared.join("vectors").join(folder), network);
    let chain = Executed::of(&shared, recording);
    report(folder, &compare_in(&chain, folder, "trace_block"), least);
    // The trees of `lists_chain` are nested deeper than the reader of JSON goes. Each block has at least one entry.
    if folder != "execution/lists_chain" {
        assert!(call_trees::compare_with_trace_block(&chain) >= least, "{folder}");
    }
}

#[test]
fn chain_with_version_0_headers() {
    whole("chain_v0", regtest_v0(), 521);
}

#[test]
fn bridge_chain() {
    whole("execution/bridge_chain", Network::regtest(), 300);
}

#[test]
fn edge_chain() {
    whole("execution/edge_chain", Network::regtest(), 140);
}

#[test]
fn lists_chain() {
    whole("execution/lists_chain", Network::regtest(), 234);
}

macro_rules! eras {
    ($($name:ident)*) => {
        $(#[test] fn $name() {
            let Some(shared) = shared() else { return };
            let name = stringify!($name);
            whole(&format!("eras/chain_{name}"), era_network(&shared, name), 470);
        })*
    };
}

eras!(orchid060 wasabi100 papyrus200 iris300 hop401 fingerroot500 arrowhead600 arrowhead631 lovell700
    reed800 vetiver900main testnet crossing);
