//! Scripts on a development chain, by an engine in a thread. Tests of the program are those of its process.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use alloy_primitives::{Address, B256, address, hex, keccak256};
use rootlight::dev::{DevAccounts, DevConfig};
use rootlight::engine::{DevNode, HostInput, LocalNode};
use rootlight::exec::trace::{Script, ScriptEngine, ScriptError, ScriptRun};
use rootlight::rpc::LocalClient;
use serde_json::{Value, json};

use super::engine::{JsRun, Link, ScriptTime};
use super::process::serve;

/// Long enough for every script that ends.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

#[derive(Debug)]
struct ThreadEngine(Duration);

impl ScriptEngine for ThreadEngine {
    fn for_message(&self) -> Arc<dyn ScriptEngine> {
        Arc::new(Self(self.0))
    }

    fn begin(&self, script: &Script) -> Result<Box<dyn ScriptRun>, ScriptError> {
        let (their_input, output) = io::pipe().unwrap();
        let (input, their_output) = io::pipe().unwrap();
        let engine = move || serve(their_input, their_output, false);
        thread::Builder::new().stack_size(16 << 20).spawn(engine).unwrap();
        Ok(Box::new(JsRun::new(Link::of(input, output), script, ScriptTime::new(self.0))?))
    }
}

const CALLER: Address = address!("00000000000000000000000000000000000000aa");
/// Adds one to its slot 0, and returns the sum.
const COUNTER: Address = address!("00000000000000000000000000000000000000bb");
const REVERTS: Address = address!("00000000000000000000000000000000000000cc");
const DESTROYS: Address = address!("00000000000000000000000000000000000000dd");
const HEIR: Address = address!("00000000000000000000000000000000000000ee");

struct TestChain {
    client: LocalClient,
    from: String,
}

fn host_input() -> HostInput {
    HostInput { now: 1_900_000_000, entropy: Default::default() }
}

impl TestChain {
    fn new(limit: Duration) -> Self {
        let config = DevConfig::new(&DevAccounts::default());
        let mut node = DevNode::new(config, host_input()).unwrap();
        node.set_scripts(Arc::new(ThreadEngine(limit)));
        let mut chain = Self { client: LocalClient::new(Box::new(node)), from: String::new() };
        let accounts = chain.ask("eth_accounts", json!([])).unwrap();
        chain.from = accounts[0].as_str().unwrap().to_owned();
        for (address, code) in [
            (CALLER, caller_code()),
            (COUNTER, code("60005460010160005560005460005260206000f3")),
            (REVERTS, code("60006000fd")),
            (DESTROYS, code("60eeff")),
        ] {
            chain.ask("anvil_setCode", json!([address, hex::encode_prefixed(code)])).unwrap();
        }
        chain
    }

    fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
        let message = self.client.open(request.as_bytes());
        let answer = self.client.answer(message, host_input(), &|| false).into_text().unwrap();
        let mut answer: Value = serde_json::from_str(&answer).unwrap();
        match answer.get("error") {
            Some(error) => Err(format!("{} {}", error["code"], error["message"].as_str().unwrap())),
            None => Ok(answer["result"].take()),
        }
    }

    /// Sends a transaction to the caller and returns its hash.
    fn send(&mut self) -> Value {
        let call = json!({ "from": self.from, "to": CALLER, "gas": "0x7a120", "value": "0x5" });
        self.ask("eth_sendTransaction", json!([call])).unwrap()
    }

    /// Traces a call to the caller.
    fn call(&mut self, script: &str) -> Result<Value, String> {
        let call = json!({ "from": self.from, "to": CALLER, "gas": "0x7a120" });
        self.ask("debug_traceCall", json!([call, "latest", { "tracer": script }]))
    }
}

/// CALL of the counter, DELEGATECALL of it, CALL of the contract that reverts and of the one that destroys itself, CREATE
/// and CREATE2 of contracts without code.
fn caller_code() -> Vec<u8> {
    code(concat!(
        "6000600060006000600060bb5af150",
        "600060006000600060bb5af450",
        "6000600060006000600060cc5af150",
        "6000600060006000600060dd5af150",
        "600160006000f050",
        "6007600160006000f550",
        "00",
    ))
}

fn code(text: &str) -> Vec<u8> {
    hex::decode(text).unwrap()
}

