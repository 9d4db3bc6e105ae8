//! The store that the reference node wrote while the recorded chain was made.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alloy_primitives::{B256, Bytes, hex};
use futures::future::BoxFuture;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::light::UpstreamRequest;
use rootlight::trie::{self, EMPTY_ROOT, Loader, NodeSource as _, StoreFault, TrieStore as _, WalkError};
use rootlight_node::light::{LightOptions, LightService};
use rootlight_node::rskj_store::{OpenStoreError, RskjStore};
use rootlight_node::sidecar::{NodeChain, SidecarOptions, SidecarService};
use rootlight_server::methods::Profile;
use rootlight_server::service::Service;
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{HttpConfig, ReservedResults, Upstream, open_with, unreserved};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::beside::{RecordedNode, asked};
use crate::common::{self, ask};

/// An account of the genesis block.
const COW: &str = "0xcd2a3d9f938e13cd947ec05abc7fe734df8dd826";

/// The head when logs were recorded.
const LOGS_HEAD: u64 = 0x284;

/// 64 MiB of nodes.
const CACHE: u64 = 64 << 20;

fn recorded() -> Option<(PathBuf, Arc<RskjStore>)> {
    let (chain, store) = (common::shared("vectors/chain")?, common::shared("vectors/rskj_store")?);
    Some((chain, Arc::new(RskjStore::open(&store, CACHE).unwrap())))
}

