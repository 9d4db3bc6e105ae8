//! `eth_call` with state overrides over JSON-RPC, compared with the answers of the reference node.

use crate::support;

use rootlight::consensus::Network;
use serde_json::Value;
use support::chain::{lines, text};
use support::shared;
use support::tally::RecordedTally;
use support::upstream::{Harness, RecordedUpstream};

/// Head of the chain when the answers were recorded.
const HEAD: u64 = 0x284;

/// The reason why an answer differs deliberately; `None` if it should be equal.
fn intended(request: &Value, ours: &Result<Value, Value>, theirs: &Value) -> Option<&'static str> {
    let their_code = theirs["error"]["code"].as_i64();
    let moves = request["params"][2].to_string().contains("movePrecompileToAddress");
    match ours {
        Ok(_) if request["params"].as_array().is_some_and(|params| params.len() == 4) => {
            Some("the fourth parameter has overrides of the block, as in geth")
        }
        Err(error) if moves && error["code"] == -32602 => Some("precompiles are not moved"),
        Err(error) if error["code"] == -32602 && matches!(their_code, Some(-32603 | -32700 | -32602)) => {
            Some("another code or message for bad input")
        }
        Err(error) if error["code"] == -32602 && request["params"][2].is_array() => {
            Some("overrides must be a map")
        }
        Err(error) if error["code"] == -32015 && theirs["result"] == "0x" => {
            Some("an exceptional halt is an error")
        }
        Ok(_) if their_code == Some(-32603) || their_code == Some(-32700) => {
            Some("the reference node fails on a form of numbers")
        }
        _ => None,
    }
}

#[test]
fn overridden_calls_equal_the_node() {
    let Some(shared) = shared() else { return };
    let recording = RecordedUpstream::open(&shared.join("vectors/chain"), HEAD);
    let mut harness = Harness::new(&recording, Network::regtest());
    harness.sync().unwrap();
    let mut tally = RecordedTally::default();
    for line in lines(&shared.join("vectors/chain/rpc_override.jsonl")) {
        let (request, response) = (&line["request"], &line["response"]);
        if text(request, "method") != "eth_call" {
            continue;
        }
        let ours = harness.call("eth_call", &request["params"]);
        tally.add(&line, &ours, || intended(request, &ours, response));
    }
    tally.check(23, 2);
}
