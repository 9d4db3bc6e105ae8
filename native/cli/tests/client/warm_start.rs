//! Measures the time from a light client's start to its first proven answer, with a short and a long chain in
//! its store.
//!
//! The headers are mined at minimal difficulty and are as long as those of the main network.

use crate::common::ask;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use alloy_primitives::keccak256;
use futures::future::BoxFuture;
use rootlight::consensus::{Checkpoint, Network};
use rootlight::light::{HeaderPage, HeaderSync, PAGE_HEADERS, SyncOptions, UpstreamRequest, encode_headers};
use rootlight::types::rlp::list_of;
use rootlight::types::{HeaderForm, SealedHeader};
use rootlight_node::light::{FILE, HeaderStore, LightOptions, LightService};
use rootlight_upstream::{ReservedResults, Upstream, UpstreamError, unreserved};
use serde_json::value::RawValue;
use serde_json::{Value, json};

// The headers of a cold start. It also has files of them.
#[allow(dead_code)]
#[path = "../../examples/cold_start/chain.rs"]
pub(crate) mod chain;

use chain::{BELOW, START, mine};

/// The main network's rules with minimal difficulty.
fn network() -> Network {
    let text = r#"{"name":"cheap","base":"mainnet","knownUntil":99000000,
        "params":{"minimumDifficulty":4},"rules":{"rskip110":-1}}"#;
    Network::from_json(text).unwrap()
}

/// Mines the header above `parent`, 14 seconds later, or without a parent the first header, at `first_time`.
fn header(network: &Network, parent: Option<&SealedHeader>, first_time: u64) -> SealedHeader {
    let number = parent.map_or(START, |parent| parent.number + 1);
    let time = parent.map_or(first_time, |parent| parent.timestamp + 14);
    mine(chain::header(network, number, parent, time), &[0; 12], network)
}

/// Writes a store with this many headers above the checkpoint; returns the checkpoint and the newest header.
fn store(folder: &Path, network: &Network, blocks: u64) -> (Checkpoint, SealedHeader) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let mut parent = header(network, None, now - 14 * blocks);
    let checkpoint = Checkpoint { number: START, hash: parent.hash(), total_difficulty: None };
    let mut sync = HeaderSync::new(Arc::new(network.clone()), checkpoint);
    let store = HeaderStore::open(folder, &mut sync).unwrap();
    let (mut pages, mut entries) = (Vec::new(), Vec::new());
    let mut number = START - BELOW;
    while number <= START + blocks {
        if number >= START {
            if number > START {
                parent = header(network, Some(&parent), 0);
            }
            entries.push(list_of([parent.encode(HeaderForm::Full).as_slice(), &[0xc0]]));
        }
        number += 1;
        if (number - (START - BELOW)).is_multiple_of(PAGE_HEADERS) || number > START + blocks {
            let list = list_of(entries.iter().map(Vec::as_slice));
            let index = (number - 1 - (START - BELOW)) / PAGE_HEADERS;
            pages.push(HeaderPage { index, bytes: [&keccak256(&list)[..], &list].concat() });
            entries.clear();
        }
        if pages.len() == 512 {
            store.write(&std::mem::take(&mut pages)).unwrap();
        }
    }
    store.write(&pages).unwrap();
    (checkpoint, parent)
}

/// An upstream that has only the newest header.
struct Newest(SealedHeader);

impl Upstream for Newest {
    fn request_reserved(&self, calls: Vec<UpstreamRequest>) -> BoxFuture<'_, ReservedResults> {
        let answer = |call: UpstreamRequest| {
            let text = match call.method {
                "eth_blockNumber" => format!("\"{:#x}\"", self.0.number),
                "rootlight_getHeaders" => {
                    let params: Vec<Value> = serde_json::from_str(&call.params).unwrap();
                    let first = params[0].as_str().unwrap().trim_start_matches("0x").to_owned();
                    let mine = u64::from_str_radix(&first, 16).unwrap() <= self.0.number;
                    let list = mine.then_some((self.0.header(), Some(&[][..])));
                    format!("\"{}\"", encode_headers(list.into_iter()))
                }
                _ => {
                    let message = "method not found".into();
                    return Err(UpstreamError::Rpc { code: -32601, message, data: None });
                }
            };
            Ok(RawValue::from_string(text).unwrap())
        };
        let answers = calls.into_iter().map(answer).collect();
        Box::pin(unreserved(async move { answers }))
    }

    fn name(&self) -> &str {
        "newest"
    }
}

/// A store, and what a client needs to start from it.
struct StoredHeaders {
    folder: tempfile::TempDir,
    network: Network,
    checkpoint: Checkpoint,
    newest: SealedHeader,
    blocks: u64,
}

impl StoredHeaders {
    fn new(blocks: u64) -> Self {
        let (folder, network) = (tempfile::tempdir().unwrap(), network());
        let (checkpoint, newest) = store(folder.path(), &network, blocks);
        Self { folder, network, checkpoint, newest, blocks }
    }

    /// Starts a client. Returns the time to the first proven answer, and the time until all stored headers
    /// are proven.
    async fn start(&self) -> (Duration, Duration) {
        let sync = SyncOptions { poll: 50, ..SyncOptions::default() };
        let options = LightOptions { sync, ..LightOptions::default() };
        let upstream = Arc::new(Newest(self.newest.clone()));
        let (network, folder) = (self.network.clone(), self.folder.path());
        let began = Instant::now();
        let service = LightService::resume(network, self.checkpoint, vec![upstream], options, folder);
        let service = service.unwrap();
        let opened = began.elapsed();
        service.settled(Duration::from_secs(60)).await;
        let block = ask(&service, "rootlight_verification", json!(["latest"])).await;
        let first = began.elapsed();
        assert_eq!(block["result"]["blockHash"], json!(self.newest.hash()), "{block}");
        assert_eq!(block["result"]["level"], "verified", "{block}");
        loop {
            let status = ask(&service, "rootlight_syncStatus", json!([])).await;
            let left = status["result"]["headersToProve"].as_u64().unwrap_or_else(|| panic!("{status}"));
            if left == 0 {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(300), "{status}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let proven = began.elapsed();
        let block = ask(&service, "rootlight_verification", json!(["latest"])).await;
        let work = format!("{:#x}", 4 * self.blocks);
        assert_eq!(block["result"]["headerWork"], work, "the work of all stored headers counts: {block}");
        println!(
            "{} headers: opened {opened:?}, first proven answer {first:?}, all proven {proven:?}",
            self.blocks
        );
        drop(service);
        let file = folder.join(FILE);
        while matches!(redb::Database::create(&file), Err(redb::DatabaseError::DatabaseAlreadyOpen)) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        (first, proven)
    }
}

/// Only the newest pages are read before the first answer; the headers below are proven in the background.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_longer_than_memory_is_proven_in_the_background() {
    let (first, proven) = StoredHeaders::new(16_000).start().await;
    assert!(first < proven);
}

/// Prints times, and fails if the best of three exceeds the documented limit.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes a store of 600 MB; its times are only meaningful on an idle machine"]
async fn warm_start_times() {
    for (blocks, limit) in [(2_880, 300), (500_000, 1_000)] {
        let kept = StoredHeaders::new(blocks);
        let mut best = Duration::MAX;
        for _ in 0..3 {
            best = best.min(kept.start().await.0);
        }
        assert!(best < Duration::from_millis(limit), "{blocks} headers: {best:?}");
    }
}