fn lines(chain: &std::path::Path, name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(chain.join(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn bytes(text: &Value) -> Bytes {
    text.as_str().unwrap().parse().unwrap()
}

/// Each recorded path is the store's, node by node.
#[test]
fn every_recorded_proof_of_a_flushed_block_is_reproduced() {
    let Some((chain, store)) = recorded() else { return };
    let mut counts = BTreeMap::<String, usize>::new();
    for line in lines(&chain, "state_proofs.jsonl") {
        let root: B256 = line["root"].as_str().unwrap().parse().unwrap();
        if root != EMPTY_ROOT && store.node(&root).is_none() {
            continue;
        }
        let key = bytes(&line["key"]);
        let nodes = trie::prove(&*store, root, &key).unwrap();
        let embedded = line["info"].as_array().unwrap().iter().map(|info| info["embedded"] == true);
        let listed = line["nodes"].as_array().unwrap().iter().zip(embedded);
        let listed: Vec<Bytes> =
            listed.filter(|(_, embedded)| !embedded).map(|(node, _)| bytes(node)).collect();
        assert_eq!(nodes, listed, "{} of block {}", line["label"], line["block"]);
        let value = trie::lookup_value(&*store, root, &key).unwrap();
        assert_eq!(value.map(hex::encode_prefixed), line["value"].as_str().map(str::to_owned));
        let proven = trie::verify_path(root, &key, &nodes).unwrap();
        assert_eq!(matches!(proven, trie::Leaf::Absent), line["outcome"] != "present");
        *counts.entry(line["outcome"].to_string()).or_default() += 1;
    }
    assert!(counts.len() >= 2 && counts.values().sum::<usize>() == 576, "{counts:?}");
}

/// The walk reads every node and long value, and the root is computed from what it found.
#[test]
fn whole_states_are_walked_and_their_roots_computed() {
    let Some((chain, store)) = recorded() else { return };
    let replay = Replay::open(&chain).unwrap();
    for number in [0, 1, 10, 122, 300, 647] {
        let (_, root) = replay.block(number).unwrap();
        let trie = Loader::new(&*store).load(root).unwrap();
        let mut rebuilt = rootlight::trie::Trie::new();
        let mut keys = 0;
        trie.for_each(&mut |key, value| {
            rebuilt.put(key, value.clone());
            keys += 1;
        });
        assert_eq!(rebuilt.root(), root, "block {number}");
        assert!(keys > 10, "{keys} keys");
    }
}

#[test]
fn random_keys_are_proven_absent() {
    let Some((chain, store)) = recorded() else { return };
    let replay = Replay::open(&chain).unwrap();
    let mut seed = B256::repeat_byte(7);
    for number in (0..=640).step_by(5) {
        let (_, root) = replay.block(number).unwrap();
        for length in [1, 12, 31, 32, 50, 74] {
            seed = alloy_primitives::keccak256(seed);
            let key: Vec<u8> = seed.iter().cycle().take(length).copied().collect();
            let nodes = trie::prove(&*store, root, &key).unwrap();
            let proven = trie::verify_path(root, &key, &nodes).unwrap();
            assert!(matches!(proven, trie::Leaf::Absent), "{}", hex::encode(&key));
        }
    }
}

/// The newest states were not on disk when the store was copied.
#[test]
fn missing_states_are_refused_with_a_reason() {
    let Some((chain, store)) = recorded() else { return };
    let replay = Replay::open(&chain).unwrap();
    let roots = (0..=677).filter_map(|number| Some((number, replay.block(number)?.1)));
    let stored = roots.filter(|(_, root)| store.node(root).is_some()).map(|(number, _)| number);
    assert_eq!(stored.max(), Some(647));
    let (_, root) = replay.block(replay.head().unwrap()).unwrap();
    assert_eq!(trie::prove(&*store, root, b"x"), Err(WalkError::Missing(root)));
    assert_eq!(store.why_missing(&root), StoreFault::Absent);
}

/// A light client whose only upstream is a sidecar over HTTP, which has the recording as its node.
async fn light() -> Option<(common::RunningServer, Arc<SidecarService>, LightService, PathBuf)> {
    let (chain, store) = recorded()?;
    let replay = Arc::new(Replay::open(&chain).unwrap());
    let (genesis, _) = replay.block(0).unwrap();
    let options = SidecarOptions { executes: true, ..SidecarOptions::default() };
    let sidecar = Arc::new(SidecarService::start(Network::regtest(), replay, store, options).await.unwrap());
    sidecar.settled(Duration::from_secs(60)).await;
    assert_eq!(sidecar.health().provable_block, Some(647));
    let mut config = common::config();
    // As `rootlight sidecar` does.
    config.admission.profile = Profile::Hosted;
    let served = common::start_service(config, sidecar.clone()).await;
    let _ = rustls::crypto::ring::default_provider().install_default();
    let upstream = open_with(&served.url("/"), HttpConfig::default()).unwrap();
    let checkpoint = Checkpoint { number: 0, hash: genesis, total_difficulty: None };
    let light = LightService::start(Network::regtest(), checkpoint, vec![upstream], LightOptions::default());
    light.settled(Duration::from_secs(60)).await;
    assert!(light.is_synced(), "{:?}", light.health());
    Some((served, sidecar, light, chain))
}

/// The number of a request's block, if it is one whose state is on disk.
fn flushed(params: &Value) -> bool {
    let number = |text: &Value| u64::from_str_radix(text.as_str()?.strip_prefix("0x")?, 16).ok();
    let block = params.as_array().and_then(|params| params.last()).and_then(number);
    block.is_some_and(|number| number <= 647)
}

/// Balances, nonces, storage and code at all recorded blocks whose state is on disk: equal, and verified.
#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_proves_recorded_state_by_the_sidecar() {
    let Some((_served, _sidecar, light, chain)) = light().await else { return };
    proves_recorded_state(&light, &chain).await;
}

/// The same by the peer-to-peer network alone: headers and bodies of the recorded node, chunks of its store.
#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_proves_recorded_state_by_the_sidecar_as_a_peer() {
    let Some((_served, sidecar, _light, chain)) = light().await else { return };
    let peer = Arc::new(NodeChain::new(sidecar, Network::regtest()));
    let (_server, light) = crate::peers::light(peer).await;
    proves_recorded_state(&light, &chain).await;
}

async fn proves_recorded_state(light: &LightService, chain: &std::path::Path) {
    let mut counts = BTreeMap::<String, usize>::new();
    for line in lines(chain, "rpc_state.jsonl") {
        let (request, result) = (&line["request"], &line["response"]["result"]);
        let method = request["method"].as_str().unwrap_or_default();
        let known = ["eth_getBalance", "eth_getTransactionCount", "eth_getStorageAt", "eth_getCode"]
            .contains(&method);
        if !known || !flushed(&request["params"]) || !result.is_string() {
            continue;
        }
        let answer = ask(light, method, request["params"].clone()).await;
        assert_eq!((&answer["result"], &answer["level"]), (result, &Value::Null), "{request}");
        *counts.entry(method.to_owned()).or_default() += 1;
    }
    assert!(counts.len() == 4 && counts.values().all(|count| *count > 3), "{counts:?}");
}

/// Calls and estimates run on what the sidecar proves; logs need its node.
#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_calls_and_finds_logs_by_the_sidecar() {
    let Some((_served, sidecar, light, chain)) = light().await else { return };
    let mut counts = BTreeMap::<String, usize>::new();
    for line in lines(&chain, "rpc_call.jsonl") {
        let (request, response) = (&line["request"], &line["response"]);
        let method = request["method"].as_str().unwrap_or_default();
        if !flushed(&request["params"]) || !response["result"].is_string() {
            continue;
        }
        let answer = ask(&light, method, request["params"].clone()).await;
        if answer["error"]["code"] == -32004 {
            // A Bridge method that is not simulated.
            continue;
        }
        assert_eq!(
            (&answer["result"], &answer["level"]),
            (&response["result"], &Value::Null),
            "{request}: {answer}"
        );
        let own = ask(&*sidecar, method, request["params"].clone()).await;
        assert_eq!((&own["result"], &own["level"]), (&response["result"], &Value::Null), "{request}: {own}");
        *counts.entry(method.to_owned()).or_default() += 1;
    }
    for line in lines(&chain, "rpc_logs.jsonl") {
        let (request, result) = (&line["request"], &line["response"]["result"]);
        let end = |name: &str| {
            let digits = request["params"][0][name].as_str()?.strip_prefix("0x")?;
            u64::from_str_radix(digits, 16).ok()
        };
        // A range that ends before it starts is an error here (docs/differences.md).
        let (first, last) = (end("fromBlock"), end("toBlock").filter(|last| *last <= LOGS_HEAD));
        let proven = first.zip(last).is_some_and(|(first, last)| first <= last);
        if request["method"] != "eth_getLogs" || !result.is_array() || !proven {
            continue;
        }
        let mut answer = ask(&light, "eth_getLogs", request["params"].clone()).await;
        // The reference node leaves the member out.
        for log in answer["result"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            assert_eq!(log.remove("removed"), Some(json!(false)));
        }
        let (ours, theirs) = (answer["result"].as_array().unwrap(), result.as_array().unwrap());
        for (one, other) in ours.iter().zip(theirs) {
            assert_eq!(one, other, "{request}");
        }
        assert_eq!((ours.len(), &answer["level"]), (theirs.len(), &Value::Null), "{request}");
        *counts.entry("eth_getLogs".to_owned()).or_default() += 1;
    }
    assert!(counts.len() == 3 && counts.values().all(|count| *count > 3), "{counts:?}");
}

