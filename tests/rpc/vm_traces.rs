//! `vmTrace`: what each instruction changes, in the form of OpenEthereum, Erigon and reth.

use crate::fixture::{ALICE, BOB, NOBODY};
use crate::simulate::SimulationFixture;
use crate::support;

use rootlight::consensus::Network;
use serde_json::{Value, json};
use support::executed::Executed;
use support::shared;

/// Blocks of the recorded chain that are compared.
const BLOCKS: usize = 250;

/// The trace of a call of this code.
fn traced(fixture: &mut SimulationFixture, code: &str) -> Value {
    let overrides = json!({ NOBODY: { "code": code } });
    let call = json!({ "from": ALICE, "to": NOBODY, "gas": "0x186a0" });
    fixture.dev.get("trace_call", json!([call, ["vmTrace"], "latest", overrides]))["vmTrace"].take()
}

/// Position, cost and gas left of each instruction.
fn gas(trace: &Value) -> Vec<(u64, u64, Option<u64>)> {
    let ops = trace["ops"].as_array().unwrap();
    let number = |value: &Value| value.as_u64();
    ops.iter()
        .map(|op| (op["pc"].as_u64().unwrap(), op["cost"].as_u64().unwrap(), number(&op["ex"]["used"])))
        .collect()
}

#[test]
fn each_instruction_shows_its_words_memory_and_storage() {
    let mut fixture = SimulationFixture::new();
    // PUSH1 7, PUSH1 1, SSTORE, PUSH1 1, SLOAD, PUSH1 2, SWAP1, DUP2, PUSH1 0, MSTORE8, POP, POP, PUSH1 5, PUSH1 32, MSTORE
    let code = "0x600760015560015460029081600053505060056020525b";
    let trace = traced(&mut fixture, code);
    assert_eq!(trace["code"], code);
    let ops = trace["ops"].as_array().unwrap();
    let keys: Vec<_> = ops[0].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["cost", "ex", "pc", "sub"]);
    let shown: Vec<Value> = ops
        .iter()
        .map(|op| json!([op["pc"], op["ex"]["push"], op["ex"]["mem"], op["ex"]["store"], op["sub"]]))
        .collect();
    let word = format!("0x{:064x}", 5);
    assert_eq!(
        json!(shown),
        json!([
            [0, ["0x7"], null, null, null],
            [2, ["0x1"], null, null, null],
            [4, [], null, { "key": "0x1", "val": "0x7" }, null],
            [5, ["0x1"], null, null, null],
            [7, ["0x7"], null, null, null],
            [8, ["0x2"], null, null, null],
            [10, ["0x2", "0x7"], null, null, null],
            [11, ["0x2", "0x7", "0x2"], null, null, null],
            [12, ["0x0"], null, null, null],
            [14, [], { "data": "0x02", "off": 0 }, null, null],
            [15, [], null, null, null],
            [16, [], null, null, null],
            [17, ["0x5"], null, null, null],
            [19, ["0x20"], null, null, null],
            [21, [], { "data": word, "off": 32 }, null, null],
            [22, [], null, null, null],
        ])
    );
    // Each instruction begins with the gas that the one before left.
    let gas = gas(&trace);
    for pair in gas.windows(2) {
        assert_eq!(pair[0].2.unwrap() - pair[1].1, pair[1].2.unwrap(), "{pair:?}");
    }
    assert_eq!(gas[0], (0, 3, Some(100_000 - 21_000 - 3)));
}

#[test]
fn inner_calls_stand_below_the_instruction_that_starts_them() {
    let mut fixture = SimulationFixture::new();
    // Returns a word with 0x2a.
    let inner = fixture.deploy("602a60005260206000f3");
    // CALL of it, which writes its output to 0x20; SSTORE of the result would follow, but the code ends.
    let code = format!("0x6020602060006000600073{}61c350f1", &inner[2..]);
    let trace = traced(&mut fixture, &code);
    let call = &trace["ops"].as_array().unwrap().last().unwrap();
    assert_eq!(call["sub"]["code"], "0x602a60005260206000f3");
    assert_eq!(call["sub"]["ops"].as_array().unwrap().len(), 6);
    assert_eq!(call["ex"]["push"], json!(["0x1"]));
    // The cost has the gas that is forwarded, of which the rest comes back: 700 for the call, 6 for two words of memory.
    assert!(call["cost"].as_u64().unwrap() > 50_000);
    let before = gas(&trace).iter().rev().nth(1).unwrap().2.unwrap();
    let inside: u64 = gas(&call["sub"]).iter().map(|(_, cost, _)| cost).sum();
    assert_eq!(call["ex"]["used"], before - 706 - inside, "{call}");
    // With an instruction after it, the output is shown too.
    let trace = traced(&mut fixture, &format!("{code}5b"));
    let call = &trace["ops"].as_array().unwrap().iter().rev().nth(1).unwrap().clone();
    assert_eq!(call["ex"]["mem"], json!({ "data": format!("0x{:064x}", 42), "off": 32 }));
    assert_eq!(call["ex"]["push"], json!(["0x1"]));
    // Accounts without code and native contracts run no instructions.
    for to in [BOB.to_owned(), format!("0x{:040x}", 4)] {
        let trace = traced(&mut fixture, &format!("0x6000600060006000600073{}61c350f15b", &to[2..]));
        let call = trace["ops"].as_array().unwrap().iter().rev().nth(1).unwrap();
        assert_eq!(
            (&call["sub"], &call["ex"]["push"]),
            (&json!({ "code": "0x", "ops": [] }), &json!(["0x1"]))
        );
    }
    // A creation pushes the address of its contract.
    let trace = traced(&mut fixture, "0x600060006000f05b");
    let create = trace["ops"].as_array().unwrap().iter().rev().nth(1).unwrap();
    assert_eq!(create["sub"]["ops"], json!([]));
    assert_eq!(create["ex"]["push"][0].as_str().unwrap().len() / 2, 21, "{create}");
}

