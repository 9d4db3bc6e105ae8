//! A sidecar beside a development chain, with a store in memory: which answers come from the store and which from the node.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use alloy_primitives::{B256, Bytes, keccak256};
use futures::future::BoxFuture;
use rootlight::consensus::Network;
use rootlight::light::UpstreamRequest;
use rootlight::trie::{NodeSource, StoreFault, TrieStore};
use rootlight_node::sidecar::{NodeStore, SidecarError, SidecarOptions, SidecarService};
use rootlight_server::service::Service;
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{ReservedResults, Upstream, unreserved};
use serde_json::{Value, json};

use crate::common::{ask, recording};

#[derive(Debug, Default)]
pub(crate) struct MemoryStore(Mutex<BTreeMap<B256, Bytes>>);

impl MemoryStore {
    pub(crate) fn of(nodes: Vec<(B256, Bytes)>) -> Self {
        Self(Mutex::new(nodes.into_iter().collect()))
    }

    /// Loses everything.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap().clear();
    }
}

impl NodeSource for MemoryStore {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.0.lock().unwrap().get(hash).filter(|bytes| keccak256(bytes) == *hash).cloned()
    }
}

impl TrieStore for MemoryStore {
    fn why_missing(&self, hash: &B256) -> StoreFault {
        match self.0.lock().unwrap().contains_key(hash) {
            true => StoreFault::Mismatch,
            false => StoreFault::Absent,
        }
    }
}

impl NodeStore for MemoryStore {
    fn catch_up(&self) -> Result<(), String> {
        Ok(())
    }

    fn version(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }
}

/// A recording as a node that notes what it is asked.
pub(crate) struct RecordedNode {
    replay: Replay,
    asked: Mutex<Vec<String>>,
    /// What the node writes to disk when it is asked to, and where.
    unwritten: Mutex<Option<(Bytes, Arc<MemoryStore>)>>,
}

impl Upstream for RecordedNode {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        self.asked.lock().unwrap().extend(calls.iter().map(|call| call.method.to_owned()));
        if calls.iter().any(|call| call.method == "rsk_flush") {
            if let Some((node, store)) = self.unwritten.lock().unwrap().take() {
                store.0.lock().unwrap().insert(keccak256(&node), node);
            }
            let done = || Ok(serde_json::value::RawValue::from_string("true".into()).unwrap());
            return Box::pin(unreserved(async move { calls.iter().map(|_| done()).collect() }));
        }
        Box::pin(unreserved(self.replay.request(calls)))
    }

    fn name(&self) -> &str {
        "node"
    }
}

/// The recording in this repository.
pub(crate) fn node() -> Arc<RecordedNode> {
    RecordedNode::new(recording())
}

impl RecordedNode {
    pub(crate) fn new(replay: Replay) -> Arc<Self> {
        Arc::new(Self { replay, asked: Mutex::default(), unwritten: Mutex::default() })
    }
}

/// The trie nodes and long values of the recording.
pub(crate) fn store() -> MemoryStore {
    let bytes =
        std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../recordings/regtest.jsonl.gz")).unwrap();
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&bytes[..]), &mut text).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let nodes = lines.filter_map(|line| line["node"].as_str()?.parse::<Bytes>().ok());
    MemoryStore(Mutex::new(nodes.map(|node| (keccak256(&node), node)).collect()))
}

pub(crate) async fn start(
    node: &Arc<RecordedNode>,
    store: &Arc<MemoryStore>,
    options: SidecarOptions,
) -> SidecarService {
    let service =
        SidecarService::start(Network::regtest(), node.clone(), store.clone(), options).await.unwrap();
    service.settled(Duration::from_secs(60)).await;
    assert!(service.health().ready, "{:?}", service.health());
    service
}

pub(crate) const COW: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

