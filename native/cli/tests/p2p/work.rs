//! Starts by work and by window (`--checkpoint work`, `window`) from peers alone: no block, no address and no hash of a
//! chain is given.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rootlight::consensus::Network;
use rootlight::dev::Mining;
use rootlight::light::SyncOptions;
use rootlight::types::B256;
use rootlight_node::light::{LightOptions, LightService, LightStart};
use rootlight_node::local::{LocalOptions, LocalService};
use rootlight_node::peer_server::{LocalChain, PeerServer};
use rootlight_server::service::Service as _;
use rootlight_upstream::SharedUpstream;
use rootlight_upstream::p2p::{Identity, PeerUpstream, StateNodes};
use serde_json::{Value, json};

use crate::chain::serve;
use crate::common::{ask, dev_chain};

/// Seconds between blocks: 58 headers span a day, without a gap of more than half an hour.
const SPACING: u64 = 1_500;

/// Blocks of a chain that is long enough.
const BLOCKS: u64 = 70;

/// A chain of tests whose work is taken to prove something. Without RSKIP-97 difficulty may fall after ten minutes without
/// a block.
const NETWORK: &str = r#"{
    "name": "regtest", "base": "regtest", "params": { "futureBound": 60 }, "rules": { "rskip97": 0 },
    "workStart": { "difficulty": 1, "from": 0, "headers": 58 }
}"#;

/// A chain of so many blocks that ends now, and a server of it.
async fn chain(blocks: u64) -> (Arc<LocalService>, PeerServer, SharedUpstream) {
    let node = dev_chain(Mining::Manual, LocalOptions::default());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    ask(&*node, "evm_setTime", json!([now - blocks * SPACING])).await;
    let mined = ask(&*node, "hardhat_mine", json!([format!("{blocks:#x}"), format!("{SPACING:#x}")])).await;
    assert!(mined["error"].is_null(), "{mined}");
    let head = ask(&*node, "eth_getBlockByNumber", json!(["latest", false])).await["result"].clone();
    let time = u64::from_str_radix(&head["timestamp"].as_str().unwrap()[2..], 16).unwrap();
    assert!(time <= now + 60 && time + 2 * SPACING > now, "{time} at {now}");
    let (server, address) = serve(Arc::new(LocalChain::new(node.clone()))).await;
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await["result"]["hash"].clone();
    let genesis: B256 = genesis.as_str().unwrap().parse().unwrap();
    let network = Arc::new(network());
    let identity = Arc::new(Identity::open(&network, genesis, None).unwrap());
    let nodes = Arc::new(StateNodes::default());
    (node, server, Arc::new(PeerUpstream::new(identity, address, network, nodes)))
}

fn network() -> Network {
    Network::from_json(NETWORK).unwrap()
}

/// A light client that trusts no block, of these peers.
async fn started(kind: &str, upstreams: Vec<SharedUpstream>) -> LightService {
    let work = network().work_start.unwrap();
    let start = if kind == "window" { LightStart::Window(work) } else { LightStart::Work(work) };
    // Blocks so far apart show a fiftieth of the work that the built-in difficulty promises.
    let sync = SyncOptions { work_floor: 1, ..SyncOptions::default() };
    let options = LightOptions { sync, ..LightOptions::default() };
    let light = LightService::start(network(), start, upstreams, options);
    light.settled(Duration::from_secs(60)).await;
    light
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_by_work_needs_nothing_but_peers() {
    needs_nothing_but_peers("work").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_by_window_needs_nothing_but_peers() {
    needs_nothing_but_peers("window").await;
}

async fn needs_nothing_but_peers(kind: &str) {
    let (node, _server, upstream) = chain(BLOCKS).await;
    let light = started(kind, vec![upstream]).await;
    assert!(light.is_synced(), "{:?}", light.health());
    let head = ask(&*node, "eth_getBlockByNumber", json!(["latest", false])).await["result"].clone();
    let account = ask(&*node, "eth_accounts", json!([])).await["result"][0].clone();
    let ours = ask(&light, "eth_getBlockByNumber", json!(["latest", false])).await;
    assert_eq!((&ours["result"]["hash"], &ours["start"]), (&head["hash"], &json!(kind)), "{ours}");
    let balance = ask(&light, "eth_getBalance", json!([account, "latest"])).await;
    let theirs = ask(&*node, "eth_getBalance", json!([account, "latest"])).await;
    assert_eq!((&balance["result"], &balance["level"]), (&theirs["result"], &Value::Null), "{balance}");
    // The cost of a forgery is that of the headers from the block on: each has difficulty 1.
    let shown = ask(&light, "rootlight_verification", json!([format!("{:#x}", BLOCKS - 9)])).await;
    assert_eq!(shown["result"]["start"], kind, "{shown}");
    let cost = u64::from_str_radix(&shown["result"]["attackCost"].as_str().unwrap()[2..], 16).unwrap();
    assert!((9..=11).contains(&cost), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_whose_chain_is_too_short_gives_no_start() {
    let (_node, _server, upstream) = chain(50).await;
    let light = started("work", vec![upstream]).await;
    assert!(!light.is_synced());
    let answer = ask(&light, "eth_blockNumber", json!([])).await;
    assert!(answer["error"].is_object(), "{answer}");
}
