//! Calls that a server tries on the thread that serves their connection: they end soon, or leave the whole call to a later
//! run that gives the same answer as without an attempt.

use std::cell::Cell;
use std::sync::Arc;

use rootlight::rpc::MessageProgress;
use serde_json::{Value, json};

use crate::fixture::ALICE;
use crate::support::dev::DevClient;

/// Where the code of a test is.
const CODE: &str = "0x00000000000000000000000000000000000000c0";

/// A call of this code (without `0x`), in JSON-RPC.
fn call(dev: &mut DevClient, code: &str, block: &str) -> String {
    dev.get("anvil_setCode", json!([CODE, format!("0x{code}")]));
    let params = json!([{ "to": CODE, "gas": "0x989680" }, block]);
    json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": params }).to_string()
}

/// Whether an attempt finishes the message, the number of times at which it could have been interrupted, and the answer.
/// The answer must be that of a run without an attempt.
fn attempt(dev: &mut DevClient, message: &str) -> (bool, u64, Value) {
    let snapshot = dev.client.snapshot();
    let mut tried = MessageProgress::read_from(&dev.client.dispatcher(), Arc::default(), message.as_bytes());
    assert!(tried.may_be_short());
    let asked = Cell::new(0);
    let interrupt = || {
        asked.set(asked.get() + 1);
        false
    };
    let reply = tried.begin(&*snapshot, dev.now, &interrupt);
    let ended = reply.is_some();
    let reply = reply.unwrap_or_else(|| tried.read(&*snapshot, dev.now, &|| false));
    let answer = reply.into_text().unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer, dev.send(message));
    (ended, asked.get(), answer)
}

/// PUSH1 1, PUSH1 0, MSTORE, PUSH1 32, PUSH1 0, RETURN.
const RETURN_ONE: &str = "600160005260206000f3";

/// STATICCALL of a contract below address 0x100 with so many zero bytes, whose result is dropped, and `RETURN_ONE`.
fn native(address: u8, input: u16) -> String {
    // PUSH1 0, PUSH1 0, PUSH2 input, PUSH1 0, PUSH1 address, GAS, STATICCALL, POP
    format!("6000600061{input:04x}600060{address:02x}5afa50{RETURN_ONE}")
}

/// KECCAK256 of so many bytes of memory, whose result is dropped, and `RETURN_ONE`.
fn hash(bytes: u32) -> String {
    format!("62{bytes:06x}60002050{RETURN_ONE}")
}

#[test]
fn an_attempt_ends_before_an_instruction_that_takes_long() {
    let mut dev = DevClient::instant();
    let short = [RETURN_ONE.to_owned(), hash(0x8000), native(1, 0x80), native(2, 0x400), native(4, 0x1000)];
    let long = [
        hash(0x2_0000),
        // PUSH3 0x020000, PUSH1 0, PUSH1 0, CALLDATACOPY
        format!("620200006000600037{RETURN_ONE}"),
        // PUSH1 1, PUSH3 0x020000, MSTORE8
        format!("60016202000053{RETURN_ONE}"),
        // PUSH3 0x020000, PUSH1 0, PUSH1 0, PUSH1 0, PUSH1 0xee, GAS, STATICCALL, POP: memory for an output of 128 KiB, which
        // is hashed.
        format!("6202000060006000600060ee5afa50{}", hash(0x2_0000)),
        // 60 + 12 * 0xf000 / 32 gas
        native(2, 0xf000),
        // A pairing of no pairs costs 45,000 gas or more.
        native(8, 0),
    ];
    for code in short {
        let message = call(&mut dev, &code, "latest");
        let (ended, _, answer) = attempt(&mut dev, &message);
        assert!(ended, "{code}");
        assert_eq!(answer["result"], format!("{:#066x}", 1), "{code}");
    }
    for code in long {
        let message = call(&mut dev, &code, "latest");
        assert!(!attempt(&mut dev, &message).0, "{code}");
    }
}

#[test]
fn an_attempt_ends_before_the_bridge_runs() {
    let mut dev = DevClient::instant();
    let bridge = "0x0000000000000000000000000000000001000006";
    // getFederationAddress()
    let direct = json!({ "jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [{ "to": bridge, "data": "0x6923fa85" }, "latest"] });
    assert!(!attempt(&mut dev, &direct.to_string()).0);
    // PUSH1 0, PUSH1 0, PUSH1 0, PUSH1 0, PUSH4 bridge, GAS, STATICCALL, POP
    let message = call(&mut dev, &format!("600060006000600063010000065afa50{RETURN_ONE}"), "latest");
    assert!(!attempt(&mut dev, &message).0);
}

/// The loop hashes 16 KiB until its 10,000,000 gas are used up.
#[test]
fn an_attempt_can_be_interrupted_after_little_gas() {
    let mut dev = DevClient::instant();
    // JUMPDEST, PUSH2 0x4000, PUSH1 0, KECCAK256, POP, PUSH1 0, JUMP
    let message = call(&mut dev, "5b61400060002050600056", "latest");
    let (ended, asked, answer) = attempt(&mut dev, &message);
    assert!(ended && answer["error"].is_object(), "{answer}");
    assert!(asked >= 10_000_000 / 10_000, "{asked}");
}

/// With too little time for its transactions, the pending block would be another one.
#[test]
fn an_attempt_does_not_build_the_pending_block() {
    let mut dev = DevClient::instant();
    dev.get("evm_setAutomine", json!([false]));
    let message = call(&mut dev, RETURN_ONE, "pending");
    dev.get("eth_sendTransaction", json!([{ "from": ALICE, "to": ALICE, "value": "0x1", "gas": "0x5208" }]));
    assert!(!attempt(&mut dev, &message).0);
}