/// Counts opcodes.
const OPCODES: &str = "{
    counts: {},
    step: function(log, db) { var name = log.op.toString(); this.counts[name] = (this.counts[name] || 0) + 1; },
    fault: function(log, db) {},
    result: function(ctx, db) { return this.counts; },
}";

#[test]
fn a_script_counts_the_opcodes_that_the_native_tracer_shows() {
    let mut chain = TestChain::new(LONG);
    let hash = chain.send();
    let steps = chain.ask("debug_traceTransaction", json!([hash, { "tracer": "structLogger" }])).unwrap();
    let mut counts = BTreeMap::<String, u64>::new();
    for step in steps["structLogs"].as_array().unwrap() {
        *counts.entry(step["op"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    assert!(counts["CREATE2"] == 1 && counts["SSTORE"] == 2, "{counts:?}");
    let traced = chain.ask("debug_traceTransaction", json!([hash, { "tracer": OPCODES }])).unwrap();
    assert_eq!(traced, json!(counts));
    let block = chain.ask("debug_traceBlockByNumber", json!(["latest", { "tracer": OPCODES }])).unwrap();
    assert_eq!(block[0], json!({ "txHash": hash, "result": counts }));
    assert_eq!(block[1]["result"], json!({}), "REMASC runs no code");
    assert_eq!(block.as_array().unwrap().len(), 2);
    let traced = chain.call(OPCODES).unwrap();
    assert_eq!(traced["SSTORE"], json!(2), "{traced}");
    let call = json!({ "from": chain.from, "to": CALLER, "gas": "0x7a120" });
    let bundle = json!([{ "transactions": [call, call] }, { "transactions": [call] }]);
    let many = chain.ask("debug_traceCallMany", json!([bundle, "latest", { "tracer": OPCODES }])).unwrap();
    assert_eq!((many[0][1]["SSTORE"].as_u64(), many[1][0]["SSTORE"].as_u64()), (Some(2), Some(2)));
}

/// The steps that fail, and how often: before they begin `step` gets the error, in the middle `fault`.
#[test]
fn faults_are_told_as_geth_tells_them() {
    const SCRIPT: &str = "{
        told: [],
        step: function(log) { if (log.getError()) this.told.push(['step', log.op.toString(), log.getError(), log.getCost() > log.getGas()]); },
        fault: function(log) { this.told.push(['fault', log.op.toString(), log.getError()]); },
        result: function(ctx) { return { told: this.told, error: ctx.error }; },
    }";
    let mut chain = TestChain::new(LONG);
    let traced = chain.call(SCRIPT).unwrap();
    assert_eq!(traced, json!({ "told": [["fault", "REVERT", "execution reverted"]] }));
    for (code, told, costs_more) in [
        ("0x600456", ["fault", "invalid jump destination"], Value::Null),
        ("0x01", ["step", "stack underflow"], json!(false)),
        ("0x5b600056", ["step", "out of gas"], json!(true)),
        ("0x0c", ["fault", "invalid opcode"], Value::Null),
    ] {
        let call = json!({ "to": HEIR, "gas": "0x5900" });
        let options = json!({ "tracer": SCRIPT, "stateOverrides": { HEIR.to_string(): { "code": code } } });
        let traced = chain.ask("debug_traceCall", json!([call, "latest", options])).unwrap();
        assert_eq!(traced["error"], json!(told[1]), "{code}");
        assert_eq!(traced["told"].as_array().unwrap().len(), 1, "{code}");
        let only = &traced["told"][0];
        assert_eq!([&only[0], &only[2], &only[3]], [&json!(told[0]), &json!(told[1]), &costs_more], "{code}");
    }
}

/// Builds the tree of calls that callTracer shows.
const TREE: &str = "{
    stack: [{}],
    hex: function(number) { return '0x' + number.toString(16); },
    fault: function() {},
    enter: function(frame) {
        var call = { type: frame.getType(), from: toHex(frame.getFrom()), to: toHex(frame.getTo()) };
        if (call.type !== 'SELFDESTRUCT') {
            call.gas = this.hex(frame.getGas());
            call.input = toHex(frame.getInput());
        }
        if (frame.getValue() !== undefined) call.value = this.hex(frame.getValue());
        this.stack.push(call);
    },
    exit: function(frame) {
        var call = this.stack.pop();
        if (call.type !== 'SELFDESTRUCT') call.gasUsed = this.hex(frame.getGasUsed());
        if (frame.getOutput().length > 0) call.output = toHex(frame.getOutput());
        if (frame.getError()) call.error = frame.getError();
        var parent = this.stack[this.stack.length - 1];
        (parent.calls = parent.calls || []).push(call);
    },
    result: function(ctx) {
        var call = { type: ctx.type, from: toHex(ctx.from), to: toHex(ctx.to), value: this.hex(ctx.value),
            gas: this.hex(ctx.gas), gasUsed: this.hex(ctx.gasUsed), input: toHex(ctx.input) };
        if (ctx.output.length > 0) call.output = toHex(ctx.output);
        if (ctx.error) call.error = ctx.error;
        if (this.stack[0].calls) call.calls = this.stack[0].calls;
        return call;
    },
}";

/// A tree without what only one of the tracers shows: the reason of a revert, the value of a DELEGATECALL, what a
/// destruction uses, and the address of a creation that failed.
fn as_told(mut call: Value) -> Value {
    let kind = call["type"].as_str().unwrap().to_owned();
    let fields = call.as_object_mut().unwrap();
    fields.remove("revertReason");
    if kind == "DELEGATECALL" {
        fields.remove("value");
    }
    if kind.starts_with("CREATE") && fields.contains_key("error") {
        fields.remove("to");
    }
    if kind == "SELFDESTRUCT" {
        fields.retain(|name, _| ["type", "from", "to", "value"].contains(&name.as_str()));
    }
    if let Some(Value::Array(calls)) = fields.get_mut("calls") {
        calls.iter_mut().for_each(|inner| *inner = as_told(inner.take()));
    }
    call
}

#[test]
fn a_script_shows_the_tree_of_calls_of_the_native_tracer() {
    let mut chain = TestChain::new(LONG);
    for hash in [chain.send(), chain.send()] {
        let native = chain.ask("debug_traceTransaction", json!([hash, { "tracer": "callTracer" }])).unwrap();
        let kinds: Vec<&str> =
            native["calls"].as_array().unwrap().iter().filter_map(|call| call["type"].as_str()).collect();
        assert_eq!(kinds, ["CALL", "DELEGATECALL", "CALL", "CALL", "CREATE", "CREATE2"]);
        let traced = chain.ask("debug_traceTransaction", json!([hash, { "tracer": TREE }])).unwrap();
        assert_eq!(as_told(traced), as_told(native));
    }
    let block = |tracer: &str| json!(["latest", { "tracer": tracer }]);
    let native = chain.ask("debug_traceBlockByNumber", block("callTracer")).unwrap();
    let traced = chain.ask("debug_traceBlockByNumber", block(TREE)).unwrap();
    for (native, traced) in native.as_array().unwrap().iter().zip(traced.as_array().unwrap()) {
        assert_eq!(as_told(traced["result"].clone()), as_told(native["result"].clone()));
    }
}

#[test]
fn the_state_that_a_script_reads_is_the_one_before_the_instruction() {
    const SCRIPT: &str = "{
        seen: [],
        word: function(log, db, slot) { return parseInt(toHex(db.getState(log.contract.getAddress(), slot)), 16); },
        step: function(log, db) {
            var name = log.op.toString();
            if (name === 'SLOAD' || name === 'SSTORE') {
                var slot = toWord(log.stack.peek(0).toString(16));
                this.seen.push([name, toHex(log.contract.getAddress()), this.word(log, db, slot)]);
            }
            if (name === 'SELFDESTRUCT') {
                var heir = toAddress(log.stack.peek(0).toString(16));
                this.seen.push([name, db.getBalance(log.contract.getAddress()).toString(), db.exists(heir)]);
            }
        },
        fault: function() {},
        result: function(ctx, db) {
            var heir = toAddress('0xee');
            return { seen: this.seen, heir: db.getBalance(heir).toString(), nonce: db.getNonce(ctx.from),
                counter: toHex(db.getState(toAddress('0xbb'), toWord('0x0'))), code: db.getCode(toAddress('cc')).length,
                missing: db.exists(toAddress('0x1234')), value: ctx.value.toString() };
        },
    }";
    let mut chain = TestChain::new(LONG);
    chain.ask("anvil_setBalance", json!([DESTROYS, "0x9"])).unwrap();
    let hash = chain.send();
    let traced = chain.ask("debug_traceTransaction", json!([hash, { "tracer": SCRIPT }])).unwrap();
    let (counter, caller) = (COUNTER.to_string().to_lowercase(), CALLER.to_string().to_lowercase());
    let one = |at: &str| [json!(["SLOAD", at, 0]), json!(["SSTORE", at, 0]), json!(["SLOAD", at, 1])];
    let seen: Vec<Value> =
        one(&counter).into_iter().chain(one(&caller)).chain([json!(["SELFDESTRUCT", "9", false])]).collect();
    let word = format!("{:#x}", B256::with_last_byte(1));
    let expected = json!({ "seen": seen, "heir": "9", "nonce": 1, "counter": word, "code": 5, "missing": false, "value": "5" });
    assert_eq!(traced, expected);
}

