//! Simulations on a light client: the answers of an executed chain, from one witness.

use crate::rounds::{TokenFixture, balance_of};
use crate::support::light::Light;
use serde_json::{Value, json};

const ALICE: &str = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266";
const BOB: &str = "0x70997970c51812dc3a010c7d01b50e0d17dc79c8";
const WITNESS: &str = "rootlight_getWitness";

/// Twenty calls that read the same accounts and slots.
fn burst(fixture: &TokenFixture) -> Value {
    let calls: Vec<Value> = (0..20)
        .map(|number| {
            let owner = if number % 2 == 0 { ALICE } else { BOB };
            json!({"from": ALICE, "to": fixture.proxy, "data": balance_of(owner)})
        })
        .collect();
    json!([{"blockStateCalls": [{"calls": calls}]}, "latest"])
}

/// The bytes of the responses to one message.
fn bytes(light: &mut Light, method: &str, params: &Value) -> (Value, usize, usize) {
    let before = light.upstream.bytes;
    let (answer, rounds) = light.count(method, params);
    (answer.unwrap(), rounds, light.upstream.bytes - before)
}

#[test]
fn a_burst_of_calls_is_one_witness_of_hardly_more_than_one_calls_bytes() {
    let mut stage = TokenFixture::new();
    let mut light = stage.light(&[]);
    // The first message tests whether the upstream offers witnesses.
    let call = json!([{"to": stage.proxy, "from": ALICE, "data": balance_of(ALICE)}, "latest"]);
    light.call("eth_call", &call).unwrap();
    stage.mine(&mut light);
    let (one, rounds, of_one) = bytes(&mut light, "eth_call", &call);
    assert_eq!((rounds, light.asked()), (1, vec![WITNESS]));

    stage.mine(&mut light);
    let burst = burst(&stage);
    let (blocks, rounds, of_all) = bytes(&mut light, "eth_simulateV1", &burst);
    assert_eq!((rounds, light.asked()), (1, vec![WITNESS]));
    assert!(of_all * 2 <= of_one * 3, "{of_all} bytes, one call {of_one}");
    assert_eq!(blocks[0]["calls"][0]["returnData"], one);
    assert_eq!(blocks[0]["calls"].as_array().unwrap().len(), 20);
    assert_eq!(Ok(blocks), light.upstream.call("eth_simulateV1", &burst));
    assert_eq!(light.count("eth_simulateV1", &burst).1, 0, "before a new head");
}

/// Proofs do where no upstream has witnesses, and an upstream that does not know witnesses of simulations is no obstacle.
#[test]
fn simulations_are_proven_by_plain_proofs_too() {
    let stage = TokenFixture::new();
    let burst = burst(&stage);
    let mut light = stage.light(&[WITNESS, "rootlight_getBlockWitness"]);
    let (answer, rounds) = light.count("eth_simulateV1", &burst);
    assert_eq!(answer, light.upstream.call("eth_simulateV1", &burst));
    // As for one such call, and the sender.
    assert!(rounds <= 6, "{rounds}");
    let mut light = stage.light(&[]);
    // An older upstream reads the simulation as an empty call.
    light.upstream.change = Some(Box::new(|call, answer| match call.method {
        WITNESS => answer.map(|_| {
            let empty = json!({"blockNumber": "0x1", "nodes": [], "values": []});
            serde_json::value::RawValue::from_string(empty.to_string()).unwrap()
        }),
        _ => answer,
    }));
    let answer = light.call("eth_simulateV1", &burst);
    assert_eq!(answer, light.upstream.call("eth_simulateV1", &burst));
}

