//! Compares `eth_estimateGas` with the answers of the reference node, and checks that estimates suffice.

use crate::support;

use rootlight::consensus::Network;
use rootlight::exec::CallPolicy;
use serde_json::{Value, json};
use support::chain::{lines, text};
use support::tally::RecordedTally;
use support::upstream::{Harness, RecordedUpstream};
use support::{shared, u64_of};

/// Head of the chain when the answers were recorded.
const HEAD: u64 = 0x284;

/// The reason why an answer differs deliberately; `None` if it should be equal.
fn intended(request: &Value, ours: &Result<Value, Value>, theirs: &Value) -> Option<String> {
    let code = |error: &Value| error["code"].as_i64();
    let their_code = code(&theirs["error"]);
    match ours {
        Err(error) if error["code"] == -32004 => Some("not simulated".into()),
        Err(error) if code(error) == Some(-32000) && theirs["result"].is_string() => {
            let text = error["message"].as_str()?;
            let cut = text.find('(').map_or(text, |at| &text[..at]);
            Some(format!("fails, where the reference node gives a number: {cut}"))
        }
        Err(error) if code(error) == Some(-32002) => {
            Some("the recorded upstream has no answer for an unknown block".into())
        }
        Err(error) if code(error) == Some(-32600) && their_code == Some(-32603) => {
            Some("an unknown block has an error of its own".into())
        }
        Err(error) if code(error) == Some(-32602) && [Some(-32603), Some(-32602)].contains(&their_code) => {
            Some("another message or code for bad input".into())
        }
        Err(error) if code(error) == Some(-32000) && their_code == Some(-32603) => {
            Some("the reference node fails on too little gas".into())
        }
        Err(error) if code(error) == Some(-32015) && their_code == Some(-32603) => {
            Some("the reference node fails on a revert payload".into())
        }
        Ok(_) if their_code == Some(-32603) => Some("internal error of the reference node".into()),
        Ok(_) if their_code == Some(-32602) => {
            let params = request["params"].as_array()?;
            Some(if params.len() > 2 { "overrides are accepted" } else { "more block selectors" }.into())
        }
        Ok(ours) => {
            let (ours, theirs) = (u64_of(ours.as_str()?), u64_of(theirs["result"].as_str()?));
            if theirs == 0 {
                return Some("the reference node estimates 0 gas".into());
            }
            let given = request["params"][0]["gas"].as_str().map(u64_of);
            if theirs == 6_800_000 || given == Some(theirs) {
                return Some("the reference node returns its gas cap".into());
            }
            (ours < theirs).then(|| "less suffices".into())
        }
        Err(_) => None,
    }
}

#[test]
fn estimates_equal_the_node_or_are_better() {
    let Some(shared) = shared() else { return };
    let recording = RecordedUpstream::open(&shared.join("vectors/chain"), HEAD);
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    let mut tally = RecordedTally::default();
    for file in ["rpc_call", "rpc_precompiles", "rpc_override"] {
        for line in lines(&shared.join("vectors/chain").join(format!("{file}.jsonl"))) {
            let (request, response) = (&line["request"], &line["response"]);
            if text(request, "method") != "eth_estimateGas" {
                continue;
            }
            let ours = harness.call("eth_estimateGas", &request["params"]);
            let intended = || {
                let reason = intended(request, &ours, response)?;
                if reason == "less suffices" {
                    println!("{reason}: {} {ours:?} {}", line["label"], response["result"]);
                }
                Some(reason)
            };
            tally.add(&line, &ours, intended);
        }
    }
    tally.check(68, 33);
}

/// A call succeeds with the estimate, and fails with one percent less.
#[test]
fn an_estimate_suffices_and_less_does_not() {
    let Some(shared) = shared() else { return };
    let recording = RecordedUpstream::open(&shared.join("vectors/chain"), HEAD);
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    let mut checked = 0;
    for line in lines(&shared.join("vectors/chain/rpc_call.jsonl")) {
        let params = &line["request"]["params"];
        if text(&line["request"], "method") != "eth_estimateGas" || params.as_array().unwrap().len() != 1 {
            continue;
        }
        let Ok(estimate) = harness.call("eth_estimateGas", params) else { continue };
        let gas = u64_of(estimate.as_str().unwrap());
        let mut run = |gas: u64| {
            let mut call = params[0].clone();
            call["gas"] = json!(format!("{gas:#x}"));
            harness.call("eth_call", &json!([call, "latest"]))
        };
        assert!(run(gas).is_ok(), "{params}: {gas} is too little");
        assert!(run(gas * 99 / 100).is_err(), "{params}: less than {gas} suffices");
        checked += 1;
    }
    println!("{checked} estimates hold");
    assert!(checked >= 30, "{checked}");
}

/// A call that halts is an error, or returns `0x` if the host chooses the behaviour of the reference node.
#[test]
fn halts_are_errors_or_return_empty_output() {
    let Some(shared) = shared() else { return };
    let recording = RecordedUpstream::open(&shared.join("vectors/chain"), 60);
    let spin =
        json!([{ "to": "0x271905cc3d21d8d11f3213e4130108295e578434", "data": "0xf0acd7d5" }, "latest"]);
    // Gas limit of block 60.
    let block = 9_430_657;
    for (policy, gas) in [
        (CallPolicy::default(), block),
        (CallPolicy { silent_halts: true, ..CallPolicy::default() }, block),
        (CallPolicy { gas_cap: 50_000, ..CallPolicy::default() }, 50_000),
    ] {
        let mut harness = Harness::with_policy(&recording, Network::regtest(), policy);
        harness.sync().unwrap();
        let answer = harness.call("eth_call", &spin);
        if policy.silent_halts {
            assert_eq!(answer, Ok("0x".into()));
        } else {
            let error = answer.unwrap_err();
            assert_eq!(error["message"], "VM Exception while processing transaction: out of gas");
            assert_eq!((&error["code"], error.get("data")), (&json!(-32015), None));
        }
        let estimate = harness.call("eth_estimateGas", &json!([spin[0]])).unwrap_err();
        assert_eq!(estimate["message"], format!("gas required exceeds allowance ({gas})"));
    }
}