/// Block witnesses are complete: a light client that has nothing else replays the block.
#[tokio::test(flavor = "multi_thread")]
async fn a_light_client_traces_blocks_by_the_sidecar() {
    let Some((_served, sidecar, light, chain)) = light().await else { return };
    let mut traced = 0;
    for line in lines(&chain, "trace_block.jsonl")
        .iter()
        .filter(|line| line["response"]["result"].is_array())
        .step_by(7)
    {
        let params = &line["request"]["params"];
        let answer = ask(&light, "trace_block", params.clone()).await;
        if answer["error"]["message"].as_str().is_some_and(|message| {
            message.contains("not simulated") || message.contains("not in the node's store")
        }) {
            continue;
        }
        // Texts of errors and some inner frames differ from the reference node's.
        let of = |traces: &Value| -> Vec<Value> {
            let traces = traces.as_array().unwrap().iter();
            let mut all: Vec<Value> = traces.map(|trace| trace["transactionHash"].clone()).collect();
            all.dedup();
            all
        };
        assert_eq!(of(&answer["result"]), of(&line["response"]["result"]), "{params}");
        assert_eq!(
            ask(&*sidecar, "trace_block", params.clone()).await["result"],
            answer["result"],
            "{params}"
        );
        traced += 1;
    }
    assert!(traced > 10, "{traced} blocks");
}

/// Methods that a node offers on its loopback interface are not passed on.
#[tokio::test(flavor = "multi_thread")]
async fn loopback_only_methods_of_the_node_are_not_offered() {
    let Some((served, _sidecar, _light, _)) = light().await else { return };
    let client = common::client();
    for method in [
        "personal_listAccounts",
        "personal_unlockAccount",
        "evm_mine",
        "evm_revert",
        "mnr_getWork",
        "rsk_shutdown",
        "rsk_flush",
        "eth_sendTransaction",
        "eth_sign",
        "anvil_setBalance",
    ] {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": []}).to_string();
        let answer =
            client.post(served.url("/")).header("content-type", "application/json").body(call).send().await;
        let answer: Value = serde_json::from_slice(&answer.unwrap().bytes().await.unwrap()).unwrap();
        assert!(answer["error"]["code"] == -32601 || answer["error"]["code"] == -32602, "{method}: {answer}");
    }
}