/// What simulations write, and blocks that they make, need no more proofs.
#[test]
fn simulations_that_write_are_those_of_the_executed_chain() {
    let stage = TokenFixture::new();
    let mut light = stage.light(&[]);
    let code = "0x60003560005260206000f3";
    let absent = "0x00000000000000000000000000000000000abcde";
    let input = json!([{
        "blockStateCalls": [
            {"stateOverrides": {absent: {"balance": "0x99"}}, "calls": [
                {"from": ALICE, "to": absent, "value": "0x5"},
                {"from": absent, "to": BOB, "value": "0x77"},
                {"from": ALICE, "data": "0x6001600055602a60005260206000f3"},
            ]},
            {"blockOverrides": {"number": "0x20"}, "stateOverrides": {absent: {"code": code}}, "calls": [
                {"from": BOB, "to": absent},
                {"from": BOB, "to": stage.hashes, "data": format!("{:#066x}", 6)},
                {"from": BOB, "to": stage.hashes, "data": format!("{:#066x}", 2)},
            ]},
        ],
        "traceTransfers": true,
        "returnFullTransactions": true,
    }, "latest"]);
    let ours = light.call("eth_simulateV1", &input);
    assert!(ours.is_ok(), "{ours:?}");
    assert_eq!(ours, light.upstream.call("eth_simulateV1", &input));
    let poor =
        json!([{"blockStateCalls": [{"calls": [{"from": absent, "to": BOB, "value": "0x1"}]}]}, "latest"]);
    assert_eq!(light.call("eth_simulateV1", &poor).unwrap_err()["code"], -38014);
}

/// Traces of calls run on proven state too, and one witness does for a burst of them.
#[test]
fn traced_calls_are_those_of_the_executed_chain() {
    let mut stage = TokenFixture::new();
    let mut light = stage.light(&[]);
    let call = |owner: &str| json!({"from": ALICE, "to": stage.proxy, "data": balance_of(owner)});
    let (one, other) = (call(ALICE), call(BOB));
    light.call("eth_call", &json!([one, "latest"])).unwrap();
    let bundles = json!([{"transactions": vec![one.clone(); 10]}, {"transactions": vec![other.clone(); 10]}]);
    let calls: Vec<Value> = (0..20).map(|_| json!([one, ["trace", "stateDiff"]])).collect();
    for (method, params) in [
        ("debug_traceCall", json!([one, "latest", {"tracer": "callTracer"}])),
        (
            "debug_traceCall",
            json!([one, "latest", {"tracer": "callTracer", "stateOverrides": {BOB: {"nonce": "0x9"}}}]),
        ),
        ("debug_traceCallMany", json!([bundles, "latest", {"tracer": "callTracer"}])),
        ("trace_call", json!([other, ["trace"], "latest"])),
        ("trace_callMany", json!([calls, "latest"])),
    ] {
        stage.mine(&mut light);
        let (ours, rounds) = light.count(method, &params);
        assert!(ours.is_ok(), "{method}: {ours:?}");
        assert_eq!(ours, light.upstream.call(method, &params), "{method}");
        assert_eq!((rounds, light.asked()), (1, vec![WITNESS]), "{method}");
    }
    let mut light = stage.light(&[WITNESS, "rootlight_getBlockWitness"]);
    let prestate = json!([one, "latest", {"tracer": "prestateTracer"}]);
    assert_eq!(light.call("debug_traceCall", &prestate), light.upstream.call("debug_traceCall", &prestate));
}

/// Overrides of the block are part of what the upstream proves for a call, in one witness.
#[test]
fn calls_in_another_block_are_those_of_the_executed_chain() {
    let mut stage = TokenFixture::new();
    let mut light = stage.light(&[]);
    let call = json!({"from": ALICE, "to": stage.proxy, "data": balance_of(ALICE)});
    light.call("eth_call", &json!([call, "latest"])).unwrap();
    // Returns what is in the slot of the block's number.
    let code = "0x435460005260206000f3";
    for method in ["eth_call", "eth_estimateGas"] {
        for overrides in [json!({}), json!(null), json!({&stage.proxy: {"code": code}})] {
            stage.mine(&mut light);
            let params = json!([call, "latest", overrides, {"number": "0x7", "time": "0xffffffff"}]);
            let (ours, rounds) = light.count(method, &params);
            assert!(ours.is_ok(), "{method}: {ours:?}");
            assert_eq!(ours, light.upstream.call(method, &params), "{method}");
            assert_eq!((rounds, light.asked()), (1, vec![WITNESS]), "{method}");
        }
    }
}
