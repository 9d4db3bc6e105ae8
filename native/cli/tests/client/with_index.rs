//! A light client whose backend has an index in PostgreSQL before it.

use crate::common::{self, ask};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::light::{SyncOptions, UpstreamRequest};
use rootlight_cluster::{ChainSource, IndexSource, with_index};
use rootlight_index::testkit::{PostgresServer, client_config};
use rootlight_index::{Database, IndexError, Loader, LoaderOptions, Setup};
use rootlight_node::light::index::BlockIndex;
use rootlight_node::light::{LightOptions, LightService, LightStart};
use rootlight_server::service::Service;
use rootlight_upstream::replay::Replay;
use rootlight_upstream::{ReservedResults, SharedUpstream, Upstream, UpstreamError, unreserved};
use serde_json::{Value, json};

/// The last block of the recording.
const HEAD: u64 = 676;
/// Where the client starts. It also knows the 449 headers below.
const START: u64 = 600;
/// The oldest block that the client proves.
const LOWEST: u64 = START - 449;

/// The recording as a backend that can be without bodies and receipts, and counts the requests for bodies.
struct PartialBackend {
    replay: Replay,
    lacks_blocks: AtomicBool,
    bodies: AtomicUsize,
}

/// Whether a request is for the body or the receipts of a block.
fn is_of_block(request: &UpstreamRequest) -> bool {
    let full = request.params.ends_with(",true]");
    (request.method.starts_with("eth_getBlockBy") && full)
        || request.method.starts_with("eth_getTransaction")
        || request.method.starts_with("rsk_getRawTransactionReceipt")
}

impl Upstream for PartialBackend {
    fn request_reserved(&self, requests: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            let count = |counter: &AtomicUsize, wanted: fn(&UpstreamRequest) -> bool| {
                counter
                    .fetch_add(requests.iter().filter(|request| wanted(request)).count(), Ordering::SeqCst);
            };
            count(&self.bodies, |request| {
                request.method == "eth_getBlockByHash" && request.params.ends_with(",true]")
            });
            let lacks =
                |request: &UpstreamRequest| self.lacks_blocks.load(Ordering::SeqCst) && is_of_block(request);
            let refused: Vec<bool> = requests.iter().map(lacks).collect();
            let error =
                || Err(UpstreamError::Rpc { code: -32601, message: "no such method".into(), data: None });
            let answers = self.replay.request(requests).await;
            answers
                .into_iter()
                .zip(refused)
                .map(|(answer, refused)| if refused { error() } else { answer })
                .collect()
        }))
    }

    fn name(&self) -> &str {
        "backend"
    }
}

fn options(index: Option<Arc<dyn BlockIndex>>) -> LightOptions {
    let sync =
        SyncOptions { poll: 50, retry: 50, longest_retry: 100, work_floor: 0, ..SyncOptions::default() };
    LightOptions { sync, max_age: 0, index, ..LightOptions::default() }
}

fn at(replay: &Replay, number: u64) -> LightStart {
    let hash = replay.block(number).unwrap().0;
    LightStart::At(Checkpoint { number, hash, total_difficulty: None })
}

async fn started(
    start: LightStart,
    upstreams: Vec<SharedUpstream>,
    index: Option<Arc<dyn BlockIndex>>,
) -> LightService {
    let light = LightService::start(Network::regtest(), start, upstreams, options(index));
    light.settled(Duration::from_secs(60)).await;
    assert_eq!(light.health().block_number, Some(HEAD));
    light
}

/// A client with an index, and one that proves the whole recording.
struct IndexFixture {
    server: PostgresServer,
    backend: Arc<PartialBackend>,
    index: Arc<IndexSource>,
    front: LightService,
    truth: LightService,
}

impl IndexFixture {
    async fn new() -> Option<Self> {
        Self::with_traces(false).await
    }

    async fn with_traces(traces: bool) -> Option<Self> {
        let folder = common::shared("vectors/chain")?;
        let server = PostgresServer::start(&[])?;
        let open = || Replay::open(folder.to_str().unwrap()).unwrap();
        let recorded: SharedUpstream = Arc::new(open());
        let truth = started(at(&open(), 0), vec![recorded.clone()], None).await;
        load(&server, recorded, traces).await;
        let backend =
            PartialBackend { replay: open(), lacks_blocks: false.into(), bodies: AtomicUsize::new(0) };
        let backend = Arc::new(backend);
        let network = Arc::new(Network::regtest());
        let index = IndexSource::open(&server.address("postgres"), network, 8 << 20).await.unwrap();
        let start = at(&backend.replay, START);
        let front = started(start, with_index(vec![backend.clone()], &index), Some(index.clone())).await;
        index.follow(front.proven_chain());
        Some(Self { server, backend, index, front, truth })
    }