/// The methods that the node was asked for since the last call, without those that synchronization calls at times of its own.
pub(crate) fn asked(node: &RecordedNode) -> Vec<String> {
    let mut asked = std::mem::take(&mut *node.asked.lock().unwrap());
    asked.retain(|method| !["eth_blockNumber", "eth_getUncleByBlockHashAndIndex"].contains(&method.as_str()));
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn state_comes_from_the_store_and_the_rest_from_the_node() {
    let (node, store) = (node(), Arc::new(store()));
    let service = start(&node, &store, SidecarOptions::default()).await;
    asked(&node);
    for block in ["latest", "0x5", "earliest"] {
        let balance = ask(&service, "eth_getBalance", json!([COW, block])).await;
        let number = match block {
            "latest" => "0x4b",
            "earliest" => "0x0",
            number => number,
        };
        let known = node.replay.answer("eth_getProof", &[json!(COW), json!([]), json!(number)]).unwrap();
        let known: Value = serde_json::from_str(known.get()).unwrap();
        assert_eq!((&balance["result"], &balance["level"]), (&known["balance"], &Value::Null), "{balance}");
        let proof = ask(&service, "eth_getProof", json!([COW, [], block])).await;
        assert_eq!(proof["result"]["accountProof"], known["accountProof"]);
    }
    assert_eq!(asked(&node), [""; 0], "the node was not asked");
    let block = ask(&service, "eth_getBlockByNumber", json!(["0x5", false])).await;
    assert_eq!((&block["result"]["number"], &block["level"]), (&json!("0x5"), &json!("unproven")));
    assert_eq!(asked(&node), ["eth_getBlockByNumber"]);
    let raw = ask(&service, "ext_getRawBlockHeaderByNumber", json!(["0x5"])).await;
    assert!(raw["result"].is_string(), "{raw}");
    assert_eq!(asked(&node), ["rsk_getRawBlockHeaderByNumber"], "under the name that the node knows");
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_the_store_does_not_give_are_refused_by_name() {
    let (node, store) = (node(), Arc::new(store()));
    let service = start(&node, &store, SidecarOptions { executes: true, ..SidecarOptions::default() }).await;
    assert_eq!(service.provable_block(), Some(75));
    let root = |number| node.replay.block(number).unwrap().1;
    let refused = async |service: &SidecarService, block: &str| {
        let answer = ask(service, "eth_getBalance", json!([COW, block])).await;
        assert_eq!(answer["error"]["code"], -32002, "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    // The state of the head is not on disk.
    let head = store.0.lock().unwrap().remove(&root(75)).unwrap();
    let message = refused(&service, "latest").await;
    assert!(message.contains("block 75") && message.contains("rsk_flush"), "{message}");
    assert!(refused(&service, "0x4b").await.contains("flushNumberOfBlocks"));
    assert_eq!(service.health().provable_block, (0..75).rev().find(|number| root(*number) != root(75)));
    // The node writes it.
    store.0.lock().unwrap().insert(root(75), head);
    assert!(ask(&service, "eth_getBalance", json!([COW, "latest"])).await["result"].is_string());
    // The store has the root, and not what is below it. Another client has not read the account before.
    let answer = ask(&service, "eth_getProof", json!([COW, [], "latest"])).await;
    let nodes = answer["result"]["accountProof"].as_array().unwrap();
    let second: Bytes = nodes[1].as_str().unwrap().parse().unwrap();
    let second = rootlight::trie::unwrap_node(&second).unwrap().to_vec();
    let hash = keccak256(&second);
    let mut damaged = second.clone();
    damaged[2] ^= 1;
    store.0.lock().unwrap().insert(hash, damaged.into());
    let options = SidecarOptions { executes: true, ..SidecarOptions::default() };
    let service = start(&node, &store, options).await;
    let message = refused(&service, "latest").await;
    assert!(message.contains(&hash.to_string()) && message.contains("another hash"), "{message}");
    store.0.lock().unwrap().remove(&hash);
    let message = refused(&service, "latest").await;
    assert!(message.contains(&hash.to_string()) && message.contains("no entry"), "{message}");
    // The node would run the call; the recording does not have it.
    let call = ask(&service, "eth_call", json!([{"to": COW}, "latest"])).await;
    assert!(call["error"].is_object(), "{call}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_network_or_store_is_refused_at_the_start() {
    let start = async |network: Network, store: MemoryStore| {
        SidecarService::start(network, node(), Arc::new(store), SidecarOptions::default())
            .await
            .err()
            .unwrap()
    };
    let other = start(Network::testnet(), store()).await;
    assert!(matches!(other, SidecarError::ChainId { expected: 31, found: 33, .. }), "{other}");
    let foreign = start(Network::regtest(), MemoryStore::default()).await;
    assert!(matches!(foreign, SidecarError::ForeignStore(_)), "{foreign}");
    let mut genesis = Network::regtest();
    genesis.genesis_hash = B256::ZERO;
    assert!(matches!(start(genesis, store()).await, SidecarError::Genesis { .. }));
}

/// The node is asked once, and not again while the state of its head is on disk.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_asked_to_write_the_state_of_its_head() {
    let (node, store) = (node(), Arc::new(store()));
    let head = store.0.lock().unwrap().remove(&node.replay.block(75).unwrap().1).unwrap();
    *node.unwritten.lock().unwrap() = Some((head, store.clone()));
    let options = SidecarOptions { flush: Some(Duration::from_millis(20)), ..SidecarOptions::default() };
    let service = start(&node, &store, options).await;
    let proven = async {
        while ask(&service, "eth_getBalance", json!([COW, "latest"])).await["result"].is_null() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), proven).await.expect("written within a minute");
    tokio::time::sleep(Duration::from_millis(100)).await;
    asked(&node);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!asked(&node).contains(&"rsk_flush".to_owned()));
    assert_eq!(service.provable_block(), Some(75));
}

/// A store on a disk that answers late while it is `stalled`, but within half a minute.
#[derive(Debug, Default)]
struct Disk {
    store: MemoryStore,
    stalled: AtomicBool,
    reads: AtomicUsize,
}

impl NodeSource for Disk {
    fn node(&self, hash: &B256) -> Option<Bytes> {
        self.reads.fetch_add(1, Ordering::SeqCst);
        for _ in 0..3_000 {
            if !self.stalled.load(Ordering::SeqCst) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.store.node(hash)
    }
}

impl TrieStore for Disk {
    fn why_missing(&self, hash: &B256) -> StoreFault {
        self.store.why_missing(hash)
    }
}

impl NodeStore for Disk {
    fn catch_up(&self) -> Result<(), String> {
        Ok(())
    }

    /// There is something new as soon as the disk stalls.
    fn version(&self) -> u64 {
        self.stalled.load(Ordering::SeqCst).into()
    }
}

/// Probes and peers ask which states there are, on the threads that serve everybody.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_slow_disk_delays_neither_probes_nor_other_work() {
    let disk = Arc::new(Disk { store: store(), ..Disk::default() });
    let service =
        SidecarService::start(Network::regtest(), node(), disk.clone(), SidecarOptions::default()).await;
    let service = Arc::new(service.unwrap());
    service.settled(Duration::from_secs(60)).await;
    assert_eq!(service.provable_block(), Some(75));
    disk.reads.store(0, Ordering::SeqCst);
    disk.stalled.store(true, Ordering::SeqCst);
    let probe = || {
        let service = service.clone();
        tokio::spawn(async move { service.health().provable_block })
    };
    let searching = probe();
    while disk.reads.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let other = tokio::time::timeout(Duration::from_secs(15), probe()).await;
    assert_eq!(other.expect("it does not wait").unwrap(), Some(75));
    assert!(!searching.is_finished());
    disk.stalled.store(false, Ordering::SeqCst);
    assert_eq!(searching.await.unwrap(), Some(75));
}
