//! Tracers in JavaScript, in the process of their engine.

use serde_json::json;

use super::dev::start;

/// Built-in functions and operators that take hours, between which the engine's own limit of time does not look.
const UNINTERRUPTED: [&str; 2] = [
    "return ('a'.repeat(8e6) + 'b').indexOf('a'.repeat(4e6) + 'c')",
    "var one = (1n << 500000n) - 1n; for (;;) one * one",
];

#[tokio::test]
async fn a_script_that_no_interrupt_reaches_ends_with_its_time() {
    let dev = start(&["dev"]);
    let trace = async |body: &str| {
        let script = format!("{{fault: function() {{}}, result: function() {{ {body} }}}}");
        let call = json!({ "to": "0x00000000000000000000000000000000000000aa" });
        dev.call("debug_traceCall", json!([call, "latest", { "tracer": script }])).await
    };
    let [first, second] = UNINTERRUPTED;
    for result in <[_; 2]>::from(tokio::join!(trace(first), trace(second))) {
        let error = result.unwrap_err();
        assert_eq!(error["code"], -32602);
        assert_eq!(error["message"], "tracer in JavaScript: the script took longer than 5000 ms");
    }
    assert_eq!(trace("return 6 * 7").await, Ok(json!(42)));
    // A trace depends on the run alone.
    assert_eq!(trace("return typeof Date").await, Ok(json!("undefined")));
    assert_eq!(trace("return Math.random()").await, trace("return Math.random()").await);
}

/// Bytes that the program gives to a script count in the script's heap.
#[tokio::test]
async fn what_a_script_reads_of_the_memory_has_a_limit() {
    let dev = start(&["dev"]);
    let script = "{kept: [], step: function(log) { for (;;) this.kept.push(log.memory.slice(0, 1 << 20)) }, \
                  fault: function() {}, result: function() {}}";
    // A contract that stops after one instruction.
    let code = json!({ "0x00000000000000000000000000000000000000aa": { "code": "0x600000" } });
    let call = json!({ "to": "0x00000000000000000000000000000000000000aa" });
    let options = json!({ "tracer": script, "stateOverrides": code });
    let error = dev.call("debug_traceCall", json!([call, "latest", options])).await.unwrap_err();
    assert!(error["message"].as_str().unwrap().contains("out of memory"), "{error}");
}
