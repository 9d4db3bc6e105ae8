//! What a follower tells of its progress.

use std::sync::Arc;

use rootlight::dev::DevConfig;
use rootlight::engine::{FollowNode, HostInput};
use rootlight::exec::CallPolicy;
use rootlight::local::LocalChain;
use rootlight::rpc::{LocalClient, MessageProgress};
use rootlight::types::B256;
use serde_json::{Value, json};

#[test]
fn a_follower_below_the_announced_height_is_not_synced() {
    let DevConfig { network, genesis, .. } = DevConfig::reference();
    let chain = LocalChain::new(network, genesis.header, genesis.state, None).unwrap();
    let host_input = HostInput { now: 1_900_000_000, entropy: B256::repeat_byte(3) };
    let node = FollowNode::new(chain, "Rootlight/f", "node", CallPolicy::default(), host_input);
    let mut client = LocalClient::new(Box::new(node));
    let mut ask = |announced: Option<u64>, method: &str| {
        if let Some(height) = announced {
            client.node().announced(height);
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": []}).to_string();
        let message = MessageProgress::read_from(&Default::default(), Arc::default(), message.as_bytes());
        let answer = client.answer(message, host_input, &|| false).into_text().unwrap();
        serde_json::from_str::<Value>(&answer).unwrap()["result"].clone()
    };
    let (status, syncing) = (ask(None, "rootlight_syncStatus"), ask(None, "eth_syncing"));
    assert_eq!(
        (&status["synced"], &status["highestBlock"], &syncing),
        (&json!(true), &json!("0x0"), &json!(false))
    );
    let (status, syncing) = (ask(Some(7), "rootlight_syncStatus"), ask(None, "eth_syncing"));
    assert_eq!((&status["synced"], &status["highestBlock"]), (&json!(false), &json!("0x7")));
    assert_eq!(syncing["highestBlock"], "0x7");
}