/// The verified chain starts at block 667, and 449 blocks below it are linked by their hashes. The state of older blocks is
/// proven too, under headers that the node shows.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_below_the_start_are_taken_from_the_node() {
    let Some((chain, store)) = recorded() else { return };
    let node = Arc::new(Replay::open(&chain).unwrap());
    let start = async |depth| {
        let options = SidecarOptions { executes: true, depth, ..SidecarOptions::default() };
        let service =
            SidecarService::start(Network::regtest(), node.clone(), store.clone(), options).await.unwrap();
        service.settled(Duration::from_secs(60)).await;
        service
    };
    let (whole, service) = (start(8_192).await, start(10).await);
    let hash = node.block(20).unwrap().0;
    for block in [json!("0x14"), json!(hash), json!({"blockHash": hash, "requireCanonical": true})] {
        for (method, params) in [
            ("eth_getProof", json!([COW, ["0x0"], block])),
            ("eth_call", json!([{"to": COW}, block])),
            ("rootlight_getWitness", json!([{"to": COW, "value": "0x1"}, block])),
        ] {
            let (here, there) =
                (ask(&service, method, params.clone()).await, ask(&whole, method, params).await);
            assert!(here["result"].is_string() || here["result"].is_object(), "{method} {block}: {here}");
            assert_eq!(here["result"], there["result"], "{method} {block}");
            assert_eq!(
                (&here["level"], &there["level"]),
                (&json!("unproven"), &Value::Null),
                "nothing proves the header"
            );
        }
    }
    let verification = ask(&service, "rootlight_verification", json!(["0x14"])).await;
    assert_eq!(
        (&verification["result"]["level"], &verification["result"]["origin"]),
        (&json!("unproven"), &json!("own node"))
    );
    let headers = ask(&service, "rootlight_getHeaders", json!(["0x1", "0x100"])).await;
    assert_eq!(
        headers["result"],
        ask(&whole, "rootlight_getHeaders", json!(["0x1", "0x100"])).await["result"]
    );
    let other = "0x".to_owned() + &"11".repeat(32);
    let unknown = ask(&service, "eth_getBalance", json!([COW, {"blockHash": other}])).await;
    assert!(unknown["error"].is_object(), "{unknown}");
}

/// A copy of the recorded store that can be changed.
fn copy() -> Option<tempfile::TempDir> {
    let recorded = common::shared("vectors/rskj_store")?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("unitrie")).unwrap();
    for entry in recorded.join("unitrie").read_dir().unwrap() {
        let from = entry.unwrap().path();
        // Written anew, because the recording may not be writable.
        std::fs::write(
            folder.path().join("unitrie").join(from.file_name().unwrap()),
            std::fs::read(&from).unwrap(),
        )
        .unwrap();
    }
    Some(folder)
}

fn table(folder: &tempfile::TempDir) -> PathBuf {
    let mut files = folder.path().join("unitrie").read_dir().unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "sst")).unwrap()
}

/// RocksDB opens what is left of a copy without its largest file.
#[test]
fn a_copy_without_a_file_gives_nothing_wrong() {
    let (Some(folder), Some(chain)) = (copy(), common::shared("vectors/chain")) else { return };
    std::fs::remove_file(table(&folder)).unwrap();
    let store = Arc::new(RskjStore::open(folder.path(), CACHE).unwrap());
    for line in lines(&chain, "state_proofs.jsonl").iter().step_by(9) {
        let root: B256 = line["root"].as_str().unwrap().parse().unwrap();
        match trie::lookup_value(&*store, root, &bytes(&line["key"])) {
            Ok(value) => {
                assert_eq!(value.map(hex::encode_prefixed), line["value"].as_str().map(str::to_owned))
            }
            Err(WalkError::Missing(hash)) => assert_eq!(store.why_missing(&hash), StoreFault::Absent),
            Err(other) => panic!("{other}"),
        }
    }
    std::fs::write(folder.path().join("unitrie/CURRENT"), "MANIFEST-999999\n").unwrap();
    let error = RskjStore::open(folder.path(), CACHE).unwrap_err();
    assert!(matches!(&error, OpenStoreError::Database { path, .. } if path.ends_with("unitrie")), "{error}");
}

