//! Which responses of a peer are evidence against it, and which an honest peer may give too.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rootlight::consensus::Network;
use rootlight_node::light::LightService;
use serde_json::{Value, json};

use crate::chain::RecordedChain;
use crate::common::ask;
use crate::hostile_peer::{HostilePeer, PeerTrick};
use crate::recorded::light;

/// The head of the chain; the recording has its state and that of block 60.
const HEAD: u64 = 400;

/// The first account of the recording's genesis.
const COW: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

/// A light client whose only upstream is a peer that plays this trick.
async fn among(chain: &Arc<RecordedChain>, trick: PeerTrick) -> (HostilePeer, LightService) {
    let peer = HostilePeer::start(chain.clone(), trick, 7).await;
    let light = light(std::slice::from_ref(&peer.address), Network::regtest().genesis_hash).await;
    (peer, light)
}

/// What the light client holds against its peer.
async fn record(light: &LightService) -> Value {
    ask(light, "rootlight_upstreams", json!([])).await["result"][0].take()
}

/// The evidence of a lie, once there is one.
async fn caught(light: &LightService) -> Value {
    for _ in 0..300 {
        let record = record(light).await;
        if record["lies"] != json!(0) {
            let all = record["misbehaviour"].as_array().unwrap();
            return all.iter().find(|evidence| evidence["lie"] == true).unwrap().clone();
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not caught: {}", record(light).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_with_another_hash_than_the_one_asked_for_are_evidence() {
    let Some(chain) = RecordedChain::read(HEAD) else { return };
    for trick in [PeerTrick::OtherBlock, PeerTrick::Harder] {
        let (peer, light) = among(&chain, trick).await;
        let rule = caught(&light).await["rule"].as_str().unwrap().to_owned();
        assert!(rule.contains("a header of the peer has the hash"), "{trick:?}: {rule}");
        let name = record(&light).await["name"].clone();
        assert!(name.as_str().unwrap().starts_with(&peer.address.id.to_string()), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chunks_of_no_state_at_all_are_evidence() {
    let Some(chain) = RecordedChain::read(HEAD) else { return };
    let (_peer, light) = among(&chain, PeerTrick::EmptyChunks).await;
    assert_eq!(record(&light).await["lies"], 0, "its headers are true");
    let answer = ask(&light, "eth_getBalance", json!([COW, "latest"])).await;
    assert!(answer["error"].is_object(), "{answer}");
    let evidence = caught(&light).await;
    assert!(evidence["rule"].as_str().unwrap().contains("chunk: no node"), "{evidence}");
    assert_eq!(evidence["method"], "eth_getProof");
}

/// A peer on another branch gives chunks of another state under the same number, and a peer may lack anything.
#[tokio::test(flavor = "multi_thread")]
async fn responses_of_honest_peers_are_no_evidence() {
    let Some(chain) = RecordedChain::read(HEAD) else { return };
    let tricks = [PeerTrick::Honest, PeerTrick::OlderState, PeerTrick::NoChunks, PeerTrick::Behind(60)];
    // At a time, because silence takes six seconds.
    join_all(tricks.map(|trick| is_not_blamed(&chain, trick))).await;
}

async fn is_not_blamed(chain: &Arc<RecordedChain>, trick: PeerTrick) {
    let (_peer, light) = among(chain, trick).await;
    for (method, params) in [
        ("eth_getBalance", json!([COW, "latest"])),
        ("eth_getBlockByHash", json!([format!("0x{}", "17".repeat(32)), false])),
        ("eth_getBlockByNumber", json!(["0x190", true])),
        ("eth_getTransactionReceipt", json!([format!("0x{}", "17".repeat(32))])),
    ] {
        let answer = ask(&light, method, params).await;
        let has_state = matches!(trick, PeerTrick::Honest | PeerTrick::Behind(_));
        let proven = method == "eth_getBlockByNumber" && trick != PeerTrick::Behind(60)
            || method == "eth_getBalance" && has_state;
        let shown = answer["result"].is_string() || answer["result"].is_object();
        assert_eq!(shown, proven, "{trick:?} {method}: {answer}");
    }
    let record = record(&light).await;
    assert_eq!(record["lies"], 0, "{trick:?}: {record}");
}
