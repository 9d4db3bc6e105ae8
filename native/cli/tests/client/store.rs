//! The light client's store: warm starts, other checkpoints and networks, crashes and damage.

use crate::common::{self, ask};

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use rootlight::consensus::{Checkpoint, HeaderCandidate, Network, WorkStart};
use rootlight::light::{SyncOptions, UpstreamRequest, encode_headers};
use rootlight::rpc::{Call, Message, Reply, RpcError};
use rootlight::types::HeaderForm;
use rootlight_node::light::{FILE, LightOptions, LightService, LightStart, SET_ASIDE};
use rootlight_node::store::ChainStoreError;
use rootlight_server::service::{Caller, ReservedReply, Service};
use rootlight_upstream::{self as upstream, ReservedResults, Upstream, unreserved};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Index of the checkpoint in the headers; those below it are its fork window.
const START: usize = 449;

/// The 1,200 consecutive mainnet headers from 4,479,841 on.
fn headers() -> Option<Vec<HeaderCandidate>> {
    let path = common::shared("realdata/headers/mainnet_4479841_iris_run1200.json")?;
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let network = Network::mainnet();
    let decode = |value: &Value| {
        let rlp = alloy_primitives::hex::decode(value["rlp"].as_str().unwrap()).unwrap();
        HeaderCandidate::decode(&rlp, &network).unwrap()
    };
    Some(file["headers"].as_array().unwrap().iter().map(decode).collect())
}

fn checkpoint(headers: &[HeaderCandidate]) -> Checkpoint {
    checkpoint_at(headers, START)
}

fn checkpoint_at(headers: &[HeaderCandidate], place: usize) -> Checkpoint {
    let header = headers[place].header();
    Checkpoint { number: header.number, hash: header.hash(), total_difficulty: None }
}

/// An upstream that has these headers up to a head that may grow, and nothing else.
struct HeaderUpstream {
    headers: Vec<HeaderCandidate>,
    head: AtomicUsize,
    /// Number of headers by which the head grows with each request for the height.
    growth: usize,
    asked: Mutex<Vec<UpstreamRequest>>,
}

impl HeaderUpstream {
    fn new(headers: Vec<HeaderCandidate>, head: usize, growth: usize) -> Arc<Self> {
        Arc::new(Self { headers, head: head.into(), growth, asked: Mutex::default() })
    }

    fn number(&self, index: usize) -> u64 {
        self.headers[index].header().number
    }

    fn answer(&self, method: &str, params: &[Value]) -> Result<String, Value> {
        let last = self.headers.len() - 1;
        match method {
            "eth_blockNumber" => {
                let head = self.head.fetch_add(self.growth, Ordering::SeqCst).min(last);
                Ok(format!("\"{:#x}\"", self.number(head)))
            }
            "rootlight_getHeaders" => {
                let quantity = |index: usize| {
                    let text = params[index].as_str().unwrap().trim_start_matches("0x");
                    u64::from_str_radix(text, 16).unwrap()
                };
                let (first, count) = (quantity(0), quantity(1));
                let top = self.number(self.head.load(Ordering::SeqCst).min(last));
                let wanted = self.headers.iter().map(HeaderCandidate::header).filter(|header| {
                    header.number >= first && header.number < first + count && header.number <= top
                });
                Ok(format!("\"{}\"", encode_headers(wanted.map(|header| (header.header(), Some(&[][..]))))))
            }
            _ => Err(json!({"code": -32601, "message": "method not found"})),
        }
    }

    /// Returns how many headers were requested, and the lowest number.
    fn asked_headers(&self) -> (u64, Option<u64>) {
        let times = self.times_asked();
        (times.values().sum(), times.keys().next().copied())
    }

    /// Returns how often each header was requested, by its number.
    fn times_asked(&self) -> BTreeMap<u64, u64> {
        let asked = self.asked.lock().unwrap();
        let calls = asked.iter().filter(|call| call.method == "rootlight_getHeaders");
        let number = |value: &Value| {
            u64::from_str_radix(value.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
        };
        let mut times = BTreeMap::new();
        for (first, count) in calls.map(params).map(|params| (number(&params[0]), number(&params[1]))) {
            (first..first + count).for_each(|number| *times.entry(number).or_default() += 1);
        }
        times
    }
}

fn params(call: &UpstreamRequest) -> Vec<Value> {
    serde_json::from_str(&call.params).unwrap()
}

impl Upstream for HeaderUpstream {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        Box::pin(unreserved(async move {
            self.asked.lock().unwrap().extend(calls.iter().cloned());
            let answer = |call: &UpstreamRequest| match self.answer(call.method, &params(call)) {
                Ok(text) => Ok(RawValue::from_string(text).unwrap()),
                Err(_) => Err(upstream::UpstreamError::Rpc {
                    code: -32601,
                    message: "method not found".into(),
                    data: None,
                }),
            };
            calls.iter().map(answer).collect()
        }))
    }