    /// Logs of a range as the client with the index answers, and as they are.
    async fn logs(&self, from: u64, to: u64) -> (Value, Value) {
        let range = json!([{ "fromBlock": format!("{from:#x}"), "toBlock": format!("{to:#x}") }]);
        let given = ask(&self.front, "eth_getLogs", range.clone()).await;
        (given, ask(&self.truth, "eth_getLogs", range).await["result"].clone())
    }

    async fn transactions(&self, number: u64) -> Vec<Value> {
        let block = ask(&self.truth, "eth_getBlockByNumber", json!([format!("{number:#x}"), false])).await;
        block["result"]["transactions"].as_array().unwrap().clone()
    }

    async fn sql(&self, sql: &str) {
        self.server.execute("postgres", sql).await;
    }
}

async fn load(server: &PostgresServer, recorded: SharedUpstream, traces: bool) {
    let network = Network::regtest();
    let replay = Replay::open(common::shared("vectors/chain").unwrap().to_str().unwrap()).unwrap();
    let light = started(at(&replay, 0), vec![recorded.clone()], None).await;
    let source = ChainSource::new(light, vec![recorded], Arc::new(network.clone()));
    let source = if traces { source.with_traces() } else { source };
    let setup = Setup {
        partition_blocks: Some(200),
        first_block: None,
        wait: false,
        connections: 6,
        name: "test".into(),
    };
    let loader = Loader {
        database: Database::parse(&server.address("postgres"), client_config()).unwrap(),
        network,
        setup,
        source: Arc::new(source),
        options: LoaderOptions { jobs: 2, once: true, traces, ..LoaderOptions::default() },
        observer: Arc::new(|_| {}),
    };
    loader.run().await.unwrap();
}

/// The backend has neither bodies nor receipts, so everything here is from the index.
#[tokio::test(flavor = "multi_thread")]
async fn the_index_gives_blocks_that_are_proven_and_older_ones_that_are_not() {
    let Some(setting) = IndexFixture::new().await else { return };
    setting.backend.lacks_blocks.store(true, Ordering::SeqCst);
    let last = HEAD - 10;
    let (given, truth) = setting.logs(LOWEST, last).await;
    assert!(truth.as_array().unwrap().len() > 100);
    assert_eq!((&given["result"], &given["level"]), (&truth, &Value::Null), "proven here: {given}");

    // Below the start, and across it.
    for to in [LOWEST - 1, last] {
        let (given, truth) = setting.logs(1, to).await;
        assert_eq!((&given["result"], &given["level"]), (&truth, &json!("unproven")), "up to {to}");
    }

    for (number, level) in [(LOWEST - 1, json!("unproven")), (LOWEST, Value::Null), (last, Value::Null)] {
        for hash in setting.transactions(number).await {
            for method in ["eth_getTransactionByHash", "eth_getTransactionReceipt"] {
                let given = ask(&setting.front, method, json!([hash])).await;
                let truth = ask(&setting.truth, method, json!([hash])).await;
                assert_eq!((&given["result"], &given["level"]), (&truth["result"], &level), "block {number}");
            }
        }
    }
}

/// The reference node's own traces, which nothing proves, and uncles, which match the hash in the header.
#[tokio::test(flavor = "multi_thread")]
async fn traces_and_uncles_of_older_blocks_are_those_of_the_source() {
    let Some(setting) = IndexFixture::with_traces(true).await else { return };
    let (mut traces, mut uncles) = (0, 0);
    // The header below the lowest one is known by its hash, and proven by it.
    for number in 0..LOWEST - 1 {
        let at = format!("{number:#x}");
        let block = ask(&setting.truth, "eth_getBlockByNumber", json!([at, false])).await["result"].clone();
        let given = ask(&setting.front, "trace_block", json!([at])).await;
        let request = UpstreamRequest::new("trace_block", json!([block["hash"]]).to_string());
        let recorded = setting.backend.replay.request(vec![request]).await.remove(0).unwrap();
        let mut recorded: Value = serde_json::from_str(recorded.get()).unwrap();
        for trace in recorded.as_array_mut().unwrap() {
            traces += 1;
            // The reference node leaves an empty result out, or shows it as null.
            trace.as_object_mut().unwrap().entry("result").or_insert(Value::Null);
        }
        assert_eq!((&given["result"], &given["level"]), (&recorded, &json!("unproven")), "block {number}");

        let hashes = block["uncles"].as_array().unwrap();
        for (method, at) in [
            ("eth_getUncleCountByBlockNumber", json!([at])),
            ("eth_getUncleCountByBlockHash", json!([block["hash"]])),
        ] {
            let given = ask(&setting.front, method, at).await;
            let count = json!(format!("{:#x}", hashes.len()));
            assert_eq!(
                (&given["result"], &given["level"]),
                (&count, &json!("unproven")),
                "{method} {number}"
            );
        }
        for index in 0..=hashes.len() {
            let index = format!("{index:#x}");
            for (method, at) in [
                ("eth_getUncleByBlockNumberAndIndex", json!([at, index])),
                ("eth_getUncleByBlockHashAndIndex", json!([block["hash"], index])),
            ] {
                let given = ask(&setting.front, method, at.clone()).await;
                let mut truth = ask(&setting.truth, method, at).await["result"].clone();
                if let Some(uncle) = truth.as_object_mut() {
                    uncles += 1;
                    // The index has no total difficulty, and no uncles of uncles.
                    let known = uncle["uncles"] == json!([]);
                    let absent = if known {
                        &["totalDifficulty"][..]
                    } else {
                        &["totalDifficulty", "cumulativeDifficulty", "uncles"]
                    };
                    absent.iter().for_each(|name| uncle[*name] = Value::Null);
                }
                assert_eq!(
                    (&given["result"], &given["level"]),
                    (&truth, &json!("unproven")),
                    "{method} {number}"
                );
            }
        }
    }
    assert!(traces > 500 && uncles > 10, "{traces} traces, {uncles} uncles");
}

