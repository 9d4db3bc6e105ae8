//! Starts by window: how much is fetched before the first answer and behind it, what is stored, and which stored headers
//! are used.
//!
//! The headers have main network rules and sizes, and cheap proofs of work.

use crate::common::ask;
use crate::warm_start::chain;

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use futures::future::BoxFuture;
use rootlight::consensus::{ChainView, Network};
use rootlight::light::bitcoin::BitcoinFollower;
use rootlight::light::{Now, SyncOptions, UpstreamRequest, WindowJudge, WindowVerdict, encode_headers};
use rootlight::types::SealedHeader;
use rootlight_node::light::{FILE, LightOptions, LightService, LightStart, WINDOW_FILE};
use rootlight_upstream::{ReservedResults, Upstream, UpstreamError, unreserved};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Headers of the chain: more than those of a start, their ancestors and some new ones.
pub(crate) const LENGTH: u64 = 6_500;

/// Seconds between blocks.
const SPACING: u64 = 30;

/// Number of the chain's first header.
pub(crate) const FIRST: u64 = chain::START;

pub(crate) const NETWORK: &str = r#"{
    "name": "cheap", "base": "mainnet", "knownUntil": 99000000, "params": { "minimumDifficulty": 4 },
    "rules": { "rskip110": -1 }, "workStart": { "difficulty": 4, "from": 9000000 }
}"#;

fn network() -> Network {
    Network::from_json(NETWORK).unwrap()
}

/// A chain that ends now.
fn headers() -> &'static [SealedHeader] {
    static HEADERS: OnceLock<Vec<SealedHeader>> = OnceLock::new();
    HEADERS.get_or_init(|| {
        let network = network();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let mut headers: Vec<SealedHeader> = Vec::new();
        for index in 0..LENGTH {
            let time = now - (LENGTH - index) * SPACING;
            let header = chain::header(&network, FIRST + index, headers.last(), time);
            headers.push(chain::mine(header, &[0; 12], &network));
        }
        headers
    })
}

/// An upstream that has the chain up to a head that may grow, and counts what it sends.
pub(crate) struct ChainUpstream {
    pub(crate) head: AtomicUsize,
    asked: Mutex<Vec<(u64, u64)>>,
    bytes: AtomicUsize,
}

impl ChainUpstream {
    /// An upstream that lacks this many of the newest headers.
    pub(crate) fn behind(newest: usize) -> Arc<Self> {
        let head = headers().len() - 1 - newest;
        Arc::new(Self { head: head.into(), asked: Mutex::default(), bytes: 0.into() })
    }

    pub(crate) fn answer(&self, method: &str, params: &str) -> Option<String> {
        let answer = self.answer_of(method, params)?;
        self.bytes.fetch_add(answer.len(), Ordering::SeqCst);
        Some(answer)
    }

    fn answer_of(&self, method: &str, params: &str) -> Option<String> {
        let top = FIRST + self.head.load(Ordering::SeqCst) as u64;
        match method {
            "eth_chainId" => Some("\"0x1e\"".to_owned()),
            "eth_blockNumber" => Some(format!("\"{top:#x}\"")),
            "rootlight_getHeaders" => {
                let params: [String; 2] = serde_json::from_str(params).unwrap();
                let [first, count] = params.map(|text| u64::from_str_radix(&text[2..], 16).unwrap());
                self.asked.lock().unwrap().push((first, count));
                let range = first..(first + count).min(top + 1);
                let wanted = headers().iter().filter(|header| range.contains(&header.number));
                Some(format!("\"{}\"", encode_headers(wanted.map(|header| (header.header(), Some(&[][..]))))))
            }
            _ => None,
        }
    }

    /// Number of headers that were asked for since the last call, the lowest of them, and the bytes that were sent.
    pub(crate) fn take(&self) -> (u64, u64, usize) {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let lowest = asked.iter().map(|(first, _)| *first).min().unwrap_or(u64::MAX);
        (asked.iter().map(|(_, count)| count).sum(), lowest, self.bytes.swap(0, Ordering::SeqCst))
    }
}

impl Upstream for ChainUpstream {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        let answer = |call: &UpstreamRequest| {
            let message = "method not found".into();
            let text = self.answer(call.method, &call.params);
            let text = text.ok_or(UpstreamError::Rpc { code: -32601, message, data: None })?;
            Ok(RawValue::from_string(text).unwrap())
        };
        let answers = calls.iter().map(answer).collect();
        Box::pin(unreserved(async move { answers }))
    }

    fn name(&self) -> &str {
        "chain"
    }
}

/// Finds all work dated.
#[derive(Debug)]
struct AllDated;

impl WindowJudge for AllDated {
    fn judge(&self, chain: &ChainView, _: Option<&BitcoinFollower>, _: Now) -> WindowVerdict {
        WindowVerdict::Enough(chain.header_work(&chain.head().hash()).unwrap_or_default())
    }
}

fn options(dated: Option<Arc<dyn WindowJudge>>) -> LightOptions {
    let sync = SyncOptions { poll: 50, retry: 20, longest_retry: 100, ..SyncOptions::default() };
    LightOptions { sync, window_judge: dated, ..LightOptions::default() }
}