    fn name(&self) -> &str {
        "headers"
    }
}

/// The same upstream behind a server on loopback.
struct ServedUpstream(Arc<HeaderUpstream>);

impl Service for ServedUpstream {
    fn answer_message<'a>(&'a self, _: &'a Arc<Caller>, message: Message) -> BoxFuture<'a, ReservedReply> {
        Box::pin(async move {
            let one = |call: &Call| {
                let params: Vec<Value> =
                    call.params.iter().map(|param| serde_json::from_str(param.get()).unwrap()).collect();
                self.0
                    .answer(&call.method, &params)
                    .map(|text| RawValue::from_string(text).unwrap())
                    .map_err(|_| RpcError::Host { code: -32601, text: "method not found".into(), data: None })
            };
            let outcomes = message.calls().map(one).collect();
            ReservedReply::of(Reply::to(message, outcomes))
        })
    }
}

fn options() -> LightOptions {
    let sync = SyncOptions { poll: 3, retry: 20, longest_retry: 50, ..SyncOptions::default() };
    // The recorded headers are years old.
    LightOptions { sync, max_age: 0, ..LightOptions::default() }
}

fn resume(node: &Arc<HeaderUpstream>, folder: &Path) -> Result<LightService, ChainStoreError> {
    let start = checkpoint(&node.headers);
    LightService::resume(Network::mainnet(), start, vec![node.clone()], options(), folder)
}

/// Waits for the head; returns its number and raw header.
async fn head(service: &LightService) -> (u64, String) {
    service.settled(Duration::from_secs(60)).await;
    let number = ask(service, "eth_blockNumber", json!([])).await["result"].clone();
    let text = number.as_str().unwrap_or_else(|| panic!("{number}"));
    let number = u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
    (number, header(service, number).await)
}