/// A message may have a head that is older than the newest blocks of the index, so the backend gives their bodies.
#[tokio::test(flavor = "multi_thread")]
async fn the_backend_is_asked_for_the_newest_bodies_alone() {
    let Some(setting) = IndexFixture::new().await else { return };
    let (given, truth) = setting.logs(LOWEST, HEAD).await;
    assert_eq!((&given["result"], &given["level"]), (&truth, &Value::Null));
    let bodies = setting.backend.bodies.load(Ordering::SeqCst);
    assert!((1..=8).contains(&bodies), "{bodies} bodies were asked for");
    let counts = setting.index.counts();
    assert!(counts.answered > 100 && counts.failed == 0, "{counts:?}");
}

/// Rows that do not match the header are not passed on, so that neither the answer nor the backend's record suffers.
#[tokio::test(flavor = "multi_thread")]
async fn false_rows_of_proven_blocks_change_nothing() {
    let Some(setting) = IndexFixture::new().await else { return };
    setting.sql("UPDATE rootlight.logs SET data = '\\x00'").await;
    setting.sql("UPDATE rootlight.receipts SET success = NOT success").await;
    let (given, truth) = setting.logs(LOWEST, HEAD).await;
    assert_eq!((&given["result"], &given["level"]), (&truth, &Value::Null));
    let upstreams = ask(&setting.front, "rootlight_upstreams", json!([])).await;
    assert_eq!(upstreams["result"][0]["lies"], json!(0), "{upstreams}");
    assert_eq!(setting.index.counts().answered, 0);
}

/// A block that the chain does not have, at a height that the client proves: the index lags behind a reorganisation.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_of_another_branch_are_not_passed_on() {
    let Some(setting) = IndexFixture::new().await else { return };
    setting.sql("UPDATE rootlight.blocks SET hash = sha256(hash) WHERE number = 300").await;
    let (given, _) = setting.logs(1, HEAD).await;
    let message = given["error"]["message"].as_str().unwrap();
    assert!(message.contains("block 300 is not on the proven chain"), "{message}");
    let (given, truth) = setting.logs(290, 310).await;
    assert_eq!((&given["result"], &given["level"]), (&truth, &Value::Null), "the backend answers");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_database_the_backends_answer_what_they_can() {
    let Some(setting) = IndexFixture::new().await else { return };
    setting.server.end("QUIT");
    let (given, truth) = setting.logs(LOWEST, HEAD).await;
    assert_eq!((&given["result"], &given["level"]), (&truth, &Value::Null));
    let (given, _) = setting.logs(1, LOWEST).await;
    assert_eq!(given["error"]["code"], json!(-32002));
    let message = given["error"]["message"].as_str().unwrap();
    assert!(message.contains("the index gives no answer: its database failed"), "{message}");

    setting.server.run();
    let again = async {
        loop {
            let (given, truth) = setting.logs(1, LOWEST).await;
            if given["result"] == truth {
                return;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), again).await.expect("the index answers again");
}

/// A partition that was dropped is not an outage, and its blocks are named.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_the_index_lacks_are_named() {
    let Some(setting) = IndexFixture::new().await else { return };
    setting.sql("DELETE FROM rootlight.ranges WHERE first_block = 0").await;
    let (given, _) = setting.logs(1, LOWEST).await;
    let message = given["error"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("Resource unavailable: the index gives no answer: ") && message.contains("151"),
        "{message}"
    );
    let (given, truth) = setting.logs(210, 300).await;
    assert_eq!((&given["result"], &given["level"]), (&truth, &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_network_is_refused_and_one_that_is_away_is_not() {
    let Some(setting) = IndexFixture::new().await else { return };
    let address = setting.server.address("postgres");
    let refused = IndexSource::open(&address, Arc::new(Network::mainnet()), 8 << 20).await.unwrap_err();
    assert!(matches!(refused, IndexError::OtherNetwork { .. }), "{refused}");
    setting.server.end("QUIT");
    assert!(IndexSource::open(&address, Arc::new(Network::mainnet()), 8 << 20).await.is_ok());
}
