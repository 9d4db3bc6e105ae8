//! Tracers in JavaScript, in the process of their engine.

use serde_json::json;

use super::dev::{light_of, start};
#[cfg(target_os = "linux")]
use crate::common::Program;

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

/// An endless script, which the engine's own limit of time ends.
const ENDLESS: &str = "{step: function() { for (;;); }, fault: function() {}, result: function() {}}";
const CODE: &str = "0x600000";
const CONTRACT: &str = "0x00000000000000000000000000000000000000aa";

/// The id of a process that this program has started as the engine of a script. A new process has the command line of this
/// one until it runs the engine.
#[cfg(target_os = "linux")]
fn engine(program: &Program) -> Option<String> {
    let command = |id: &str| std::fs::read(format!("/proc/{id}/cmdline")).ok();
    let own = program.child.id().to_string();
    let tasks = std::fs::read_dir(format!("/proc/{own}/task")).unwrap();
    let children = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    let mut ids = children.flat_map(|ids| ids.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    ids.find(|id| command(id).is_some_and(|line| !line.is_empty() && Some(line) != command(&own)))
}

/// Nothing that an engine does itself happens while it is stopped.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_engine_that_is_stopped_from_outside_ends_with_its_time() {
    let dev = start(&["dev"]);
    let code = json!({ CONTRACT: { "code": CODE } });
    let params = json!([{ "to": CONTRACT }, "latest", { "tracer": ENDLESS, "stateOverrides": code }]);
    let stopping = async {
        loop {
            if let Some(engine) = engine(&dev) {
                let stop = std::process::Command::new("kill").args(["-STOP", &engine]).status();
                return assert!(stop.unwrap().success());
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let (answer, ()) = tokio::join!(dev.call("debug_traceCall", params), stopping);
    let error = answer.unwrap_err();
    // The time of the message may be over first.
    let message = error["message"].as_str().unwrap();
    assert!(message.ends_with("longer than 5000 ms") || message.ends_with("timed out"), "{error}");
    assert_eq!(engine(&dev), None, "the process is gone");
}

#[tokio::test]
async fn a_script_traces_on_the_proven_state_of_a_light_client() {
    let dev = start(&["dev", "--silent"]);
    // Adds one to slot 0 and returns the sum.
    let counter = "0x60005460010160005560005460005260206000f3";
    dev.call("anvil_setCode", json!([CONTRACT, counter])).await.unwrap();
    dev.call("evm_mine", json!([])).await.unwrap();
    let light = light_of(&[dev.url()]);
    let script = "{slots: [], step: function(log, db) {
        if (log.op.toString() === 'SSTORE') this.slots.push(toHex(db.getState(log.contract.getAddress(), toWord('0x00'))));
    }, fault: function() {}, result: function(ctx, db) {
        return { slots: this.slots, output: toHex(ctx.output), code: db.getCode(ctx.to).length };
    }}";
    let params = |script: &str| json!([{ "to": CONTRACT }, "latest", { "tracer": script }]);
    let traced = light.call("debug_traceCall", params(script)).await.unwrap();
    let word = |number: u64| format!("0x{number:064x}");
    assert_eq!(traced, json!({ "slots": [word(0)], "output": word(1), "code": 20 }));
    assert_eq!(dev.call("debug_traceCall", params(script)).await.unwrap(), traced);
    // The time of all rounds together is that of one.
    let error = light.call("debug_traceCall", params(ENDLESS)).await.unwrap_err();
    assert_eq!(error["message"], "tracer in JavaScript: the script took longer than 5000 ms");
}