/// The tracer of a bundler for validations: it collects each call's opcodes, storage and end, and the hashed data.
const COLLECTOR: &str = "{
    calls: [], keccak: [], ends: [], level: {}, before: '',
    setup: function(config) { this.ignored = new RegExp(JSON.parse(config).ignored); },
    enter: function(frame) {
        this.ends.push({ type: frame.getType(), to: toHex(frame.getTo()), method: toHex(frame.getInput()).slice(0, 10) });
    },
    exit: function(frame) { this.ends.push({ type: frame.getError() ? 'REVERT' : 'RETURN', gasUsed: frame.getGasUsed() }); },
    fault: function(log, db) { this.ends.push({ type: 'FAULT', depth: log.getDepth() }); },
    step: function(log, db) {
        var name = log.op.toString(), depth = log.getDepth();
        var level = this.level[depth] = this.level[depth] || { opcodes: {}, access: {} };
        if (!this.ignored.test(name)) level.opcodes[name] = (level.opcodes[name] || 0) + 1;
        if (name === 'SLOAD' || name === 'SSTORE') {
            var address = toHex(log.contract.getAddress());
            var slot = toHex(toWord(log.stack.peek(0).toString(16)));
            var access = level.access[address] = level.access[address] || { reads: {}, writes: {} };
            if (name === 'SSTORE') access.writes[slot] = (access.writes[slot] || 0) + 1;
            else if (access.reads[slot] === undefined) access.reads[slot] = toHex(db.getState(toAddress(address), toWord(slot)));
        }
        if (name === 'KECCAK256') {
            var start = log.stack.peek(0).valueOf(), size = log.stack.peek(1).valueOf();
            this.keccak.push(toHex(log.memory.slice(start, start + size)));
        }
        this.before = name;
    },
    result: function(ctx, db) { return { levels: this.level, keccak: this.keccak, ends: this.ends, output: toHex(ctx.output) }; },
}";

