//! Nodes that the operator did not name: found by discovery on this machine, asked by a light client, and replaced.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::B256;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::dev::Mining;
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::local::LocalOptions;
use rootlight_node::peer_server::{LocalChain, PeerChain, PeerServer};
use rootlight_p2p::discovery::{Datagram, Endpoint, MessageId, Packet};
use rootlight_p2p::network::PeerNetwork;
use rootlight_p2p::rlpx::{NodeId, NodeKey};
use rootlight_upstream::p2p::find::{
    CrawlOptions, Finder, FinderOptions, NodeList, NodeVisit, SlotOptions, crawl, read_node_file, start_slots,
};
use rootlight_upstream::p2p::{Identity, PeerAddress, StateNodes};
use serde_json::{Value, json};

use crate::chain::{RecordedChain, serve};
use crate::common::{ask, dev_chain};
use crate::liar::Liar;

/// Longest wait for what happens in any case; it only ends a test that hangs.
const HANG: Duration = Duration::from_secs(240);

fn network_id() -> u64 {
    PeerNetwork::of(&Network::regtest()).unwrap().id
}

fn list(folder: Option<&Path>) -> Arc<NodeList> {
    Arc::new(NodeList::open(network_id(), true, folder))
}

/// A server that is found over UDP, at one port.
pub(crate) struct DiscoverableNode {
    id: NodeId,
    address: SocketAddr,
    _server: PeerServer,
    finder: Finder,
}

/// Starts a node that asks another one for its place in the network.
async fn node(chain: Arc<dyn PeerChain>, boot: Option<SocketAddr>) -> DiscoverableNode {
    let identity = Arc::new(Identity::open(&Network::regtest(), chain.hash_at(0).unwrap(), None).unwrap());
    loop {
        let server =
            PeerServer::bind(identity.clone(), chain.clone(), "127.0.0.1:0".parse().unwrap()).await.unwrap();
        let boot = boot.iter().map(|address| address.to_string().parse().unwrap()).collect();
        let options = FinderOptions { bind: server.address(), boot, state_servers: Vec::new() };
        // Another program may have the UDP port of this number.
        let Ok(finder) = Finder::serve(&identity, options, list(None)).await else { continue };
        return DiscoverableNode { id: *identity.id(), address: server.address(), _server: server, finder };
    }
}

async fn roam(boot: &[SocketAddr], list: Arc<NodeList>) -> Finder {
    roam_with(boot, Vec::new(), list).await
}

/// Looks for nodes, with state servers in the place of those of a network's data.
async fn roam_with(boot: &[SocketAddr], state_servers: Vec<PeerAddress>, list: Arc<NodeList>) -> Finder {
    let boot = boot.iter().map(|address| address.to_string().parse().unwrap()).collect();
    let options = FinderOptions { bind: "127.0.0.1:0".parse().unwrap(), boot, state_servers };
    Finder::roam(options, list).await.unwrap()
}

fn light(finder: Finder, slots: usize, genesis: B256) -> LightService {
    let identity = Arc::new(Identity::open(&Network::regtest(), genesis, None).unwrap());
    let options = SlotOptions {
        count: slots,
        identity,
        avoid: Vec::new(),
        network: Arc::new(Network::regtest()),
        nodes: Arc::new(StateNodes::default()),
    };
    let checkpoint = Checkpoint { number: 0, hash: genesis, total_difficulty: None };
    let upstreams = start_slots(finder, options);
    LightService::start(
        Network::regtest(),
        checkpoint,
        upstreams,
        LightOptions { max_age: 0, ..LightOptions::default() },
    )
}

