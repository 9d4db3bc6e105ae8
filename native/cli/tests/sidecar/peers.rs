//! A sidecar that serves its node's chain to peers: a light client that knows this peer alone.

use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, U256};
use rootlight::consensus::{Checkpoint, Network};
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::peer_server::{PeerChain as _, PeerServer, SharedChain, respond};
use rootlight_node::sidecar::{NodeChain, SidecarOptions, SidecarService};
use rootlight_p2p::message::{ChunkRequest, Message, Request, Response};
use rootlight_server::service::Service as _;
use rootlight_upstream::p2p::{Identity, PeerAddress, PeerUpstream, StateNodes};
use serde_json::{Value, json};

use crate::beside::{COW, MemoryStore, node, start, store};
use crate::common::ask;

/// Serves the chain of a sidecar, and starts a light client of it.
pub(crate) async fn light(chain: SharedChain) -> (PeerServer, LightService) {
    let network = Arc::new(Network::regtest());
    let identity = || Arc::new(Identity::open(&network, network.genesis_hash, None).unwrap());
    let (served, own) = (identity(), identity());
    let server = PeerServer::bind(served.clone(), chain, "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = PeerAddress { id: *served.id(), host: "127.0.0.1".into(), port: server.address().port() };
    let upstream = PeerUpstream::new(own, address, network.clone(), Arc::new(StateNodes::default()));
    let checkpoint = Checkpoint { number: 0, hash: network.genesis_hash, total_difficulty: None };
    let options = LightOptions { max_age: 0, ..LightOptions::default() };
    let light = LightService::start(Network::regtest(), checkpoint, vec![Arc::new(upstream)], options);
    light.settled(Duration::from_secs(60)).await;
    assert!(light.is_synced(), "{:?}", light.health());
    (server, light)
}

fn state_at(block: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("eth_getBalance", json!([COW, block])),
        ("eth_getTransactionCount", json!([COW, block])),
        ("eth_getProof", json!([COW, ["0x0"], block])),
        ("eth_getBalance", json!(["0x00000000000000000000000000000000000000ee", block])),
    ]
}

/// A sidecar whose verified chain begins so many blocks below the head, as peers read it.
async fn chain(depth: u64, store: &Arc<MemoryStore>) -> (Arc<SidecarService>, Arc<NodeChain>) {
    let options = SidecarOptions { depth, ..SidecarOptions::default() };
    let sidecar = Arc::new(start(&node(), store, options).await);
    (sidecar.clone(), Arc::new(NodeChain::new(sidecar, Network::regtest())))
}

/// The response to a request, on a thread that may wait for the node.
async fn said(chain: &Arc<NodeChain>, request: Request) -> Option<Vec<u8>> {
    let chain = chain.clone();
    tokio::task::spawn_blocking(move || respond(&*chain, 1, request)).await.unwrap()
}

/// The sidecar has verified all headers, or the newest ten and shows its node's below: the light client verifies them all.
#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_lives_on_the_sidecar_alone() {
    for depth in [8_192, 10] {
        let (sidecar, chain) = chain(depth, &Arc::new(store())).await;
        let (_server, light) = light(chain).await;
        assert_eq!(ask(&light, "eth_blockNumber", json!([])).await["result"], "0x4b");
        for (method, params) in ["0x1", "0x14", "0x41", "latest"].into_iter().flat_map(state_at) {
            let ours = ask(&light, method, params.clone()).await;
            let theirs = ask(&*sidecar, method, params.clone()).await;
            assert!(!ours["result"].is_null(), "{method} {params}: {ours}");
            assert_eq!(
                (&ours["result"], &ours["level"]),
                (&theirs["result"], &Value::Null),
                "{method} {params}"
            );
        }
        for number in ["0x0", "0x1", "0x14", "0x40", "0x4b"] {
            let params = json!([number, true]);
            let ours = ask(&light, "eth_getBlockByNumber", params.clone()).await;
            let theirs = ask(&*sidecar, "eth_getBlockByNumber", params).await;
            assert!(ours["level"].is_null(), "{ours}");
            for field in ["hash", "transactions", "uncles", "stateRoot"] {
                assert!(!ours["result"][field].is_null(), "{number}: {ours}");
                assert_eq!(ours["result"][field], theirs["result"][field], "{field} of {number}");
            }
        }
    }
}

/// A node that synchronizes gets the same answers whether headers are verified here or shown by the own node.
#[tokio::test(flavor = "multi_thread")]
async fn runs_are_the_same_however_much_is_verified() {
    let store = Arc::new(store());
    let ((sidecar, whole), (_, newest)) = (chain(8_192, &store).await, chain(10, &store).await);
    let hash = |chain: &Arc<NodeChain>, number| {
        let chain = chain.clone();
        tokio::task::spawn_blocking(move || chain.hash_at(number))
    };
    let head = hash(&whole, 75).await.unwrap().unwrap();
    assert_eq!(hash(&newest, 76).await.unwrap(), None, "above the head");
    let old = hash(&newest, 20).await.unwrap().unwrap();
    for request in [
        Request::Headers { hash: head, count: 76 },
        Request::Headers { hash: old, count: 7 },
        Request::Headers { hash: old, count: 192 },
        Request::BlockHash { height: 3 },
        Request::Body(old),
        Request::Block(old),
        Request::Skeleton { start: 0 },
        Request::SnapStatus,
        Request::SnapBlocks { before: 70 },
        Request::Chunk(ChunkRequest::new(20, 1)),
        Request::Chunk(ChunkRequest::new(75, 5_000)),
    ] {
        let response = said(&whole, request).await;
        assert!(response.is_some(), "{request:?}");
        assert!(said(&newest, request).await == response, "{request:?}");
    }
    let unknown = B256::repeat_byte(9);
    for request in [
        Request::Headers { hash: unknown, count: 1 },
        Request::Body(unknown),
        Request::SnapBlocks { before: 77 },
        Request::Chunk(ChunkRequest::new(76, 1)),
    ] {
        assert_eq!(said(&newest, request).await, None, "{request:?}");
    }
    // Total difficulties are those that the node states, which counts uncles.
    let payload = said(&newest, Request::SnapBlocks { before: 70 }).await.unwrap();
    let Ok(Message::Response { response: Response::SnapBlocks(run), .. }) = Message::decode(&payload) else {
        panic!("not a run of blocks");
    };
    let shown = ask(&*sidecar, "eth_getBlockByNumber", json!(["0x45", false])).await;
    let stated =
        U256::from_str_radix(&shown["result"]["totalDifficulty"].as_str().unwrap()[2..], 16).unwrap();
    let last = run.difficulties.iter().last().unwrap();
    assert_eq!((run.blocks.len(), U256::from_be_slice(last)), (69, stated));
}

/// A store that has lost the states offers no snapshot service.
#[tokio::test(flavor = "multi_thread")]
async fn states_that_are_not_on_disk_are_not_offered() {
    let store = Arc::new(store());
    let (_sidecar, chain) = chain(8_192, &store).await;
    assert!(chain.serves_state());
    store.clear();
    assert!(!chain.serves_state());
    assert_eq!(said(&chain, Request::Chunk(ChunkRequest::new(75, 1))).await, None);
    let (_server, light) = light(chain).await;
    let answer = ask(&light, "eth_getBalance", json!([COW, "latest"])).await;
    let reason = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(reason.contains("serves no state chunks"), "{reason}");
}