#[test]
fn a_script_collects_what_a_bundler_needs() {
    let mut chain = TestChain::new(LONG);
    // Hashes 32 bytes of the memory, beyond its end too, and calls the counter with four bytes of data.
    let code = "0x602a600052604060002050600060006004601c600060bb5af15000";
    let call = json!({ "from": chain.from, "to": HEIR, "gas": "0x7a120" });
    let options = json!({
        "tracer": COLLECTOR,
        "tracerConfig": { "ignored": "^(PUSH|POP|DUP|SWAP)" },
        "stateOverrides": { HEIR.to_string(): { "code": code } },
    });
    let traced = chain.ask("debug_traceCall", json!([call, "latest", options])).unwrap();
    let hashed = format!("{}2a{}", "00".repeat(31), "00".repeat(32));
    assert_eq!(traced["keccak"], json!([format!("0x{hashed}")]));
    assert_eq!(
        traced["ends"][0],
        json!({ "type": "CALL", "to": COUNTER.to_string().to_lowercase(), "method": "0x0000002a" })
    );
    assert_eq!(traced["ends"][1]["type"], "RETURN");
    let outer = json!({ "MSTORE": 1, "KECCAK256": 1, "GAS": 1, "CALL": 1, "STOP": 1 });
    assert_eq!(traced["levels"]["1"]["opcodes"], outer);
    let access = &traced["levels"]["2"]["access"][COUNTER.to_string().to_lowercase()];
    let zero = format!("{:#x}", B256::ZERO);
    assert_eq!(*access, json!({ "reads": { zero.as_str(): zero }, "writes": { zero.as_str(): 1 } }));
    assert_eq!(traced["output"], "0x");
}

