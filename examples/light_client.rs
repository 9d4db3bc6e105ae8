//! A light client over a transport of one's own. The core does no I/O: it says what to ask the upstream, and checks what
//! comes back. Here the upstream is a development chain in the same process.
//!
//!     cargo run --example light_client

use serde_json::{Value, json};

mod common;

fn main() {
    let mut node = common::ExampleNode::start();
    let accounts = node.request("eth_accounts", &json!([])).expect("accounts");
    let transfer = json!([{ "from": accounts[0], "to": accounts[1], "value": "0xde0b6b3a7640000" }]);
    node.request("eth_sendTransaction", &transfer).expect("a transfer");

    let client = common::synchronized(&mut node);
    let head = client.sync().chain().expect("a chain").head().clone();
    println!("synchronized to block {} {}", head.number, head.hash());

    // The balance comes with a proof under the state root of a verified header, or not at all.
    let response = common::ask(&client, &mut node, "eth_getBalance", &json!([accounts[1], "latest"]));
    println!("balance of {}: {}", accounts[1], response["result"]);
    assert_eq!(response["result"], "0x21e27c1806e59a40000", "10,001 RBTC");

    // The proof of the answer: how many blocks and how much work are on top.
    let response = common::ask(&client, &mut node, "rootlight_verification", &json!(["latest"]));
    println!("{:#}", response["result"]);
    assert_eq!(response["result"]["level"], Value::from("verified"));
}
