//! Thousands of headers from a peer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use rootlight::consensus::{Checkpoint, Network};
use rootlight::light::{SyncOptions, UpstreamRequest};
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::peer_server::PeerServer;
use rootlight_p2p::session::RateLimits;
use rootlight_server::service::Service as _;
use rootlight_upstream::Upstream as _;
use rootlight_upstream::p2p::{Identity, PeerAddress, PeerUpstream, StateNodes};
use serde_json::{Value, json};

#[allow(dead_code)]
#[path = "../../examples/cold_start/chain.rs"]
mod chain;
#[allow(dead_code)]
#[path = "../../examples/peer_headers/served.rs"]
mod served;

use crate::common::ask;
use chain::{NETWORK, START};
use served::{CountedChain, network};

/// The rules of [`NETWORK`] with headers of version 2, whose blooms are in the bodies of peers.
const EXTENDED: &str = r#"{
    "name": "extended", "base": "mainnet", "chainId": 30, "params": { "minimumDifficulty": 4 },
    "rules": { "rskip351": 0, "rskip535": 0 }
}"#;

/// Headers above the start.
const HEADERS: u64 = 1_500;

/// The same where each header takes a block.
const EXTENDED_HEADERS: u64 = 700;

/// Serves a chain of these rules to a peer.
async fn connected(
    network: &Arc<Network>,
    chain: Arc<CountedChain>,
    limits: RateLimits,
) -> (PeerServer, PeerUpstream) {
    let identity = || Identity::open(network, network.genesis_hash, None).unwrap().with_limits(limits);
    let (served, own) = (Arc::new(identity()), Arc::new(identity()));
    let place = "127.0.0.1:0".parse().unwrap();
    let server = PeerServer::bind(served.clone(), chain, place).await.unwrap();
    let address = PeerAddress { id: *served.id(), host: "127.0.0.1".into(), port: server.address().port() };
    let upstream = PeerUpstream::new(own, address, network.clone(), Arc::new(StateNodes::default()));
    (server, upstream)
}

/// Follows a chain of these rules from one peer to its newest block.
async fn follow(rules: &str, chain: Arc<CountedChain>, limits: RateLimits) {
    let network = Arc::new(network(rules));
    let (_server, upstream) = connected(&network, chain.clone(), limits).await;
    let checkpoint =
        Checkpoint { number: START, hash: chain.at(START).unwrap().hash(), total_difficulty: None };
    let sync = SyncOptions { work_floor: 0, ..SyncOptions::default() };
    let options = LightOptions { sync, max_age: 0, ..LightOptions::default() };
    let light = LightService::start((*network).clone(), checkpoint, vec![Arc::new(upstream)], options);
    light.settled(Duration::from_secs(60)).await;
    assert!(light.is_synced(), "{:?}", light.health());
    let newest = json!(format!("{:#x}", chain.newest()));
    assert_eq!(ask(&light, "eth_blockNumber", json!([])).await["result"], newest);
}

/// Many headers come in runs of 192 that end at the hashes of the skeleton, each once.
#[tokio::test(flavor = "multi_thread")]
async fn headers_come_in_whole_messages() {
    let chain = Arc::new(CountedChain::new(NETWORK, HEADERS));
    follow(NETWORK, chain.clone(), RateLimits::default()).await;
    let runs = chain.runs.lock().unwrap().clone();
    let whole: Vec<u64> = runs
        .iter()
        .filter(|(top, len)| *top > START && top % 192 == 0 && *len == 192)
        .map(|(top, _)| *top)
        .collect();
    assert!(whole.len() >= 4, "{runs:?}");
    assert!(whole.windows(2).all(|pair| pair[0] < pair[1]), "{runs:?}");
}

/// Limits of peers that read as many messages as blocks are asked for here.
const MANY: RateLimits = RateLimits { sent: 1 << 30, received: 1 << 30, received_bytes: 1 << 50 };

/// Headers whose blooms are in the bodies come in runs of whole blocks.
#[tokio::test(flavor = "multi_thread")]
async fn extended_headers_come_in_runs_of_blocks() {
    let mut chain = CountedChain::new(EXTENDED, EXTENDED_HEADERS);
    chain.knows_totals = true;
    let chain = Arc::new(chain);
    follow(EXTENDED, chain.clone(), MANY).await;
    let oldest = chain.runs.lock().unwrap().iter().map(|(top, len)| top - *len as u64 + 1).min();
    assert!(oldest > Some(START), "headers far below the head came without their blocks: {oldest:?}");
}

/// A peer that cannot make a run of blocks says nothing to a request for one: it may have the bodies.
#[tokio::test(flavor = "multi_thread")]
async fn extended_headers_come_with_bodies_where_runs_of_blocks_do_not_come() {
    let chain = Arc::new(CountedChain::new(EXTENDED, EXTENDED_HEADERS));
    follow(EXTENDED, chain.clone(), MANY).await;
    assert!(chain.blocks.load(Ordering::Relaxed) as u64 >= EXTENDED_HEADERS);
}

/// An uncle takes the body of its block alone: the core has verified the header that it compares the uncles with.
#[tokio::test(flavor = "multi_thread")]
async fn uncles_come_without_the_headers_of_their_blocks() {
    let chain = Arc::new(CountedChain::new(NETWORK, HEADERS));
    let network = Arc::new(network(NETWORK));
    let (_server, upstream) = connected(&network, chain.clone(), RateLimits::default()).await;
    // A block with two uncles.
    let (header, uncles) = chain.with_uncles(START + 5).unwrap();
    let block = header.header().hash();
    let request = |index: usize| {
        let params = json!([block, format!("{index:#x}")]).to_string();
        UpstreamRequest::new("eth_getUncleByBlockHashAndIndex", params)
    };
    let results = upstream.request((0..=uncles.len()).map(request).collect()).await;
    let hashes: Vec<Value> = results
        .into_iter()
        .map(|result| serde_json::from_str::<Value>(result.unwrap().get()).unwrap()["hash"].clone())
        .collect();
    let expected: Vec<Value> = uncles.iter().map(|uncle| json!(uncle.hash())).chain([Value::Null]).collect();
    assert_eq!((hashes, uncles.len()), (expected, 2));
    assert!(chain.runs.lock().unwrap().is_empty(), "headers were asked for");
    assert_eq!(chain.blocks.load(Ordering::Relaxed), 1);
}
