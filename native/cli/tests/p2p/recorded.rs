//! A light client of the recorded chain, over peers alone.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, hex, keccak256};
use flate2::read::GzDecoder;
use rootlight::consensus::{Checkpoint, Network};
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::peer_server::PeerServer;
use rootlight_p2p::session::RateLimits;
use rootlight_server::service::Service;
use rootlight_upstream::SharedUpstream;
use rootlight_upstream::p2p::{Identity, PeerAddress, PeerUpstream, StateNodes};
use serde_json::{Value, json};

use crate::chain::{RecordedChain, serve};
use crate::common::ask;

/// A light client that knows nothing but block 0 and these peers.
pub(crate) async fn light(peers: &[PeerAddress], genesis: B256) -> LightService {
    light_within(peers, genesis, RateLimits::default()).await
}

pub(crate) async fn light_within(peers: &[PeerAddress], genesis: B256, limits: RateLimits) -> LightService {
    let network = Arc::new(Network::regtest());
    let identity = Arc::new(Identity::open(&network, genesis, None).unwrap().with_limits(limits));
    let nodes = Arc::new(StateNodes::default());
    let upstream = |peer: &PeerAddress| -> SharedUpstream {
        Arc::new(PeerUpstream::new(identity.clone(), peer.clone(), network.clone(), nodes.clone()))
    };
    let checkpoint = Checkpoint { number: 0, hash: genesis, total_difficulty: None };
    let options = LightOptions { max_age: 0, ..LightOptions::default() };
    let upstreams = peers.iter().map(upstream).collect();
    let light = LightService::start(Network::regtest(), checkpoint, upstreams, options);
    light.settled(Duration::from_secs(120)).await;
    light
}

/// The light client, and what it talks to, of the recorded chain up to this block.
async fn recorded(head: u64) -> Option<(PeerServer, Arc<RecordedChain>, LightService)> {
    let chain = RecordedChain::read(head)?;
    let (server, address) = serve(chain.clone()).await;
    let light = light(&[address], Network::regtest().genesis_hash).await;
    assert!(light.is_synced(), "{:?}", light.health());
    Some((server, chain, light))
}

fn keys() -> Vec<Value> {
    let path = crate::common::shared("vectors/p2p/chain/keys.json.gz").unwrap();
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Accounts, codes and storage cells, present and absent, as the recorded node's own JSON-RPC gave them: all verified.
#[tokio::test(flavor = "multi_thread")]
async fn recorded_state_is_proven_by_chunks_alone() {
    let Some((_server, _chain, light)) = recorded(5060).await else { return };
    assert_eq!(ask(&light, "eth_blockNumber", json!([])).await["result"], "0x13c4");
    let mut counts = BTreeMap::<&str, usize>::new();
    for state in keys() {
        let block = format!("{:#x}", state["block"].as_u64().unwrap());
        for key in state["keys"].as_array().unwrap().iter().step_by(3) {
            let address = format!("0x{}", key["address"].as_str().unwrap());
            let rpc = &key["rpc"];
            let kind = key["kind"].as_str().unwrap();
            let questions = match kind {
                "account" => vec![
                    ("eth_getBalance", json!([address, block]), rpc["balance"].clone()),
                    ("eth_getTransactionCount", json!([address, block]), rpc["nonce"].clone()),
                ],
                "code" => vec![("eth_getCode", json!([address, block]), rpc["code"].clone())],
                "slot" => {
                    let slot = format!("0x{}", key["slot"].as_str().unwrap());
                    vec![("eth_getStorageAt", json!([address, slot, block]), rpc["word"].clone())]
                }
                _ => continue,
            };
            for (method, params, expected) in questions.into_iter().filter(|question| question.2.is_string())
            {
                let answer = ask(&light, method, params).await;
                let mut result =
                    answer["result"].as_str().unwrap_or_else(|| panic!("{answer} {key}")).to_owned();
                if expected.as_str().unwrap().starts_with("keccak:") {
                    result = format!("keccak:{}", hex::encode(keccak256(hex::decode(&result).unwrap())));
                }
                assert_eq!((json!(result), &answer["level"]), (expected, &Value::Null), "{method} {key}");
                *counts.entry(method).or_default() += 1;
            }
        }
    }
    assert!(counts.len() == 4 && counts.values().all(|count| *count > 3), "{counts:?}");
}

/// A state that is smaller than the one searched before is found too: offsets beyond its end get no response.
#[tokio::test(flavor = "multi_thread")]
async fn older_states_are_found_after_newer_ones() {
    let Some((_server, _chain, light)) = recorded(5060).await else { return };
    let mut states = keys();
    states.sort_by_key(|state| std::cmp::Reverse(state["block"].as_u64()));
    for state in states {
        let block = format!("{:#x}", state["block"].as_u64().unwrap());
        let accounts = state["keys"].as_array().unwrap().iter().filter(|key| key["kind"] == "account");
        for key in accounts.filter(|key| key["rpc"]["balance"].is_string()).step_by(9) {
            let address = format!("0x{}", key["address"].as_str().unwrap());
            let answer = ask(&light, "eth_getBalance", json!([address, block])).await;
            assert_eq!(answer["result"], key["rpc"]["balance"], "block {block}: {answer}");
        }
    }
}

/// Blocks, transactions and uncles need headers and bodies. A receipt needs the state of the parent block; without it, it is
/// refused in words.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_are_proven_and_receipts_are_refused_with_the_reason() {
    let Some((_server, chain, light)) = recorded(400).await else { return };
    let mut uncles = 0;
    for number in [1u64, 60, 68, 70, 72, 74, 399, 400] {
        let answer = ask(&light, "eth_getBlockByNumber", json!([format!("{number:#x}"), true])).await;
        let block = &answer["result"];
        let hash = rootlight_node::peer_server::PeerChain::hash_at(&*chain, number).unwrap();
        assert_eq!(block["hash"], json!(hash), "{answer}");
        uncles += block["uncles"].as_array().unwrap().len();
    }
    assert_eq!(uncles, 8);
    let block = ask(&light, "eth_getBlockByNumber", json!(["0x190", false])).await;
    let transaction = block["result"]["transactions"][0].clone();
    let receipt = ask(&light, "eth_getTransactionReceipt", json!([transaction])).await;
    let reason = receipt["error"]["message"].as_str().unwrap_or_else(|| panic!("{receipt}"));
    assert!(reason.contains("peer-to-peer protocol has no message for"), "{reason}");
    // The recording lacks the state of block 399.
    assert!(reason.contains("; executing the block again: no proof of account"), "{reason}");
}