/// Whatever byte of the store is damaged, what is read is right or missing with a reason.
#[test]
fn a_damaged_copy_gives_nothing_wrong() {
    let (Some(folder), Some(chain)) = (copy(), common::shared("vectors/chain")) else { return };
    let table = table(&folder);
    let whole = std::fs::read(&table).unwrap();
    let proofs: Vec<Value> = lines(&chain, "state_proofs.jsonl").into_iter().step_by(5).collect();
    let (mut read, mut missing) = (0, 0);
    for part in 1..40 {
        let mut damaged = whole.clone();
        let at = whole.len() * part / 40;
        damaged[at..at + 500].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&table, &damaged).unwrap();
        let Ok(store) = RskjStore::open(folder.path(), CACHE) else {
            missing += 1;
            continue;
        };
        for line in &proofs {
            let root: B256 = line["root"].as_str().unwrap().parse().unwrap();
            match trie::lookup_value(&store, root, &bytes(&line["key"])) {
                Ok(value) => {
                    assert_eq!(value.map(hex::encode_prefixed), line["value"].as_str().map(str::to_owned));
                    read += 1;
                }
                Err(WalkError::Missing(hash)) => {
                    assert!(!store.why_missing(&hash).to_string().is_empty());
                    missing += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(read > 100 && missing > 10, "{read} read, {missing} missing");
}

/// The node is asked once for a block, transaction or receipt that is as deep as the tag `finalized`, and again for newer ones.
#[tokio::test(flavor = "multi_thread")]
async fn final_answers_of_the_node_are_kept() {
    let Some((chain, store)) = recorded() else { return };
    let node = RecordedNode::new(Replay::open(&chain).unwrap());
    let service = SidecarService::start(Network::regtest(), node.clone(), store, SidecarOptions::default())
        .await
        .unwrap();
    service.settled(Duration::from_secs(60)).await;
    asked(&node);
    let transaction = ask(&service, "eth_getBlockByNumber", json!(["0x7", true])).await;
    let transaction = transaction["result"]["transactions"][0]["hash"].clone();
    let calls = [
        ("eth_getBlockByNumber", json!(["0x7", true]), 0),
        ("eth_getTransactionReceipt", json!([transaction]), 1),
        ("eth_getTransactionReceipt", json!([transaction]), 0),
        ("eth_getBlockByNumber", json!(["latest", false]), 1),
        ("eth_getBlockByNumber", json!(["latest", false]), 1),
    ];
    asked(&node);
    for (method, params, count) in calls {
        let answer = ask(&service, method, params).await;
        assert!(answer["result"].is_object() && answer["level"] == "unproven", "{answer}");
        assert_eq!(asked(&node).iter().filter(|asked| *asked == method).count(), count, "{method}");
    }
    let range = json!([{"fromBlock": "0x0", "toBlock": "0x7d0"}]);
    let refused = ask(&service, "eth_getLogs", range).await;
    assert_eq!(refused["error"]["code"], -32012, "{refused}");
}

/// The recorded node with a long member in each block.
struct Padded(Arc<RecordedNode>);

impl Upstream for Padded {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            let blocks: Vec<bool> = calls.iter().map(|call| call.method == "eth_getBlockByNumber").collect();
            let results = self.0.request(calls).await.into_iter().zip(blocks);
            results
                .map(|(result, block)| if block { result.map(|raw| padded(&raw)) } else { result })
                .collect()
        }))
    }

    fn name(&self) -> &str {
        "padded node"
    }
}

fn padded(raw: &RawValue) -> Box<RawValue> {
    let mut value: Value = serde_json::from_str(raw.get()).unwrap();
    value["padding"] = "0".repeat(300 << 10).into();
    serde_json::value::to_raw_value(&value).unwrap()
}

/// Responses that are kept count towards the limit of a batch's answer like those that were asked for.
#[tokio::test(flavor = "multi_thread")]
async fn kept_answers_of_the_node_count_towards_the_limit_of_a_batch() {
    let Some((chain, store)) = recorded() else { return };
    let node = RecordedNode::new(Replay::open(&chain).unwrap());
    let upstream = Arc::new(Padded(node.clone()));
    let service =
        SidecarService::start(Network::regtest(), upstream, store, SidecarOptions::default()).await.unwrap();
    service.settled(Duration::from_secs(60)).await;
    let block = ask(&service, "eth_getBlockByNumber", json!(["0x7", true])).await;
    assert!(block["result"]["padding"].as_str().is_some_and(|padding| padding.len() == 300 << 10));
    asked(&node);
    let call =
        |id| json!({"jsonrpc": "2.0", "id": id, "method": "eth_getBlockByNumber", "params": ["0x7", true]});
    let batch = Value::from_iter((0..50).map(call));
    let body = service.answer(batch.to_string().into_bytes()).await.into_text().unwrap();
    assert!(!asked(&node).iter().any(|method| method == "eth_getBlockByNumber"), "the block was kept");
    let answers: Vec<Value> = serde_json::from_str(&body).unwrap();
    let (given, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer["error"].is_null());
    assert_eq!(answers.len(), 50);
    let (one, limit) = (block["result"].to_string().len(), 10 << 20);
    assert!(given.len() * one <= limit && limit < (given.len() + 1) * one, "{} of {one} bytes", given.len());
    assert!(refused.iter().all(|answer| answer["error"]["code"] == -32011), "{:?}", refused.first());
}
