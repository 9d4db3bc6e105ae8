//! Tracers in JavaScript, in the process of their engine.

use serde_json::json;

use super::dev::DevProgram;

/// Built-in functions and operators that take hours, between which the engine's own limit of time does not look.
const UNINTERRUPTED: [&str; 2] = [
    "return ('a'.repeat(8e6) + 'b').indexOf('a'.repeat(4e6) + 'c')",
    "var one = (1n << 500000n) - 1n; for (;;) one * one",
];

#[tokio::test]
async fn a_script_that_no_interrupt_reaches_ends_with_its_time() {
    let dev = DevProgram::start(&["dev"]);
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
}