/// Waits until something is so.
async fn until(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(HANG, async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    assert!(waited.await.is_ok(), "{what}");
}

async fn upstreams(light: &LightService) -> Vec<Value> {
    ask(light, "rootlight_upstreams", json!([])).await["result"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_finds_its_peers_and_keeps_them() {
    let Some(chain) = RecordedChain::read(60) else { return };
    let genesis = Network::regtest().genesis_hash;
    let first = node(chain.clone(), None).await;
    let second = node(chain.clone(), Some(first.address)).await;
    let third = node(chain.clone(), Some(first.address)).await;
    until("the first node knows the others", async || first.finder.list().nodes().len() == 2).await;

    let folder = tempfile::tempdir().unwrap();
    let known = list(Some(folder.path()));
    let light_client = light(roam(&[first.address], known.clone()).await, 3, genesis);
    until("three different nodes are asked", async || {
        let names = upstreams(&light_client).await;
        [&first, &second, &third].iter().all(|node| {
            let name = format!("{}@{}", node.id, node.address);
            names.iter().any(|upstream| upstream["name"] == name.as_str())
        })
    })
    .await;
    until("it reaches the head", async || {
        ask(&light_client, "eth_blockNumber", json!([])).await["result"] == "0x3c"
    })
    .await;
    until("what they offer is known", async || known.nodes().iter().all(|node| node.snap == Some(true)))
        .await;
    drop(light_client);
    drop(known);

    // The next start needs no boot host.
    until("the list is kept", async || read_node_file(folder.path(), network_id()).unwrap().len() == 3).await;
    let again = light(roam(&[], list(Some(folder.path()))).await, 2, genesis);
    until("it reaches the head by kept nodes", async || {
        ask(&again, "eth_blockNumber", json!([])).await["result"] == "0x3c"
    })
    .await;
}

/// A light client that knows no names but those of the network's data: no boot host answers, one state server is dead
/// and takes connections without a word, the other one serves.
#[tokio::test(flavor = "multi_thread")]
async fn a_balance_comes_from_the_state_server_that_answers_without_a_wait_for_the_other() {
    let node = dev_chain(Mining::Manual, LocalOptions::default());
    ask(&*node, "hardhat_mine", json!(["0x20"])).await;
    let genesis = ask(&*node, "eth_getBlockByNumber", json!(["0x0", false])).await["result"]["hash"].clone();
    let account = ask(&*node, "eth_accounts", json!([])).await["result"][0].clone();
    let (_server, answers) = serve(Arc::new(LocalChain::new(node.clone()))).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let dead = PeerAddress {
        id: *NodeKey::from_bytes(&[5; 32]).unwrap().id(),
        host: "127.0.0.1".into(),
        port: silent.local_addr().unwrap().port(),
    };
    let nobody = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let started = tokio::time::Instant::now();
    let known = list(None);
    let finder = roam_with(&[nobody.local_addr().unwrap()], vec![dead, answers.clone()], known.clone()).await;
    let light_client = light(finder, 2, genesis.as_str().unwrap().parse().unwrap());
    let mut balance = Value::Null;
    until("a balance is proven", async || {
        balance = ask(&light_client, "eth_getBalance", json!([account, "latest"])).await["result"].take();
        balance.is_string()
    })
    .await;
    assert_eq!(balance, ask(&*node, "eth_getBalance", json!([account, "latest"])).await["result"]);
    // A wait for the dead server takes eight seconds and more.
    assert!(started.elapsed() < Duration::from_secs(7), "{:?}", started.elapsed());
    let served = known.nodes().into_iter().find(|node| node.node.id == answers.id).unwrap();
    assert!(served.is_state_server() && served.snap == Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_liar_is_named_and_an_honest_node_takes_its_place() {
    let Some(chain) = RecordedChain::read(60) else { return };
    let genesis = Network::regtest().genesis_hash;
    let liar = node(Arc::new(Liar(chain.clone())), None).await;
    let folder = tempfile::tempdir().unwrap();
    let known = list(Some(folder.path()));
    let light_client = light(roam(&[liar.address], known.clone()).await, 1, genesis);
    until("the liar is caught", async || {
        known.nodes().iter().any(|node| node.node.id == liar.id && node.caught.is_some())
    })
    .await;
    assert!(!light_client.is_synced());

    let _honest = node(chain.clone(), Some(liar.address)).await;
    until("the honest node is asked", async || {
        ask(&light_client, "eth_blockNumber", json!([])).await["result"] == "0x3c"
    })
    .await;
    let upstream = upstreams(&light_client).await.remove(0);
    assert_eq!(upstream["lies"], 0, "{upstream}");
    assert!(!upstream["name"].as_str().unwrap().starts_with(&liar.id.to_string()), "{upstream}");
    // The verdict survives a restart.
    let kept = read_node_file(folder.path(), network_id()).unwrap();
    let what = kept.iter().find(|node| node.node.id == liar.id).unwrap().caught.clone().unwrap().what;
    assert!(what.contains("a header of the peer has the hash"), "{what}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_gone_is_replaced() {
    let Some(chain) = RecordedChain::read(60) else { return };
    let genesis = Network::regtest().genesis_hash;
    let first = node(chain.clone(), None).await;
    let second = node(chain.clone(), Some(first.address)).await;
    let known = list(None);
    let light_client = light(roam(&[first.address], known.clone()).await, 1, genesis);
    until("it reaches the head, and knows both", async || {
        ask(&light_client, "eth_blockNumber", json!([])).await["result"] == "0x3c" && known.nodes().len() == 2
    })
    .await;
    let name = upstreams(&light_client).await[0]["name"].as_str().unwrap().to_owned();
    let (gone, stays) =
        if name.starts_with(&first.id.to_string()) { (first, second) } else { (second, first) };
    drop(gone);
    until("the other node is asked", async || {
        let upstream = upstreams(&light_client).await.remove(0);
        let name = upstream["name"].as_str().unwrap();
        name.starts_with(&stays.id.to_string()) && upstream["announced"] == "0x3c"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_asks_every_node_once() {
    let Some(chain) = RecordedChain::read(500) else { return };
    let first = node(chain.clone(), None).await;
    let second = node(chain.clone(), Some(first.address)).await;
    until("the first node knows the other", async || !first.finder.list().nodes().is_empty()).await;
    let finder = roam(&[first.address], list(None)).await;
    let genesis = Network::regtest().genesis_hash;
    let identity = Arc::new(Identity::open(&Network::regtest(), genesis, None).unwrap());
    let (report, mut visits) = tokio::sync::mpsc::unbounded_channel();
    let crawling = crawl(&finder, CrawlOptions { identity, duration: HANG }, |visited| {
        let _ = report.send(visited);
    });
    let both = async {
        let both: [NodeVisit; 2] = [visits.recv().await.unwrap(), visits.recv().await.unwrap()];
        // No node is visited twice.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(visits.try_recv().is_err());
        both
    };
    let both = tokio::select! { both = both => both, _ = crawling => panic!("the nodes were not found") };
    for node in [&first, &second] {
        let visited = both.iter().find(|visited| visited.node.id == node.id).unwrap();
        assert_eq!(visited.node.address, node.address);
        let visit = visited.outcome.as_ref().unwrap();
        assert!(visit.hello.client_id.starts_with("rootlight/") && visit.hello.serves_snap());
        assert_eq!(visit.hello.listen_port, node.address.port());
        assert_eq!(visit.best_hash, chain.hash_at(500).unwrap());
    }
}

/// A stranger may have written another's address on its datagrams, so it gets no list of nodes, and nothing longer than
/// what it sent but the question whether it is there.
#[tokio::test(flavor = "multi_thread")]
async fn strangers_get_no_list_of_nodes() {
    let Some(chain) = RecordedChain::read(60) else { return };
    let first = node(chain.clone(), None).await;
    let _second = node(chain, Some(first.address)).await;
    until("there is a node to tell of", async || !first.finder.list().nodes().is_empty()).await;
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let key = NodeKey::from_bytes(&[9; 32]).unwrap();
    let (network_id, message_id) = (Some(network_id()), MessageId::from_random([3; 16]));
    let endpoint = Endpoint { host: "127.0.0.1".into(), udp_port: 50_501, tcp_port: 50_501 };
    let find = Packet::FindNode { target: *key.id(), message_id, network_id };
    let ping = Packet::Ping { from: endpoint.clone(), to: endpoint, message_id, network_id };
    let ping = Datagram::encode(&ping, &key).unwrap();
    socket.send_to(&Datagram::encode(&find, &key).unwrap(), first.address).await.unwrap();
    socket.send_to(&ping, first.address).await.unwrap();
    // Answers come in the order of the questions.
    let mut buffer = [0; 2048];
    let mut read = async || {
        let count = tokio::time::timeout(HANG, socket.recv(&mut buffer)).await.unwrap().unwrap();
        (count, Datagram::decode(&buffer[..count]).unwrap().packet)
    };
    let (count, pong) = read().await;
    assert!(matches!(pong, Packet::Pong { message_id: answered, .. } if answered == message_id), "{pong:?}");
    assert!(count <= ping.len(), "{count}");
    let (_, challenge) = read().await;
    assert!(matches!(challenge, Packet::Ping { .. }), "{challenge:?}");
}