fn resume(network: Network, node: &Arc<ChainUpstream>, dated: bool, folder: &Path) -> LightService {
    let start = LightStart::Window(network.work_start.unwrap());
    let dated: Option<Arc<dyn WindowJudge>> = if dated { Some(Arc::new(AllDated)) } else { None };
    LightService::resume(network, start, vec![node.clone()], options(dated), folder).unwrap()
}

/// Waits for the head; returns its number and the time until then.
async fn head(service: &LightService) -> (u64, Duration) {
    let began = Instant::now();
    service.settled(Duration::from_secs(60)).await;
    let answer = ask(service, "eth_blockNumber", json!([])).await;
    let text = answer["result"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(answer["start"], "window", "{answer}");
    (u64::from_str_radix(&text[2..], 16).unwrap(), began.elapsed())
}

/// Ends a service and waits until its file can be opened again.
async fn close(service: LightService, folder: &Path) {
    drop(service);
    let file = folder.join(WINDOW_FILE);
    while matches!(redb::Database::create(&file), Err(redb::DatabaseError::DatabaseAlreadyOpen)) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Prints the headers and bytes of each start.
#[tokio::test(flavor = "multi_thread")]
async fn a_restart_by_window_asks_for_what_is_new() {
    let newest = 40;
    for (dated, least) in [(false, 5_760 + 449), (true, 1_440 + 449)] {
        let folder = tempfile::tempdir().unwrap();
        let node = ChainUpstream::behind(newest);
        let service = resume(network(), &node, dated, folder.path());
        let (number, time) = head(&service).await;
        let (asked, lowest, bytes) = node.take();
        println!("dated {dated}: {asked} headers, {bytes} bytes, {time:?} to the first answer");
        assert_eq!(number, FIRST + LENGTH - 1 - newest as u64);
        // More may have come behind it meanwhile.
        assert!((least..7_500).contains(&asked), "{asked} headers");
        // The rest of two days is fetched behind.
        let origin = number - 5_760;
        let began = Instant::now();
        loop {
            let (_, hash) = service.canonical(origin).unwrap();
            if hash.is_some() {
                assert_eq!(hash, Some(headers()[(origin - FIRST) as usize].hash()));
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "lowest {lowest}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The window is stored at the next poll at the latest.
        tokio::time::sleep(Duration::from_millis(500)).await;
        close(service, folder.path()).await;
        assert!(!folder.path().join(FILE).exists(), "headers above a checkpoint have a file of their own");

        let node = ChainUpstream::behind(0);
        let service = resume(network(), &node, dated, folder.path());
        let (again, time) = head(&service).await;
        let (asked, lowest, bytes) = node.take();
        println!("restart: {asked} headers, {bytes} bytes, {time:?}");
        assert_eq!(again, FIRST + LENGTH - 1);
        assert!(lowest >= number - 1 && bytes < 300_000, "{asked} headers from {lowest}, {bytes} bytes");
        assert!(service.canonical(origin).unwrap().1.is_some(), "older headers were stored as well");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_or_of_another_network_is_set_aside_and_a_new_window_elected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(WINDOW_FILE);
    let aside = folder.path().join(format!("{WINDOW_FILE}.unusable"));
    let node = ChainUpstream::behind(0);
    let service = resume(network(), &node, true, folder.path());
    let (number, _) = head(&service).await;
    close(service, folder.path()).await;
    let good = std::fs::read(&path).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    for round in 0..6 {
        let mut bytes = good.clone();
        if round % 2 == 0 {
            bytes.truncate(random.usize(..good.len()));
        } else {
            (0..64).for_each(|_| bytes[random.usize(..good.len())] ^= 1 << random.u8(..8));
        }
        std::fs::write(&path, &bytes).unwrap();
        let service = resume(network(), &node, true, folder.path());
        assert_eq!(head(&service).await.0, number, "round {round}");
        close(service, folder.path()).await;
    }
    std::fs::write(&path, &good).unwrap();
    let _ = std::fs::remove_file(&aside);
    let mut other = network();
    other.name = "other".into();
    let service = resume(other, &node, true, folder.path());
    assert!(aside.exists());
    assert_eq!(head(&service).await.0, number);
}

/// A file that another program has open is not this program's to use; the caller decides what follows.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_use_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let node = ChainUpstream::behind(0);
    let _first = resume(network(), &node, true, folder.path());
    let start = LightStart::Window(network().work_start.unwrap());
    let second = LightService::resume(network(), start, vec![node.clone()], options(None), folder.path());
    assert!(second.is_err());
    assert!(!folder.path().join(format!("{WINDOW_FILE}.unusable")).exists());
}

/// Newer blocks may be withheld: an upstream whose head is hours old gives no start, with a store or without.
#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_withholds_the_newest_hours_gives_no_start() {
    let folder = tempfile::tempdir().unwrap();
    let node = ChainUpstream::behind(200);
    let service = resume(network(), &node, true, folder.path());
    service.settled(Duration::from_secs(10)).await;
    let answer: Value = ask(&service, "eth_blockNumber", json!([])).await;
    assert!(answer["error"]["message"].to_string().contains("s old"), "{answer}");
}
