//! A complete Rootstock development chain inside a program or a test: no process to start, no port, no clock.
//!
//!     cargo run --example dev_chain
//!     cargo test --examples

use serde_json::json;

mod common;

fn main() {
    let mut node = common::ExampleNode::start();
    let receipt = deploy(&mut node);
    println!("deployed at {} with {} gas", receipt["contractAddress"], receipt["gasUsed"]);
}

/// Deploys a contract whose code is one STOP, and returns the receipt.
fn deploy(node: &mut common::ExampleNode) -> serde_json::Value {
    let accounts = node.request("eth_accounts", &json!([])).expect("accounts");
    // PUSH1 1, PUSH1 0, RETURN: returns one zero byte of memory as the code.
    let create = json!([{ "from": accounts[0], "data": "0x60016000f3" }]);
    let hash = node.request("eth_sendTransaction", &create).expect("a transaction");
    node.request("eth_getTransactionReceipt", &json!([hash])).expect("a receipt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_has_code_and_a_snapshot_takes_it_back() {
        let mut node = common::ExampleNode::start();
        let snapshot = node.request("evm_snapshot", &json!([])).expect("a snapshot");
        let receipt = deploy(&mut node);
        assert_eq!(receipt["status"], "0x1");
        let code = |node: &mut common::ExampleNode| {
            node.request("eth_getCode", &json!([receipt["contractAddress"], "latest"]))
        };
        assert_eq!(code(&mut node), Ok("0x00".into()));
        assert_eq!(node.request("evm_revert", &json!([snapshot])), Ok(true.into()));
        assert_eq!(code(&mut node), Ok("0x".into()));
    }
}