#[test]
fn instructions_that_fail_change_nothing() {
    let mut fixture = SimulationFixture::new();
    let trace = traced(&mut fixture, "0x600456");
    assert_eq!(gas(&trace), [(0, 3, Some(78_997)), (2, 0, None)]);
    assert_eq!(trace["ops"][1]["ex"], Value::Null);
    // A contract that reverts: the instruction itself succeeds, and the call pushes 0.
    let reverts = fixture.deploy("60006000fd");
    let trace = traced(&mut fixture, &format!("0x6000600060006000600073{}61c350f15b", &reverts[2..]));
    let call = trace["ops"].as_array().unwrap().iter().rev().nth(1).unwrap();
    assert_eq!(call["ex"]["push"], json!(["0x0"]));
    assert!(call["sub"]["ops"][2]["ex"].is_object(), "{call}");
}

#[test]
fn transactions_show_them_as_calls_do() {
    let mut fixture = SimulationFixture::new();
    let swap = fixture.deploy("60005460005260003560005560206000f3");
    let call = json!({ "from": ALICE, "to": swap, "data": format!("0x{:064x}", 9), "gas": "0x30d40", "gasPrice": "0x0" });
    let types = json!(["vmTrace", "trace", "stateDiff"]);
    let before = fixture.dev.get("trace_call", json!([call, types]));
    let many = fixture.dev.get("trace_callMany", json!([[[call, ["vmTrace"]], [call, ["trace"]]]]));
    assert_eq!((&many[0]["vmTrace"], &many[1]["vmTrace"]), (&before["vmTrace"], &Value::Null));
    let hash = fixture.dev.get("eth_sendTransaction", json!([call]));
    fixture.dev.get("evm_mine", json!([]));
    assert_eq!(fixture.dev.get("trace_replayTransaction", json!([hash, types])), before);
    let block = fixture.dev.get("trace_replayBlockTransactions", json!(["latest", ["vmTrace"]]));
    assert_eq!(block[0]["vmTrace"], before["vmTrace"]);
    // REMASC runs no code.
    assert_eq!(block[1]["vmTrace"], json!({ "code": "0x", "ops": [] }));
    let plain = json!([{ "from": ALICE, "to": BOB, "value": "0x1" }, ["vmTrace"]]);
    assert_eq!(fixture.dev.get("trace_call", plain)["vmTrace"], json!({ "code": "0x", "ops": [] }));
}

#[test]
fn a_trace_that_is_too_large_is_refused() {
    let mut fixture = SimulationFixture::new();
    // Endless pushes of words to the same place.
    let overrides = json!({ NOBODY: { "code": "0x5b6000600052600056" } });
    let call = json!([{ "to": NOBODY, "gas": "0x989680" }, ["vmTrace"], "latest", overrides]);
    let (code, text) = fixture.dev.refused("trace_call", call);
    assert_eq!(code, -32005, "{text}");
}

/// The instructions in the order in which they run, each with position, cost and whether it failed.
fn in_order(trace: &Value, all: &mut Vec<(u64, u64)>) {
    for op in trace["ops"].as_array().unwrap() {
        all.push((op["pc"].as_u64().unwrap(), op["cost"].as_u64().unwrap()));
        if op["sub"].is_object() {
            in_order(&op["sub"], all);
        }
    }
}

/// The instructions of recorded transactions are those of the list of instructions, whose default form is compared with the
/// reference node's.
#[test]
fn instructions_of_recorded_blocks_are_those_of_the_struct_logs() {
    let Some(shared) = shared() else { return };
    let chain = Executed::chain(&shared, Network::regtest(), BLOCKS);
    let (mut compared, mut with_words) = (0, 0);
    for number in 1..=BLOCKS {
        let block = format!("{number:#x}");
        let traces = chain.call("trace_replayBlockTransactions", &json!([block, ["vmTrace"]]));
        let steps = chain.call("debug_traceBlockByNumber", &json!([block, { "tracer": "structLogger" }]));
        let (Ok(traces), Ok(steps)) = (traces, steps) else { continue };
        for (trace, steps) in traces.as_array().unwrap().iter().zip(steps.as_array().unwrap()) {
            let steps = steps["result"]["structLogs"].as_array().unwrap();
            let expected: Vec<_> = steps
                .iter()
                .map(|step| (step["pc"].as_u64().unwrap(), step["gasCost"].as_u64().unwrap()))
                .collect();
            let mut all = Vec::new();
            in_order(&trace["vmTrace"], &mut all);
            assert_eq!(all, expected, "block {number}");
            compared += all.len();
            with_words += words(&trace["vmTrace"], steps, &mut 0);
        }
    }
    assert!(compared > 20_000 && with_words > 10_000, "{compared} {with_words}");
}

/// Compares the words that instructions push with the stack of the next one in the same call. Returns how many there are.
fn words(trace: &Value, steps: &[Value], at: &mut usize) -> usize {
    let mut compared = 0;
    for op in trace["ops"].as_array().unwrap() {
        let depth = &steps[*at]["depth"];
        *at += 1;
        if op["sub"].is_object() {
            compared += words(&op["sub"], steps, at);
        }
        let Some(next) = steps.get(*at).filter(|next| next["depth"] == *depth) else { continue };
        let pushed = op["ex"]["push"].as_array().unwrap();
        let stack = next["stack"].as_array().unwrap();
        assert!(stack.ends_with(pushed), "{op}: {next}");
        compared += pushed.len();
    }
    compared
}