#[test]
fn helpers_are_those_of_geth() {
    const SCRIPT: &str = "{
        fault: function() {},
        result: function(ctx, db) {
            var from = toAddress('0xaa');
            return [
                toHex([1, 255]), toHex(toWord('0xabc')), toHex(toAddress(toWord('0xabc'))), toHex(slice(toWord('0x0102'), 30, 32)),
                toHex(toContract(from, 7)), toHex(toContract2(from, '0x07', '0x00')),
                isPrecompiled(toAddress('0x01')), isPrecompiled(from), isPrecompiled(toAddress('0x0000000000000000000000000000000001000006')),
                bigInt(5).add('7').multiply(2).toString(16), bigInt('ff', 16).shiftLeft(4).equals(4080), bigInt('100').compare(bigInt(99)),
                bigInt(7).divmod(2).remainder.isUnit(), bigInt(3).modPow(4, 5).toJSNumber(), bigInt(10) > bigInt(9), ctx.type,
                JSON.stringify(bigInt(12)), ctx.gasPrice.isZero(), ctx.txHash === undefined,
            ];
        },
    }";
    let mut chain = TestChain::new(LONG);
    let traced = chain.call(SCRIPT).unwrap();
    let created2 = CALLER.create2(B256::with_last_byte(7), keccak256([0]));
    let low = |address: Address| address.to_string().to_lowercase();
    let expected = json!([
        "0x01ff",
        format!("0x{:064x}", 0xabc),
        format!("0x{:040x}", 0xabc),
        "0x0102",
        low(CALLER.create(7)),
        low(created2),
        true,
        false,
        true,
        "18",
        true,
        1,
        true,
        1,
        true,
        "CALL",
        "\"12\"",
        true,
        true,
    ]);
    assert_eq!(traced, expected);
}

#[test]
fn scripts_that_are_no_tracers_are_refused() {
    let mut chain = TestChain::new(LONG);
    for (script, why) in [
        ("{fault: function() {}}", "no function result"),
        ("{result: function() {}}", "no function fault"),
        ("{fault: function() {}, result: function() {}, enter: function() {}}", "both or none"),
        ("(function() {})", "not an object"),
        ("{fault", "script: "),
        ("{fault: function() {}, result: function() {} \u{0}}", "script: "),
        ("{fault: 1, get result() { throw new Error('sly') }}", "sly"),
        ("{setup: function() { throw 'bare' }, fault: function() {}, result: function() {}}", "bare"),
        (
            "{fault: function() {}, enter: function() { nothing() }, exit: function() {}, result: function() {}}",
            "enter: ",
        ),
        (
            "{fault: function() {}, step: function(log) { log.stack.peek(99) }, result: function() {}}",
            "step: word 99",
        ),
        (
            "{fault: function() {}, step: function(log) { log.memory.slice(0, 9e9) }, result: function() {}}",
            "step: memory of 0 bytes",
        ),
        ("{fault: function() { throw new Error('twice') }, result: function() {}}", "fault: twice"),
        ("{fault: function() {}, result: function() { return 1n }}", "result: "),
        ("{fault: function() {}, result: function() { var a = []; a.push(a); return a }}", "result: "),
        (
            "{fault: function() {}, result: function() { return 'x'.repeat(13000000) }}",
            "more than 12582912 bytes",
        ),
        (
            "{fault: function() {}, step: function(log, db) { this.db = db }, enter: function() { this.db.exists(toAddress('0x1')) }, exit: function() {}, result: function() {}}",
            "enter: the state can be read in",
        ),
    ] {
        let error = chain.call(script).unwrap_err();
        assert!(
            error.starts_with("-32602 tracer in JavaScript: ") && error.contains(why),
            "{script}: {error}"
        );
    }
    let long = chain.call(&format!("{{{}}}", " ".repeat(128 << 10))).unwrap_err();
    assert!(long.contains("at most 131072 bytes"), "{long}");
}

