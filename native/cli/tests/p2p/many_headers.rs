//! Thousands of headers of version 0 from a peer.

use std::sync::Arc;
use std::time::Duration;

use rootlight::consensus::Checkpoint;
use rootlight::light::SyncOptions;
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::peer_server::PeerServer;
use rootlight_server::service::Service as _;
use rootlight_upstream::p2p::{Identity, PeerAddress, PeerUpstream, StateNodes};
use serde_json::json;

#[allow(dead_code)]
#[path = "../../examples/cold_start/chain.rs"]
mod chain;
#[allow(dead_code)]
#[path = "../../examples/peer_headers/served.rs"]
mod served;

use crate::common::ask;
use chain::START;
use served::{CountedChain, network};

/// Headers above the start.
const HEADERS: u64 = 1_500;

/// Many headers come in runs of 192 that end at the hashes of the skeleton, each once.
#[tokio::test(flavor = "multi_thread")]
async fn headers_come_in_whole_messages() {
    let chain = Arc::new(CountedChain::new(HEADERS));
    let network = Arc::new(network());
    let identity = || Arc::new(Identity::open(&network, network.genesis_hash, None).unwrap());
    let (served, own) = (identity(), identity());
    let place = "127.0.0.1:0".parse().unwrap();
    let server = PeerServer::bind(served.clone(), chain.clone(), place).await.unwrap();
    let address = PeerAddress { id: *served.id(), host: "127.0.0.1".into(), port: server.address().port() };
    let upstream = PeerUpstream::new(own, address, network.clone(), Arc::new(StateNodes::default()));
    let checkpoint =
        Checkpoint { number: START, hash: chain.at(START).unwrap().hash(), total_difficulty: None };
    let sync = SyncOptions { work_floor: 0, ..SyncOptions::default() };
    let options = LightOptions { sync, max_age: 0, ..LightOptions::default() };
    let light = LightService::start((*network).clone(), checkpoint, vec![Arc::new(upstream)], options);
    light.settled(Duration::from_secs(60)).await;
    assert!(light.is_synced(), "{:?}", light.health());
    let newest = json!(format!("{:#x}", chain.newest()));
    assert_eq!(ask(&light, "eth_blockNumber", json!([])).await["result"], newest);
    let runs = chain.runs.lock().unwrap().clone();
    let whole: Vec<u64> = runs
        .iter()
        .filter(|(top, len)| *top > START && top % 192 == 0 && *len == 192)
        .map(|(top, _)| *top)
        .collect();
    assert!(whole.len() >= 4, "{runs:?}");
    assert!(whole.windows(2).all(|pair| pair[0] < pair[1]), "{runs:?}");
}