/// Returns a raw header as the service serves it.
async fn header(service: &LightService, number: u64) -> String {
    let answer = ask(service, "rsk_getRawBlockHeaderByNumber", json!([format!("{number:#x}")])).await;
    answer["result"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

/// Returns a raw header as it must be served.
fn raw(header: &HeaderCandidate) -> String {
    alloy_primitives::hex::encode_prefixed(header.header().encode(HeaderForm::Raw))
}

/// Ends a service and waits until its file can be opened again, because tasks on other threads may still use
/// it.
async fn close(service: LightService, folder: &Path) {
    drop(service);
    let since = Instant::now();
    while matches!(redb::Database::create(folder.join(FILE)), Err(redb::DatabaseError::DatabaseAlreadyOpen)) {
        assert!(since.elapsed() < Duration::from_secs(30), "still open");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A start by work does not use the headers that an earlier run stored, and does not change them.
#[tokio::test(flavor = "multi_thread")]
async fn a_start_by_work_reads_and_writes_no_store() {
    let Some(headers) = headers() else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = HeaderUpstream::new(headers.clone(), 1_199, 0);
    let trusting = resume(&node, folder.path()).unwrap();
    assert_eq!(head(&trusting).await.0, node.number(1_199));
    close(trusting, folder.path()).await;
    let kept = std::fs::read(folder.path().join(FILE)).unwrap();
    let mut network = Network::mainnet();
    let difficulty = "1000000000000000000000".parse().unwrap();
    network.work_start = Some(WorkStart { difficulty, from: node.number(0), headers: 1_000 });
    let start = LightStart::Work(network.work_start.unwrap());
    let upstreams: Vec<Arc<dyn Upstream>> = vec![node.clone()];
    let service = LightService::resume(network, start, upstreams, options(), folder.path()).unwrap();
    service.settled(Duration::from_secs(60)).await;
    // These headers cover eleven hours of 2022, which is not enough for a start by work.
    assert!(!service.is_synced());
    let error = ask(&service, "eth_blockNumber", json!([])).await["error"].clone();
    let words = error["message"].as_str().unwrap_or_else(|| panic!("{error}"));
    assert!(words.contains("no block for") || words.contains(" s old"), "{words}");
    let status = ask(&service, "rootlight_syncStatus", json!([])).await["result"].clone();
    assert_eq!((&status["start"], &status["synced"]), (&json!("work"), &json!(false)));
    drop(service);
    assert_eq!(std::fs::read(folder.path().join(FILE)).unwrap(), kept);
    // The store still serves its own checkpoint.
    let trusting = resume(&node, folder.path()).unwrap();
    assert_eq!(head(&trusting).await.0, node.number(1_199));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_start_fetches_only_headers_from_the_stored_head_on() {
    let Some(headers) = headers() else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = HeaderUpstream::new(headers.clone(), 1_099, 0);
    let cold = Instant::now();
    let service = resume(&node, folder.path()).unwrap();
    let (number, hash) = head(&service).await;
    let cold = cold.elapsed();
    assert_eq!((number, hash), (node.number(1_099), raw(&headers[1_099])));
    let (asked, _) = node.asked_headers();
    assert!(asked >= 1_099, "{asked}");
    close(service, folder.path()).await;

    let node = HeaderUpstream::new(headers.clone(), 1_199, 0);
    let warm = Instant::now();
    let service = resume(&node, folder.path()).unwrap();
    assert_eq!(head(&service).await, (node.number(1_199), raw(&headers[1_199])));
    println!("cold start {cold:?}, warm start to the first proven answer {:?}", warm.elapsed());
    // The stored head itself is requested again, because the upstream may follow another branch now; it is
    // also requested at each poll.
    let below_head = node.number(1_099)..node.number(1_199);
    let times = node.times_asked();
    assert_eq!(times.keys().next(), Some(&below_head.start));
    for number in below_head {
        assert_eq!(times.get(&number), Some(&1), "block {number}");
    }
    assert_eq!(header(&service, node.number(500)).await, raw(&headers[500]));
}

/// Starts at the first of the 1,200 headers; older ones are not available. Prints times.
#[tokio::test(flavor = "multi_thread")]
async fn mainnet_headers_are_served_after_a_cold_and_a_warm_start() {
    let Some(headers) = headers() else { return };
    let folder = tempfile::tempdir().unwrap();
    let start = checkpoint_at(&headers, 0);
    for name in ["cold", "warm"] {
        let node = HeaderUpstream::new(headers.clone(), 1_199, 0);
        let began = Instant::now();
        let opened =
            LightService::resume(Network::mainnet(), start, vec![node.clone()], options(), folder.path());
        let service = opened.unwrap();
        let opened = began.elapsed();
        assert_eq!(head(&service).await, (node.number(1_199), raw(&headers[1_199])));
        let (elapsed, size) = (began.elapsed(), std::fs::metadata(folder.path().join(FILE)).unwrap().len());
        println!(
            "{name} start: store opened after {opened:?}, proven answer after {elapsed:?}; {size} bytes"
        );
        close(service, folder.path()).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_checkpoint_or_network_sets_the_file_aside() {
    let Some(headers) = headers() else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = HeaderUpstream::new(headers.clone(), 700, 0);
    let service = resume(&node, folder.path()).unwrap();
    head(&service).await;
    assert!(
        matches!(resume(&node, folder.path()), Err(ChainStoreError::File { .. })),
        "the file is in use, which is not its fault"
    );
    close(service, folder.path()).await;
    assert!(!folder.path().join(SET_ASIDE).exists());

    let other =
        Checkpoint { number: node.number(450), hash: headers[450].header().hash(), total_difficulty: None };
    let upstreams: Vec<upstream::SharedUpstream> = vec![node.clone()];
    let service =
        LightService::resume(Network::mainnet(), other, upstreams.clone(), options(), folder.path()).unwrap();
    assert!(folder.path().join(SET_ASIDE).exists());
    assert_eq!(head(&service).await.0, node.number(700));
    close(service, folder.path()).await;

    std::fs::remove_file(folder.path().join(SET_ASIDE)).unwrap();
    let regtest = Network::regtest();
    let genesis = Checkpoint { number: 0, hash: regtest.genesis_hash, total_difficulty: None };
    let service = LightService::resume(regtest, genesis, upstreams, options(), folder.path()).unwrap();
    assert!(folder.path().join(SET_ASIDE).exists());
    assert_eq!(ask(&service, "eth_chainId", json!([])).await["result"], "0x21");
}

/// Number of rounds of randomized tests, from `ROOTLIGHT_STORE_ROUNDS`.
fn rounds() -> u64 {
    std::env::var("ROOTLIGHT_STORE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20)
}

/// A generator whose seed is printed, so that a failure can be repeated.
fn seeded() -> fastrand::Rng {
    let seed = std::env::var("ROOTLIGHT_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("ROOTLIGHT_SEED={seed}");
    fastrand::Rng::with_seed(seed)
}

/// Checks that every header that the service serves is the true one; returns the head's number.
async fn serves_only_true_headers(service: &LightService, headers: &[HeaderCandidate]) -> u64 {
    let (number, served) = head(service).await;
    let first = headers[0].header().number;
    assert_eq!(served, raw(&headers[(number - first) as usize]));
    for place in (START as u64..=number - first).step_by(7) {
        assert_eq!(header(service, first + place).await, raw(&headers[place as usize]));
    }
    number
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_store_is_detected_and_replaced() {
    let Some(headers) = headers() else { return };
    let folder = tempfile::tempdir().unwrap();
    let node = HeaderUpstream::new(headers.clone(), 1_199, 0);
    let service = resume(&node, folder.path()).unwrap();
    head(&service).await;
    close(service, folder.path()).await;
    let good = std::fs::read(folder.path().join(FILE)).unwrap();
    let (mut random, mut set_aside) = (seeded(), 0);
    for round in 0..rounds() {
        let folder = tempfile::tempdir().unwrap();
        let mut bytes = good.clone();
        let size = bytes.len();
        if round % 4 == 0 {
            bytes.truncate(random.usize(..size));
        } else {
            for _ in 0..=random.u8(..8) {
                let place = random.usize(..size);
                bytes[place] ^= 1 << random.u8(..8);
            }
        }
        std::fs::write(folder.path().join(FILE), &bytes).unwrap();
        let service = resume(&node, folder.path()).unwrap();
        set_aside += u64::from(folder.path().join(SET_ASIDE).exists());
        assert_eq!(serves_only_true_headers(&service, &headers).await, node.number(1_199));
        close(service, folder.path()).await;
        // The store that the service leaves is usable.
        let again = resume(&node, folder.path()).unwrap();
        assert_eq!(head(&again).await.0, node.number(1_199));
        drop(again);
    }
    println!("{} damaged stores opened, {set_aside} of them set aside", rounds());
    assert!(set_aside * 10 > rounds(), "damage to pages that are read is detected");
}

const WORKER: &str = "ROOTLIGHT_TEST_WORKER";

/// The process that the test kills: a light client that writes as often as possible. It does nothing in a
/// normal test run.
#[test]
fn worker() {
    let Ok(job) = std::env::var(WORKER) else { return };
    let (url, folder) = job.split_once(' ').unwrap();
    let headers = headers().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let upstreams = vec![upstream::open(url).unwrap()];
        let start = checkpoint(&headers);
        let folder = PathBuf::from(folder);
        let opened = LightService::resume(Network::mainnet(), start, upstreams, options(), &folder);
        let _service = opened.expect("the store opens");
        // Signals that the store is open; the test then kills this process.
        std::fs::write(folder.join("opened"), "").unwrap();
        std::future::pending::<()>().await;
    });
}

fn start_worker(url: &str, folder: &Path) -> Child {
    let _ = std::fs::remove_file(folder.join("opened"));
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "store::worker", "--nocapture"])
        .env(WORKER, format!("{url} {}", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_leaves_a_usable_store() {
    let Some(headers) = headers() else { return };
    let mut random = seeded();
    let (mut kept, mut folder) = (0, tempfile::tempdir().unwrap());
    // On a busy machine it takes longer until headers are written, and more rounds.
    for round in 0..20 * rounds() {
        let longer = round / rounds();
        if longer > 0 && kept * 8 > rounds() {
            break;
        }
        // Some rounds start with an empty folder, the others with the store that the previous one left.
        if round % 8 == 0 {
            folder = tempfile::tempdir().unwrap();
        }
        let reached = 460 + (round % 8) as usize * 85;
        let node = HeaderUpstream::new(headers.clone(), reached, 1);
        let server = common::start_service(common::config(), Arc::new(ServedUpstream(node))).await;
        let mut child = start_worker(&server.url("/"), folder.path());
        let began = Instant::now();
        while !folder.path().join("opened").exists() {
            if let Some(status) = child.try_wait().unwrap() {
                let mut text = String::new();
                std::io::Read::read_to_string(child.stderr.as_mut().unwrap(), &mut text).unwrap();
                panic!("round {round}: {status}: {text}");
            }
            assert!(began.elapsed() < Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        tokio::time::sleep(Duration::from_micros(random.u64(..400_000 * (1 + longer)))).await;
        child.kill().unwrap();
        child.wait().unwrap();

        let whole = HeaderUpstream::new(headers.clone(), 1_199, 0);
        let copy = tempfile::tempdir().unwrap();
        std::fs::copy(folder.path().join(FILE), copy.path().join(FILE)).unwrap();
        let service = resume(&whole, copy.path()).unwrap();
        assert!(!copy.path().join(SET_ASIDE).exists(), "round {round}: a crash must not damage the store");
        assert_eq!(serves_only_true_headers(&service, &headers).await, whole.number(1_199));
        kept += u64::from(whole.asked_headers().1.is_some_and(|lowest| lowest > whole.number(START) + 1));
    }
    println!("{kept} kills kept headers");
    assert!(kept * 8 > rounds(), "headers written before the kill are kept");
}