#[test]
fn a_script_reads_the_state_a_limited_number_of_times() {
    let script = in_result("for (var i = 0; ; i++) db.exists(toWord(i.toString(16)))");
    let script = script.replace("result: function()", "result: function(ctx, db)");
    let mut chain = TestChain::new(LONG);
    let hash = chain.send();
    let error = chain.ask("debug_traceTransaction", json!([hash, { "tracer": script }])).unwrap_err();
    assert!(error.ends_with("result: a script reads the state at most 16384 times"), "{error}");
    // The run of a call has the same limit, and reads something itself.
    let error = chain.call(&script).unwrap_err();
    let words = "more than 16384 blocks and values of the state at once";
    assert!(error.starts_with("-32005 ") && error.contains(words), "nothing is proven here: {error}");
}

fn in_result(body: &str) -> String {
    format!("{{fault: function() {{}}, result: function() {{ {body} }}}}")
}

#[test]
fn scripts_that_take_too_long_end_with_an_error() {
    let mut chain = TestChain::new(SHORT);
    for body in [
        "for (;;);",
        "try { for (;;); } finally { for (;;); }",
        "return /^(a+)+$/.test('a'.repeat(40) + 'b')",
        "return new Proxy({}, { ownKeys: function() { for (;;); } })",
        "return { toJSON: function() { for (;;); } }",
    ] {
        let error = chain.call(&in_result(body)).unwrap_err();
        assert!(error.ends_with("the script took longer than 300 ms"), "{body}: {error}");
    }
    for script in [
        "{setup: function() { for (;;); }, fault: function() {}, result: function() {}}",
        "{step: function() { for (;;); }, fault: function() {}, result: function() {}}",
        "(function() { for (;;); })()",
    ] {
        let error = chain.call(script).unwrap_err();
        assert!(error.ends_with("the script took longer than 300 ms"), "{script}: {error}");
    }
}

#[test]
fn hostile_scripts_end_with_an_error_and_leave_nothing() {
    let mut chain = TestChain::new(LONG);
    for (body, reason) in [
        ("var all = []; for (;;) all.push(new Array(100000).fill(1))", "out of memory"),
        ("var text = 'x'; for (;;) text += text", "result: "),
        ("return new Uint8Array(1e9)", "result: "),
        ("return (function f() { return f() + 1 })()", "stack"),
        ("return { toJSON: function() { return this.toJSON() } }", "stack"),
        ("Array.prototype.push = Uint8Array.prototype.slice = null; throw Object.create(null)", "no error"),
        (
            "var e = new Error(); Object.defineProperty(e, 'message', { get: function() { throw e } }); throw e",
            "an error",
        ),
        ("throw new Error('x'.repeat(1000000))", "xxx"),
        ("return eval('('.repeat(100000))", "result: "),
        ("return new Proxy({}, { ownKeys: function() { throw new Error('trap') } })", "trap"),
    ] {
        let error = chain.call(&in_result(body)).unwrap_err();
        assert!(error.contains(reason), "{body}: {error}");
        assert!(error.len() < 600, "{error}");
    }
    let leaves = "{step: function() { Object.prototype.left = 1 }, fault: function() {}, result: function() { return {}.left }}";
    let hash = chain.send();
    let block = json!(["latest", { "tracer": leaves }]);
    let traced = chain.ask("debug_traceBlockByNumber", block).unwrap();
    assert_eq!((&traced[0]["txHash"], &traced[0]["result"]), (&hash, &json!(1)));
    assert_eq!(traced[1]["result"], Value::Null, "the next transaction");
}

#[test]
fn the_scripts_of_one_message_share_its_time() {
    let time = ScriptTime::new(SHORT);
    assert_eq!(time.left(), Ok(SHORT));
    time.clone().spend(SHORT);
    assert_eq!(time.left(), Err(ScriptError("the script took longer than 300 ms".into())));
}

/// A program that is no engine, which ends at once, and one that does not exist.
#[cfg(target_os = "linux")]
#[test]
fn a_program_that_is_no_engine_gives_an_error() {
    let script = Script { source: OPCODES.into(), config: "{}".into() };
    let program = |path: &str| super::EngineProgram::new(path, "x");
    let begun = |path: &str| super::engine::JsEngine::new(program(path), LONG).begin(&script);
    let error = begun("/nonexistent/engine").err().unwrap();
    assert!(error.0.starts_with("cannot start the engine"), "{error}");
    let rules = rootlight::consensus::Network::regtest().rules(1);
    let error = match begun("/bin/true") {
        Ok(mut run) => run.start(rules).unwrap_err(),
        Err(error) => error,
    };
    assert!(error.0.starts_with("the engine ended early"), "{error}");
}
